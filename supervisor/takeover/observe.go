package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/rival"
)

// Observation is the input of a plan.
type Observation struct {
	// Rivals are the competing lifecycle managers.
	Rivals rival.Finding
	// Pods are the remaining pods of the rivals' Deployments.
	Pods []string
	// Record is the record of a takeover; nil for none.
	Record *Record
	// Lost describes the missing parts of the record.
	Lost []string
	// OpenShift is true if the cluster's own operator reverts changes to OLM.
	OpenShift bool
	// PackageServer is the Deployment that serves packages.operators.coreos.com, as NAMESPACE/NAME; empty for none.
	PackageServer string
	// Inventory counts the objects to adopt, by kind and state.
	Inventory []Count
	// Underway are the plans that are being executed, as NAMESPACE/NAME.
	Underway []string
	// Waiting are the plans that wait for approval, as NAMESPACE/NAME.
	Waiting []string
	// Images is the number of objects to record.
	Images int
}

// Count is the number of objects of a kind, by their state: a phase, a type.
type Count struct {
	Kind  string         `json:"kind"`
	Total int            `json:"total"`
	By    map[string]int `json:"by,omitempty"`
}

// observe reads the input of a plan.
func observe(ctx context.Context, at rival.Config) (*Observation, error) {
	o, c, namespace := &Observation{}, at.Client, at.Namespace
	var (
		err  error
		need rights
	)
	if o.Rivals, err = rival.NewSentry(at).LookFully(ctx); err != nil {
		return nil, err //nolint:wrapcheck // says what was looked for
	}
	o.Record, _, err = NewRecords(c, namespace).read(ctx)
	if need.pass(err) != nil {
		return nil, err
	}
	if o.Record != nil {
		lost, err := NewRecords(c, namespace).lost(ctx, o.Record)
		if err != nil {
			return nil, err
		}
		o.Lost = losses(namespace, lost)
	}
	for i := range o.Rivals.Workloads {
		w := &o.Rivals.Workloads[i]
		o.OpenShift = o.OpenShift || w.Keeper != ""
		pods, err := podsOf(ctx, c, client.ObjectKey{Namespace: w.Namespace, Name: w.Name})
		if need.pass(err) != nil {
			return nil, err
		}
		o.Pods = append(o.Pods, pods...)
	}
	if err := o.findClusterVersion(ctx, c); err != nil {
		return nil, err
	}
	if err := need.pass(o.findPackageServer(ctx, c)); err != nil {
		return nil, err
	}
	if err := need.pass(o.count(ctx, c)); err != nil {
		return nil, err
	}
	images, err := take(ctx, c)
	if need.pass(err) != nil {
		return nil, err
	}
	o.Images = len(images)
	return o, need.err()
}

// podsOf returns the names of the remaining pods of a Deployment. It includes terminating ones, which may still
// write.
func podsOf(ctx context.Context, c client.Reader, key client.ObjectKey) ([]string, error) {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key, d); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of Deployment %s: %w", key, err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of Deployment %s: %w", key, err)
	}
	var names []string
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			names = append(names, pods.Items[i].Namespace+"/"+pods.Items[i].Name)
		}
	}
	return names, nil
}

// findClusterVersion checks whether the cluster is an OpenShift cluster, which reverts changes to its OLM.
func (o *Observation) findClusterVersion(ctx context.Context, c client.Reader) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"})
	err := c.Get(ctx, client.ObjectKey{Name: "version"}, u)
	switch {
	case err == nil, apierrors.IsForbidden(err):
		// The kind exists, even if it may not be read.
		o.OpenShift = true
		return nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err), notServed(err):
		return nil
	default:
		return fmt.Errorf("finding out whether this is OpenShift: %w", err)
	}
}

func notServed(err error) bool {
	var failed *apimeta.NoResourceMatchError
	return errors.As(err, &failed)
}

func (o *Observation) findPackageServer(ctx context.Context, c client.Reader) error {
	for i := range o.Rivals.Workloads {
		key := client.ObjectKey{Namespace: o.Rivals.Workloads[i].Namespace, Name: rival.OLMPackageServer}
		err := c.Get(ctx, key, &appsv1.Deployment{})
		if err == nil {
			o.PackageServer = key.String()
			return nil
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Deployment %s: %w", key, err)
		}
	}
	return nil
}

// count counts the objects to adopt.
func (o *Observation) count(ctx context.Context, c client.Reader) error {
	var need rights
	v1alpha1 := func(kind string) schema.GroupVersionKind { return operatorsv1alpha1.SchemeGroupVersion.WithKind(kind) }
	for _, counted := range []struct {
		gvk schema.GroupVersionKind
		how func(*unstructured.Unstructured) string
	}{
		{v1alpha1("CatalogSource"), field("spec", "sourceType")},
		{v1alpha1("Subscription"), field("status", "state")},
		{v1alpha1("InstallPlan"), o.plan},
		{v1alpha1("ClusterServiceVersion"), version},
		{operatorsv1.SchemeGroupVersion.WithKind("OperatorGroup"), func(*unstructured.Unstructured) string { return "" }},
	} {
		list, err := listed(ctx, c, counted.gvk)
		if need.pass(err) != nil {
			return err
		}
		count := Count{Kind: counted.gvk.Kind, Total: len(list), By: map[string]int{}}
		for _, u := range list {
			count.By[counted.how(u)]++
		}
		delete(count.By, "")
		if count.Kind == operatorsv1alpha1.InstallPlanKind {
			count.Total -= len(o.Underway) + len(o.Waiting)
		}
		o.Inventory = append(o.Inventory, count)
	}
	slices.Sort(o.Underway)
	slices.Sort(o.Waiting)
	return need.err()
}

func field(path ...string) func(*unstructured.Unstructured) string {
	return func(u *unstructured.Unstructured) string {
		text, _, _ := unstructured.NestedString(u.Object, path...)
		return text
	}
}

// version returns the state of a ClusterServiceVersion.
func version(u *unstructured.Unstructured) string {
	if u.GetLabels()[operatorsv1alpha1.CopiedLabelKey] != "" {
		return "copied"
	}
	return field("status", "phase")(u)
}

// plan returns the state of an InstallPlan that remains as it is. It records those that are recreated: plans
// that are being executed, and plans that wait.
func (o *Observation) plan(u *unstructured.Unstructured) string {
	phase, name := field("status", "phase")(u), u.GetNamespace()+"/"+u.GetName()
	switch operatorsv1alpha1.InstallPlanPhase(phase) {
	case operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhasePlanning:
		o.Underway = append(o.Underway, name)
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		o.Waiting = append(o.Waiting, name)
	default:
		return phase
	}
	return ""
}

// words returns the numbers of objects by state, sorted by state.
func (c *Count) words() []string {
	var words []string
	for _, how := range slices.Sorted(maps.Keys(c.By)) {
		words = append(words, fmt.Sprintf("%d %s", c.By[how], how))
	}
	return words
}

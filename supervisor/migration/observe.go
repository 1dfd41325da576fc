package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// ClusterState is the input of a plan.
type ClusterState struct {
	// Managers are the competing lifecycle managers.
	Managers competing.Finding
	// Pods are the remaining pods of their Deployments.
	Pods []string
	// Record is the record of a takeover; nil for none.
	Record *Record
	// Missing describes the missing parts of the record.
	Missing []string
	// OpenShift is true if the cluster's own operator reverts changes to OLM.
	OpenShift bool
	// CatalogNamespaces are the namespaces of the global catalogs.
	CatalogNamespaces CatalogNamespaces
	// PackageServer is the Deployment that serves packages.operators.coreos.com.
	PackageServer PackageServer
	// Counts are the objects to adopt.
	Counts Counts
	// Objects is the number of objects to record.
	Objects int
}

// Counts are the numbers of objects by kind, and the InstallPlans that the supervisors continue or recreate.
type Counts struct {
	Kinds []Count
	// InProgress are the plans that are being executed, as NAMESPACE/NAME.
	InProgress []string
	// Waiting are the plans that wait for approval, as NAMESPACE/NAME.
	Waiting []string
	// Hosted is the number of catalogs that OLM runs in pods.
	Hosted int
}

// Count is the number of objects of a kind, by their state: a phase, a type.
type Count struct {
	Kind  string         `json:"kind"`
	Total int            `json:"total"`
	By    map[string]int `json:"by,omitempty"`
	// Unfinished is the number of InstallPlans that wait or are in progress. Supervisors may recreate them under other names.
	Unfinished int `json:"unfinished,omitempty"`
	// Hosted is the number of CatalogSources that OLM runs in pods, and supervisors as Deployments. By does not count them.
	Hosted int `json:"hosted,omitempty"`
}

// observe reads the input of a plan.
func observe(ctx context.Context, options Options) (*ClusterState, error) {
	cfg := options.Config
	found, err := competing.NewDetector(cfg).CheckAll(ctx)
	if err != nil {
		return nil, err
	}
	o, c := &ClusterState{Managers: found}, cfg.Client
	var missing missingPermissions
	o.Record, o.Missing, err = readRecord(ctx, NewRecords(c, cfg.Namespace))
	if missing.collect(err) != nil {
		return nil, err
	}
	o.Pods, err = remainingPods(ctx, c, found.Workloads)
	if missing.collect(err) != nil {
		return nil, err
	}
	o.OpenShift, err = isOpenShift(ctx, c, found.Workloads)
	if err != nil {
		return nil, err
	}
	o.CatalogNamespaces, err = readCatalogNamespaces(ctx, options, found.Workloads)
	if missing.collect(err) != nil {
		return nil, err
	}
	o.PackageServer, err = findPackageServer(ctx, options, found.Workloads)
	if missing.collect(err) != nil {
		return nil, err
	}
	o.Counts, err = count(ctx, c)
	if missing.collect(err) != nil {
		return nil, err
	}
	objects, err := readObjects(ctx, c)
	if missing.collect(err) != nil {
		return nil, err
	}
	o.Objects = len(objects)
	return o, missing.err()
}

// readRecord returns the record, and describes its missing parts.
func readRecord(ctx context.Context, records *Records) (*Record, []string, error) {
	record, _, err := records.read(ctx)
	if err != nil || record == nil {
		return nil, nil, err
	}
	missing, err := records.missingChunks(ctx, record)
	if err != nil {
		return nil, nil, err
	}
	return record, describeMissing(records.namespace, missing), nil
}

// CheckPods returns an error while pods of stopped Deployments remain, since a terminating pod may still write. The status
// of a Deployment does not count terminating pods.
func CheckPods(ctx context.Context, c client.Reader, stopped []competing.Workload) error {
	left, err := remainingPods(ctx, c, stopped)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("%w: OLM is stopped, but pods %s have not ended; if their node is lost, delete them with: kubectl delete pod --force", ErrRefused, strings.Join(left, ", "))
}

// remainingPods returns the names of the remaining pods of Deployments.
func remainingPods(ctx context.Context, c client.Reader, workloads []competing.Workload) ([]string, error) {
	var (
		names   []string
		missing missingPermissions
	)
	for i := range workloads {
		pods, err := podsOf(ctx, c, client.ObjectKey{Namespace: workloads[i].Namespace, Name: workloads[i].Name})
		if missing.collect(err) != nil {
			return nil, err
		}
		names = append(names, pods...)
	}
	return names, missing.err()
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

// isOpenShift reports whether the cluster is an OpenShift cluster, which reverts changes to its OLM.
func isOpenShift(ctx context.Context, c client.Reader, workloads []competing.Workload) (bool, error) {
	if slices.ContainsFunc(workloads, func(w competing.Workload) bool { return w.ManagedBy != "" }) {
		return true, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"})
	err := c.Get(ctx, client.ObjectKey{Name: "version"}, u)
	switch {
	case err == nil, apierrors.IsForbidden(err):
		// The kind exists, even if it may not be read.
		return true, nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err), notServed(err):
		return false, nil
	default:
		return false, fmt.Errorf("finding out whether this is OpenShift: %w", err)
	}
}

func notServed(err error) bool {
	var failed *apimeta.NoResourceMatchError
	return errors.As(err, &failed)
}

// PackageServer is OLM's server of packages.operators.coreos.com.
type PackageServer struct {
	// Deployment is its Deployment, as NAMESPACE/NAME; empty for none.
	Deployment string
	// Version is the ClusterServiceVersion that owns the Deployment; empty for none.
	Version string
	// Kept is true if no supervisor serves the API, because of the flag --packagemanifests.
	Kept bool
}

// describe returns what happens to the package server; empty if there is none.
func (p PackageServer) describe() string {
	const packages = "packages.operators.coreos.com (kubectl get packagemanifests)"
	switch {
	case p.Deployment == "":
		return ""
	case p.Kept && p.Version == "":
		return "Deployment " + p.Deployment + " still serves " + packages + ", because supervisors have --packagemanifests=disabled; no ClusterServiceVersion owns it, so its certificate is not renewed"
	case p.Kept:
		return "Deployment " + p.Deployment + " still serves " + packages + ", because supervisors have --packagemanifests=disabled; they renew its certificate"
	case p.Version == "":
		return "Deployment " + p.Deployment + " still serves " + packages + ", and is not updated while OLM is stopped; no ClusterServiceVersion owns it, so its certificate is not renewed. Delete it and APIService v1.packages.operators.coreos.com, and supervisors serve the API"
	default:
		return "supervisors serve " + packages + " in place of Deployment " + p.Deployment + ", which stays until kubectl chandlery migrate --finish; a handback returns the API to it"
	}
}

// remaining returns why the package server stays when OLM is removed.
func (p PackageServer) remaining() string {
	if p.Version == "" || p.Kept {
		return "Deployment " + p.Deployment + " stays, because it serves packages.operators.coreos.com"
	}
	return "Deployment " + p.Deployment + " stays until you delete ClusterServiceVersion " + p.Version + "; supervisors serve packages.operators.coreos.com"
}

// findPackageServer returns the package server in a namespace of OLM.
func findPackageServer(ctx context.Context, options Options, workloads []competing.Workload) (PackageServer, error) {
	for i := range workloads {
		key := client.ObjectKey{Namespace: workloads[i].Namespace, Name: competing.OLMPackageServer}
		d := &appsv1.Deployment{}
		err := options.Client.Get(ctx, key, d)
		if client.IgnoreNotFound(err) != nil {
			return PackageServer{}, fmt.Errorf("reading Deployment %s: %w", key, err)
		}
		if err != nil {
			continue
		}
		found := PackageServer{Deployment: key.String()}
		if owner := ownerOf(d, operatorsv1alpha1.ClusterServiceVersionKind); owner != nil {
			found.Version = owner.Name
		}
		found.Kept, err = servesNoPackages(ctx, options)
		return found, err
	}
	return PackageServer{}, nil
}

// servesNoPackages reports whether the installed supervisors do not serve PackageManifests: all have
// --packagemanifests=disabled, and no other Deployment of theirs serves them.
func servesNoPackages(ctx context.Context, o Options) (bool, error) {
	var list appsv1.DeploymentList
	if err := o.Client.List(ctx, &list, client.InNamespace(o.Namespace)); err != nil {
		return false, fmt.Errorf("listing the Deployments of namespace %s: %w", o.Namespace, err)
	}
	disabled := false
	for i := range list.Items {
		d := &list.Items[i]
		mode := containerSetting(d, flagPackages, envPackages, "")
		if mode == "only" || mode != "disabled" && d.Labels[labelSupervisor] == api.LeaseName {
			return false, nil
		}
		disabled = disabled || mode == "disabled"
	}
	return disabled, nil
}

// count counts the objects to adopt.
func count(ctx context.Context, c client.Reader) (Counts, error) {
	var (
		counts  Counts
		missing missingPermissions
	)
	v1alpha1 := func(kind string) schema.GroupVersionKind { return operatorsv1alpha1.SchemeGroupVersion.WithKind(kind) }
	for _, counted := range []struct {
		gvk   schema.GroupVersionKind
		state func(*unstructured.Unstructured) string
	}{
		{v1alpha1(operatorsv1alpha1.CatalogSourceKind), counts.addCatalog},
		{v1alpha1("Subscription"), field("status", "state")},
		{v1alpha1("InstallPlan"), counts.addPlan},
		{v1alpha1("ClusterServiceVersion"), versionState},
		{operatorsv1.SchemeGroupVersion.WithKind("OperatorGroup"), func(*unstructured.Unstructured) string { return "" }},
	} {
		list, err := listAll(ctx, c, counted.gvk)
		if missing.collect(err) != nil {
			return Counts{}, err
		}
		kind := Count{Kind: counted.gvk.Kind, Total: len(list), By: map[string]int{}}
		for _, u := range list {
			kind.By[counted.state(u)]++
		}
		delete(kind.By, "")
		switch kind.Kind {
		case operatorsv1alpha1.InstallPlanKind:
			kind.Unfinished = len(counts.InProgress) + len(counts.Waiting)
		case operatorsv1alpha1.CatalogSourceKind:
			kind.Hosted = counts.Hosted
		}
		counts.Kinds = append(counts.Kinds, kind)
	}
	slices.Sort(counts.InProgress)
	slices.Sort(counts.Waiting)
	return counts, missing.err()
}

// unfinishedPlans returns the InstallPlans that wait for approval or are in progress, as NAMESPACE/NAME.
func unfinishedPlans(ctx context.Context, c client.Reader) ([]string, error) {
	plans, err := listAll(ctx, c, operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind))
	if err != nil {
		return nil, err
	}
	var counts Counts
	for _, p := range plans {
		counts.addPlan(p)
	}
	slices.Sort(counts.Waiting)
	slices.Sort(counts.InProgress)
	return slices.Concat(counts.Waiting, counts.InProgress), nil
}

func field(path ...string) func(*unstructured.Unstructured) string {
	return func(u *unstructured.Unstructured) string {
		text, _, _ := unstructured.NestedString(u.Object, path...)
		return text
	}
}

// versionState returns the state of a ClusterServiceVersion.
func versionState(u *unstructured.Unstructured) string {
	if u.GetLabels()[operatorsv1alpha1.CopiedLabelKey] != "" {
		return "copied"
	}
	return field("status", "phase")(u)
}

// isUnfinished reports whether an InstallPlan in a phase is in progress or waits for approval.
func isUnfinished(phase string) bool {
	return slices.Contains([]operatorsv1alpha1.InstallPlanPhase{
		operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhasePlanning, operatorsv1alpha1.InstallPlanPhaseRequiresApproval,
	}, operatorsv1alpha1.InstallPlanPhase(phase))
}

// addPlan returns the state of an InstallPlan. It adds a plan that waits or is in progress to one of the lists.
func (c *Counts) addPlan(u *unstructured.Unstructured) string {
	phase, name := field("status", "phase")(u), u.GetNamespace()+"/"+u.GetName()
	switch operatorsv1alpha1.InstallPlanPhase(phase) {
	case operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhasePlanning:
		c.InProgress = append(c.InProgress, name)
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		c.Waiting = append(c.Waiting, name)
	case operatorsv1alpha1.InstallPlanPhaseNone, operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseFailed:
	}
	return phase
}

// addCatalog returns the type of a CatalogSource that stays unchanged. It counts a catalog that OLM runs in a pod, and returns
// an empty text for it.
func (c *Counts) addCatalog(u *unstructured.Unstructured) string {
	if source, err := catalogs.Decode(u); err == nil && catalogs.Hosted(source) {
		c.Hosted++
		return ""
	}
	return field("spec", "sourceType")(u)
}

// describe returns a text with the number of objects, by state. It does not count unfinished InstallPlans and catalogs in pods,
// which change.
func (c *Count) describe() string {
	total := c.Total - c.Unfinished - c.Hosted
	text := fmt.Sprintf("%d %s", total, c.Kind+plural(total))
	var words []string
	for _, how := range slices.Sorted(maps.Keys(c.By)) {
		if c.Unfinished == 0 || !isUnfinished(how) {
			words = append(words, fmt.Sprintf("%d %s", c.By[how], how))
		}
	}
	if len(words) > 0 {
		text += " (" + strings.Join(words, ", ") + ")"
	}
	switch {
	case c.Unfinished == 1:
		text += "; 1 more, which is in progress or waits for approval, is named below"
	case c.Unfinished > 1:
		text += fmt.Sprintf("; %d more, which are in progress or wait for approval, are named below", c.Unfinished)
	case c.Hosted == 1:
		text += "; 1 more, which OLM runs in a pod, is among the changes"
	case c.Hosted > 1:
		text += fmt.Sprintf("; %d more, which OLM runs in pods, are among the changes", c.Hosted)
	}
	return text
}

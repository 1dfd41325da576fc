package migration

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// DeleteObjects deletes the objects that only OLM uses. The step DeleteRecord follows it.
const DeleteObjects Action = "Delete"

// Finish deletes what only OLM uses, after a takeover. A handback is then impossible.
type Finish struct {
	Options
}

// Plan returns the plan.
func (f *Finish) Plan(ctx context.Context) (Plan, error) {
	record, _, err := f.records().read(ctx)
	if err != nil || record == nil {
		return Plan{Verdict: Nothing}, err
	}
	found, err := competing.NewDetector(f.Config).CheckAll(ctx)
	if err != nil {
		return Plan{}, err
	}
	var missing missingPermissions
	pods, err := remainingPods(ctx, f.Client, found.Workloads)
	if missing.collect(err) != nil {
		return Plan{}, err
	}
	server, err := findPackageServer(ctx, f.Options, record.workloads())
	if missing.collect(err) != nil {
		return Plan{}, err
	}
	objects, err := f.objects(ctx, record)
	if missing.collect(err) != nil {
		return Plan{}, err
	}
	if err := missing.err(); err != nil {
		return Plan{}, err
	}
	p := NewFinishPlan(record, len(pods) > 0 || len(found.Active()) > 0, server, objects)
	left, err := f.remaining(ctx, objects)
	if err != nil {
		return Plan{}, err
	}
	p.Left = append(p.Left, left...)
	return p, nil
}

// NewFinishPlan returns the plan to delete the objects that only OLM uses. running is true if OLM runs.
func NewFinishPlan(record *Record, running bool, server PackageServer, objects []*unstructured.Unstructured) Plan {
	p := Plan{Verdict: Possible, Left: []string{"namespaces, CustomResourceDefinitions, CatalogSources, OperatorGroups and the ClusterRoles of users stay"}}
	if record.Phase != TakenOver {
		p.Blockers = append(p.Blockers, fmt.Sprintf("the takeover is in phase %s; complete it first", record.Phase))
	}
	if running {
		p.Blockers = append(p.Blockers, "OLM runs; take over first")
	}
	removed := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind
	})
	if server.Deployment != "" && !removed {
		p.Left = append(p.Left, server.remaining())
	}
	if len(p.Blockers) > 0 {
		p.Verdict = Blocked
		return p
	}
	for _, o := range objects {
		p.Operations = append(p.Operations, newOperation(Delete, o, nil))
	}
	p.Risks = []string{"handing back is impossible afterwards; to return to OLM, install it again"}
	p.Steps = []Step{
		{Action: DeleteObjects, Text: fmt.Sprintf("delete %d object%s that only OLM uses, and those that they own", len(objects), plural(len(objects)))},
		{Action: DeleteRecord, Text: "delete ConfigMap " + RecordName + ", and those with the recorded objects"},
	}
	return p
}

// Run deletes the objects. It may be interrupted at any moment and repeated. The record is deleted last.
func (f *Finish) Run(ctx context.Context) error {
	return f.run(ctx, "removing OLM", f.Plan, f.runStep)
}

func (f *Finish) runStep(ctx context.Context, step Step) error {
	if step.Action == DeleteRecord {
		return f.records().delete(ctx)
	}
	record, _, err := f.records().read(ctx)
	if err != nil || record == nil {
		return err
	}
	objects, err := f.objects(ctx, record)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := client.IgnoreNotFound(apply.DeleteIf(ctx, f.Client, o, apply.SameUID(o), client.PropagationPolicy("Background"))); err != nil {
			return fmt.Errorf("deleting %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
		}
	}
	return nil
}

// objects returns what only OLM uses: the version of its package server with its NetworkPolicies, its unpacked bundles, Helm's
// records of its release, and the Services and NetworkPolicies of its Deployments with these, which are last. An unpacked bundle owns its Job, Role
// and RoleBinding.
func (f *Finish) objects(ctx context.Context, record *Record) ([]*unstructured.Unstructured, error) {
	var (
		all, deployments []*unstructured.Unstructured
		missing          missingPermissions
	)
	server, err := f.replacedPackageServer(ctx, record)
	if missing.collect(err) != nil {
		return nil, err
	}
	all = append(all, server...)
	configMaps, err := listMetadata(ctx, f.Client, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if missing.collect(err) != nil {
		return nil, err
	}
	for _, o := range configMaps {
		if isUnpackedBundle(o) {
			all = append(all, o)
		}
	}
	for _, d := range record.Deployments {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		err := f.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, u)
		if missing.collect(client.IgnoreNotFound(err)) != nil {
			return nil, fmt.Errorf("reading Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		if err != nil || u.GetLabels()[api.LabelTakenOver] == "" {
			continue
		}
		deployments = append(deployments, u)
		around, err := f.selecting(ctx, u, services(), networkPolicies())
		if missing.collect(err) != nil {
			return nil, err
		}
		all = append(all, around...)
	}
	releases, err := helmReleases(ctx, f.Client, deployments)
	if missing.collect(err) != nil {
		return nil, err
	}
	return slices.Concat(all, releases, deployments), missing.err()
}

// replacedPackageServer returns the ClusterServiceVersion of OLM's package server if supervisors serve its API, after the
// NetworkPolicies of its pods: without the version, a repeated run would not find them.
func (f *Finish) replacedPackageServer(ctx context.Context, record *Record) ([]*unstructured.Unstructured, error) {
	server, err := findPackageServer(ctx, f.Options, record.workloads())
	if err != nil || server.Version == "" || server.Kept {
		return nil, err
	}
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: kindAPIService})
	if err := f.Client.Get(ctx, client.ObjectKey{Name: "v1.packages.operators.coreos.com"}, service); err != nil || !servesPackages(service) {
		return nil, client.IgnoreNotFound(err) //nolint:wrapcheck // names the object
	}
	version := &unstructured.Unstructured{}
	version.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	namespace, _, _ := strings.Cut(server.Deployment, "/")
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: server.Version}, version); err != nil {
		return nil, client.IgnoreNotFound(err) //nolint:wrapcheck // names the object
	}
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	switch err := f.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: competing.OLMPackageServer}, d); {
	case apierrors.IsNotFound(err):
		return []*unstructured.Unstructured{version}, nil
	case err != nil:
		return nil, fmt.Errorf("reading Deployment %s: %w", server.Deployment, err)
	}
	policies, err := f.selecting(ctx, d, networkPolicies())
	return append(policies, version), err
}

// unpackedName matches the names of ConfigMaps with unpacked bundles: hashes of references.
var unpackedName = regexp.MustCompile(`^[0-9a-f]{63}$`)

// isUnpackedBundle reports whether a ConfigMap has a bundle that OLM unpacked. OLM's label and an owner alone do not show
// it: the ConfigMap of a catalog has both.
func isUnpackedBundle(o *unstructured.Unstructured) bool {
	return unpackedName.MatchString(o.GetName()) && o.GetLabels()[api.LabelManaged] == "true" && ownerOf(o, "CatalogSource") != nil && !isWrittenByUs(o)
}

// selectingKind is a kind of objects that select pods.
type selectingKind struct {
	gvk schema.GroupVersionKind
	// path is the path of the labels.
	path []string
}

func services() selectingKind {
	return selectingKind{corev1.SchemeGroupVersion.WithKind("Service"), []string{"spec", "selector"}}
}

func networkPolicies() selectingKind {
	return selectingKind{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), []string{"spec", "podSelector", "matchLabels"}}
}

// selecting returns the objects of some kinds for exactly the pods of a Deployment.
func (f *Finish) selecting(ctx context.Context, d *unstructured.Unstructured, kinds ...selectingKind) ([]*unstructured.Unstructured, error) {
	labels, _, _ := unstructured.NestedMap(d.Object, "spec", "selector", "matchLabels")
	var found []*unstructured.Unstructured
	for _, kind := range kinds {
		all, err := f.list(ctx, kind.gvk, d.GetNamespace())
		if err != nil {
			return nil, err
		}
		for i := range all {
			selector, _, _ := unstructured.NestedMap(all[i].Object, kind.path...)
			if len(labels) > 0 && reflect.DeepEqual(selector, labels) {
				found = append(found, &all[i])
			}
		}
	}
	return found, nil
}

// list returns the objects of a kind in a namespace.
func (f *Finish) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := f.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing every %s of namespace %s: %w", gvk.Kind, namespace, err)
	}
	return list.Items, nil
}

package migration

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
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
	return NewFinishPlan(record, len(pods) > 0 || len(found.Active()) > 0, server, objects), nil
}

// NewFinishPlan returns the plan to delete the objects that only OLM uses. running is true if OLM runs.
func NewFinishPlan(record *Record, running bool, server PackageServer, objects []*unstructured.Unstructured) Plan {
	p := Plan{Verdict: Possible, Left: []string{"namespaces, CustomResourceDefinitions, CatalogSources, OperatorGroups, accounts, roles and bindings of OLM stay"}}
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

// objects returns what only OLM uses: the version of its package server, its unpacked bundles, Helm's records of its release,
// and the Services and NetworkPolicies of its Deployments with these, which are last. An unpacked bundle owns its Job, Role
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
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		err := f.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, u)
		if missing.collect(client.IgnoreNotFound(err)) != nil {
			return nil, fmt.Errorf("reading Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		if err != nil || u.GetLabels()[api.LabelTakenOver] == "" {
			continue
		}
		deployments = append(deployments, u)
		around, err := f.selecting(ctx, u)
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

// replacedPackageServer returns the ClusterServiceVersion of OLM's package server if supervisors serve its API.
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
	return []*unstructured.Unstructured{version}, nil
}

// unpackedName matches the names of ConfigMaps with unpacked bundles: hashes of references.
var unpackedName = regexp.MustCompile(`^[0-9a-f]{63}$`)

// isUnpackedBundle reports whether a ConfigMap has a bundle that OLM unpacked. OLM's label and an owner alone do not show
// it: the ConfigMap of a catalog has both.
func isUnpackedBundle(o *unstructured.Unstructured) bool {
	return unpackedName.MatchString(o.GetName()) && o.GetLabels()[api.LabelManaged] == "true" && ownerOf(o, "CatalogSource") != nil && !isWrittenByUs(o)
}

// selecting returns the Services and NetworkPolicies for exactly the pods of a Deployment.
func (f *Finish) selecting(ctx context.Context, d *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	labels, _, _ := unstructured.NestedMap(d.Object, "spec", "selector", "matchLabels")
	var found []*unstructured.Unstructured
	for _, selects := range []struct {
		gvk  schema.GroupVersionKind
		path []string
	}{
		{corev1.SchemeGroupVersion.WithKind("Service"), []string{"spec", "selector"}},
		{schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, []string{"spec", "podSelector", "matchLabels"}},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(selects.gvk)
		if err := f.Client.List(ctx, list, client.InNamespace(d.GetNamespace())); err != nil {
			return nil, fmt.Errorf("listing every %s of namespace %s: %w", selects.gvk.Kind, d.GetNamespace(), err)
		}
		for i := range list.Items {
			selector, _, _ := unstructured.NestedMap(list.Items[i].Object, selects.path...)
			if len(labels) > 0 && reflect.DeepEqual(selector, labels) {
				found = append(found, &list.Items[i])
			}
		}
	}
	return found, nil
}

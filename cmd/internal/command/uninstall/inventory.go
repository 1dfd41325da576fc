package uninstall

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// finalizers returns the finalizers that only a supervisor removes.
func finalizers() []string { return []string{api.FinalizerCleanup, api.FinalizerUninstall} }

// annotationRelease holds the name of the Helm release that created an object.
const annotationRelease = "meta.helm.sh/release-name"

// inventoryReader reads the inventory for a plan.
type inventoryReader struct {
	client           client.Client
	resources        resourceLister
	namespace        string
	catalogNamespace string
}

func (r *inventoryReader) read(ctx context.Context) (*Inventory, error) {
	o := &Inventory{Namespace: r.namespace, Counts: map[string]int{}}
	for _, read := range []func(context.Context, *Inventory) error{
		r.product, r.grants, r.contents, r.prerequisites, r.operators, r.managers, r.supervisors,
	} {
		if err := read(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// get reads the metadata of an object. found is false if the object or its kind does not exist.
func (r *inventoryReader) get(ctx context.Context, object Object) (live *metav1.PartialObjectMetadata, found bool, err error) {
	live = object.metadata()
	err = r.client.Get(ctx, client.ObjectKeyFromObject(live), live)
	switch {
	case isAbsent(err):
		return live, false, nil
	case err != nil:
		return live, false, fmt.Errorf("reading %s: %w", object, err)
	}
	return live, true, nil
}

// isAbsent reports whether an error means that an object, or its kind, does not exist.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err)
}

func (r *inventoryReader) product(ctx context.Context, o *Inventory) error {
	for _, object := range Product(r.namespace) {
		live, found, err := r.get(ctx, object)
		if err != nil {
			return err
		}
		switch {
		case !found:
		case live.Labels[labelPartOf] == product || object.Kind == "Lease":
			o.Present = append(o.Present, object)
			if object.Kind == "Deployment" {
				o.Release = live.Annotations[annotationRelease]
			}
		default:
			o.Foreign = append(o.Foreign, object)
		}
	}
	namespace, found, err := r.get(ctx, Object{Version: "v1", Kind: "Namespace", Name: r.namespace})
	if err != nil {
		return err
	}
	o.NamespaceOwned = found && namespace.Labels[labelPartOf] == product
	return nil
}

// grants adds the temporary roles of a supervisor that it has not revoked.
func (r *inventoryReader) grants(ctx context.Context, o *Inventory) error {
	for _, kind := range []string{"ClusterRoleBinding", "ClusterRole"} {
		list, err := listOf(ctx, r.client, rbacv1.SchemeGroupVersion.WithKind(kind), client.HasLabels{api.LabelGrant})
		if err != nil {
			return fmt.Errorf("finding temporary grants: %w", err)
		}
		for i := range list {
			o.Present = append(o.Present, Object{rbacv1.GroupName, "v1", kind, "", list[i].Name})
		}
	}
	return nil
}

func (r *inventoryReader) prerequisites(ctx context.Context, o *Inventory) error {
	for _, object := range Prerequisites(r.catalogNamespace) {
		live, found, err := r.get(ctx, object)
		if err != nil {
			return err
		}
		if found {
			// CustomResourceDefinitions of the product have no label. OLM labels its own, which the plan checks.
			foreign := object.Kind != "CustomResourceDefinition" && live.Labels[labelPartOf] != product
			o.Prerequisites = append(o.Prerequisites, Prerequisite{object, foreign})
		}
	}
	return nil
}

// operators reads the objects of operators.coreos.com.
func (r *inventoryReader) operators(ctx context.Context, o *Inventory) error {
	var versions operatorsv1alpha1.ClusterServiceVersionList
	if err := r.client.List(ctx, &versions); err != nil && !isAbsent(err) {
		return fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	for i := range versions.Items {
		v := &versions.Items[i]
		if v.IsCopied() {
			continue
		}
		operator := Operator{Namespace: v.Namespace, Name: v.Name, Phase: string(v.Status.Phase)}
		for _, owned := range v.Spec.CustomResourceDefinitions.Owned {
			operator.Definitions = append(operator.Definitions, owned.Name)
		}
		o.Operators = append(o.Operators, operator)
		o.Counts["ClusterServiceVersion"]++
		if finalized(v) {
			o.Finalized = append(o.Finalized, "ClusterServiceVersion "+v.Namespace+"/"+v.Name)
		}
	}
	for _, object := range managed() {
		list, err := listOf(ctx, r.client, object)
		if err != nil {
			return err
		}
		o.Counts[object.Kind] += len(list)
		for i := range list {
			if finalized(&list[i]) {
				o.Finalized = append(o.Finalized, object.Kind+" "+list[i].Namespace+"/"+list[i].Name)
			}
		}
	}
	return nil
}

// managed returns the kinds whose objects are removed before their definitions, while a supervisor
// runs. ClusterServiceVersions are not among them; they are read completely.
func managed() []schema.GroupVersionKind {
	const group = operatorsv1alpha1.GroupName
	return []schema.GroupVersionKind{
		{Group: group, Version: "v1alpha1", Kind: "Subscription"},
		{Group: group, Version: "v1alpha1", Kind: "InstallPlan"},
		{Group: group, Version: "v1", Kind: "OperatorGroup"},
		{Group: group, Version: "v1alpha1", Kind: "CatalogSource"},
	}
}

// pageSize is the number of objects that one request lists.
const pageSize = 500

// listOf returns the metadata of the objects of a kind; none if the kind does not exist.
func listOf(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	for token := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := c.List(ctx, page, append(slices.Clone(options), client.Limit(pageSize), client.Continue(token))...)
		if isAbsent(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", gvk.Kind, err)
		}
		all = append(all, page.Items...)
		if token = page.Continue; token == "" {
			return all, nil
		}
	}
}

func finalized(o client.Object) bool {
	return slices.ContainsFunc(finalizers(), func(name string) bool { return slices.Contains(o.GetFinalizers(), name) })
}

// supervisors finds the supervisors of the cluster.
func (r *inventoryReader) supervisors(ctx context.Context, o *Inventory) (err error) {
	o.Supervisors, err = readSupervisors(ctx, r.client, r.namespace, time.Now())
	return err
}

// managers finds the Deployments of another lifecycle manager whose service accounts may do its work.
func (r *inventoryReader) managers(ctx context.Context, o *Inventory) error {
	var deployments appsv1.DeploymentList
	if err := r.client.List(ctx, &deployments); err != nil {
		return fmt.Errorf("listing Deployments, to find another lifecycle manager: %w", err)
	}
	workloads := competing.WorkloadsAmong(deployments.Items)
	access, err := competing.NewAccessReviewer(r.client, competing.VerbOLM, clock.RealClock{}).Review(ctx, competing.Accounts(workloads))
	if err != nil {
		return err //nolint:wrapcheck // names the account
	}
	for i := range workloads {
		if access.ClassifyByAppearance(&workloads[i]) != competing.Suspect {
			o.Managers = append(o.Managers, workloads[i].Describe())
		}
	}
	return nil
}

package clusterserviceversion

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/grant"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// A ClusterServiceVersion is written by the author of a bundle, who may claim any kind as
// owned. What its clean-up may delete is bounded by what others wrote: the record of install
// plans on CustomResourceDefinitions, and the OperatorGroup of the namespace. A group that is
// deleted before the version counts as the supervisor last recorded it on the version.

// bounds are what bounds the clean-up of custom resources in a namespace.
type bounds struct {
	// group is the OperatorGroup of the namespace; nil unless there is exactly one.
	group *operatorsv1.OperatorGroup
	// deleted is true when the namespace has no OperatorGroup.
	deleted bool
	// terminating is true when the namespace is being deleted, and all objects in it with it.
	terminating bool
}

// observeBounds reads the bounds of a clean-up from the API server, past the cache: what is
// deleted by a former state of a group does not come back.
func (r *reconciler) observeBounds(ctx context.Context, namespace string) (bounds, error) {
	groups := &operatorsv1.OperatorGroupList{}
	if err := r.live.List(ctx, groups, client.InNamespace(namespace)); err != nil {
		return bounds{}, fmt.Errorf("listing OperatorGroups of namespace %s: %w", namespace, err)
	}
	if len(groups.Items) == 1 {
		return bounds{group: &groups.Items[0]}, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := client.IgnoreNotFound(r.live.Get(ctx, client.ObjectKey{Name: namespace}, found)); err != nil {
		return bounds{}, fmt.Errorf("getting Namespace %s: %w", namespace, err)
	}
	return bounds{deleted: len(groups.Items) == 0, terminating: !found.DeletionTimestamp.IsZero()}, nil
}

// pending returns why the bounds are not known yet; empty when they are.
func (b bounds) pending() string {
	if b.group != nil && b.group.Status.LastUpdated == nil {
		return fmt.Sprintf("the status of OperatorGroup %s does not list its namespaces yet", b.group.Name)
	}
	return ""
}

// namespaces returns where custom resources may be deleted, the empty one standing for all.
func (b bounds) namespaces(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	switch {
	case b.group != nil:
		return b.group.Status.Namespaces
	case b.deleted && hadNoAccount(csv):
		recorded, _ := targets(csv)
		return recorded
	case b.terminating:
		return []string{csv.Namespace}
	}
	return nil
}

// hadNoAccount reports whether the OperatorGroup named no service account when the supervisor
// last recorded it on a version. The record of its targets is of the same write.
func hadNoAccount(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	account, recorded := csv.Annotations[api.AnnotationGroupAccount]
	return recorded && account == ""
}

// refusal returns why the custom resources of a definition stay though csv asks for their
// removal; empty when some may be deleted.
func (b bounds) refusal(csv *operatorsv1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition) string {
	namespaces := b.namespaces(csv)
	switch {
	case crd.Spec.Group == operatorsv1alpha1.GroupName:
		return "kinds of " + operatorsv1alpha1.GroupName + " are never cleaned up"
	case !installedWith(crd, client.ObjectKeyFromObject(csv)):
		return "no install plan of this version brought the definition"
	case len(namespaces) == 0 && b.group == nil:
		return "there is not exactly one OperatorGroup in the namespace, whose targets and account bound the clean-up"
	case len(namespaces) == 0:
		return "OperatorGroup " + b.group.Name + " targets no namespace"
	case crd.Spec.Scope == apiextensionsv1.ClusterScoped && !slices.Contains(namespaces, corev1.NamespaceAll):
		return "the kind is cluster-scoped and the OperatorGroup does not target all namespaces"
	}
	return ""
}

// installedWith reports whether an install plan recorded on a definition that it created or
// took it over for a version. Bundles cannot write that record: a plan replaces what a
// manifest brings of it.
func installedWith(crd *apiextensionsv1.CustomResourceDefinition, version types.NamespacedName) bool {
	return slices.Contains(plan.Alongside(crd), version)
}

// territory returns where the custom resources of a definition are that the clean-up of csv
// may delete.
func (b bounds) territory(csv *operatorsv1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition, others csvs) territory {
	if why := b.refusal(csv, crd); why != "" {
		return territory{leaves: why}
	}
	return territoryOf(csv, crd.Name, others).within(b.namespaces(csv))
}

// within returns the part of a territory that is in some namespaces, the empty one standing
// for all.
func (t territory) within(namespaces []string) territory {
	if slices.Contains(namespaces, corev1.NamespaceAll) {
		return t
	}
	bounded := sets.New(namespaces...).Difference(t.except)
	if !t.everywhere {
		bounded = bounded.Intersection(sets.New(t.in...))
	}
	if len(t.in) > 0 && bounded.Len() == 0 {
		t.leaves = "the OperatorGroup no longer targets the namespaces that it looked after"
	}
	t.everywhere, t.in = false, sets.List(bounded)
	return t
}

// resourceDeleter deletes custom resources, with the rights of the account that the
// OperatorGroup names where it names one.
type resourceDeleter struct {
	client client.Client
	// by says with whose rights; empty for the supervisor's own.
	by string
}

// resourceDeleter returns what deletes custom resources within some bounds.
func (r *reconciler) resourceDeleter(b bounds) (resourceDeleter, error) {
	if b.group == nil || b.group.Spec.ServiceAccountName == "" {
		return resourceDeleter{client: r.client}, nil
	}
	account := types.NamespacedName{Namespace: b.group.Namespace, Name: b.group.Spec.ServiceAccountName}
	c, err := r.accounts.As(account)
	if err != nil {
		return resourceDeleter{}, err //nolint:wrapcheck // it names the account
	}
	return resourceDeleter{client: c, by: asAccount(account.Name, b.group.Name)}, nil
}

// right is what the supervisor itself needs to clean up: to list, and to delete where no
// account does that.
func (d resourceDeleter) right() grant.Right {
	if d.by != "" {
		return grant.Check
	}
	return grant.Cleanup
}

// delete deletes the very object that was seen, whatever its operator has written to it since.
func (d resourceDeleter) delete(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	err := deleteWith(ctx, d.client, o, client.Preconditions{UID: new(o.GetUID())})
	if err != nil && d.by != "" {
		return fmt.Errorf("%s: %w", d.by, err)
	}
	return err
}

// lacks reports whether the account has no right to delete the objects of a definition in a
// namespace. What admission refuses is forbidden too, so the API server is asked.
func (d resourceDeleter) lacks(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, namespace string) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "delete", Group: crd.Spec.Group, Version: "*", Resource: crd.Spec.Names.Plural,
		},
	}}
	err := d.client.Create(ctx, review)
	return err == nil && !review.Status.Allowed
}

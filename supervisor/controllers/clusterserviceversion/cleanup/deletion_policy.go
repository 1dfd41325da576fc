package cleanup

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
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
)

// The author of a bundle writes the ClusterServiceVersion and may claim any kind as owned. Two
// records of others therefore bound its clean-up: those of install plans on
// CustomResourceDefinitions, and the OperatorGroup of the namespace. For a group that is deleted
// before the version, the supervisor's last record of it on the version counts.

// deletionPolicy limits the clean-up of custom resources in a namespace.
type deletionPolicy struct {
	// group is the OperatorGroup of the namespace; nil unless there is exactly one.
	group *operatorsv1.OperatorGroup
	// deleted is true when the namespace has no OperatorGroup.
	deleted bool
	// terminating is true when the namespace is being deleted, and all objects in it with it.
	terminating bool
}

// observePolicy reads the policy of a clean-up from the API server. Objects that are deleted because
// of a former state of a group are lost.
func (r resourceCleaner) observePolicy(ctx context.Context, namespace string) (deletionPolicy, error) {
	groups := &operatorsv1.OperatorGroupList{}
	if err := r.live.List(ctx, groups, client.InNamespace(namespace)); err != nil {
		return deletionPolicy{}, fmt.Errorf("listing OperatorGroups of namespace %s: %w", namespace, err)
	}
	if len(groups.Items) == 1 {
		return deletionPolicy{group: &groups.Items[0]}, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := client.IgnoreNotFound(r.live.Get(ctx, client.ObjectKey{Name: namespace}, found)); err != nil {
		return deletionPolicy{}, fmt.Errorf("getting Namespace %s: %w", namespace, err)
	}
	return deletionPolicy{deleted: len(groups.Items) == 0, terminating: !found.DeletionTimestamp.IsZero()}, nil
}

// pending returns why the policy is not known yet; empty when it is.
func (p deletionPolicy) pending() string {
	if p.group != nil && p.group.Status.LastUpdated == nil {
		return fmt.Sprintf("the status of OperatorGroup %s does not list its namespaces yet", p.group.Name)
	}
	return ""
}

// namespaces returns the namespaces in which custom resources may be deleted; the empty one stands
// for all.
func (p deletionPolicy) namespaces(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	switch {
	case p.group != nil:
		return p.group.Status.Namespaces
	case p.deleted && hadNoAccount(csv):
		recorded, _ := targets(csv)
		return recorded
	case p.terminating:
		return []string{csv.Namespace}
	}
	return nil
}

// hadNoAccount reports whether the OperatorGroup named no service account when the supervisor
// last recorded it on a version. The record of its targets is of the same write.
func hadNoAccount(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return api.RecordedAccount(csv) == api.GroupAccountNone
}

// refusal returns why the custom resources of a definition stay although csv requests their removal;
// empty when some may be deleted.
func (p deletionPolicy) refusal(csv *operatorsv1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition) string {
	namespaces := p.namespaces(csv)
	switch {
	case crd.Spec.Group == operatorsv1alpha1.GroupName:
		return "kinds of " + operatorsv1alpha1.GroupName + " are never cleaned up"
	case !isInstalledAlongside(crd, client.ObjectKeyFromObject(csv)):
		return "no install plan of this version created the definition"
	case len(namespaces) == 0 && p.group == nil:
		return "the namespace does not have exactly one OperatorGroup, whose targets and account limit the clean-up"
	case len(namespaces) == 0:
		return "OperatorGroup " + p.group.Name + " targets no namespace"
	case crd.Spec.Scope == apiextensionsv1.ClusterScoped && !slices.Contains(namespaces, corev1.NamespaceAll):
		return "the kind is cluster-scoped and the OperatorGroup does not target all namespaces"
	}
	return ""
}

// isInstalledAlongside reports whether an install plan created a definition, or took it over, for a version.
// Plans record that on the definition. Bundles cannot write the record: a plan replaces records in a
// manifest.
func isInstalledAlongside(crd *apiextensionsv1.CustomResourceDefinition, version types.NamespacedName) bool {
	return slices.Contains(plansteps.InstalledAlongside(crd), version)
}

// scope returns the namespaces in which the clean-up of csv may delete the custom resources of a
// definition.
func (p deletionPolicy) scope(csv *operatorsv1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition, others versions.List) scope {
	if why := p.refusal(csv, crd); why != "" {
		return scope{keepReason: why}
	}
	return scopeOf(csv, crd.Name, others).within(p.namespaces(csv))
}

// within returns the part of the scope that is in some namespaces; the empty one stands for all.
func (t scope) within(namespaces []string) scope {
	if slices.Contains(namespaces, corev1.NamespaceAll) {
		return t
	}
	bounded := sets.New(namespaces...).Difference(t.except)
	if !t.allNamespaces {
		bounded = bounded.Intersection(sets.New(t.in...))
	}
	if len(t.in) > 0 && bounded.Len() == 0 {
		t.keepReason = "the OperatorGroup no longer targets the namespaces of the version"
	}
	t.allNamespaces, t.in = false, sets.List(bounded)
	return t
}

// resourceDeleter deletes custom resources. It has the permissions of the account that the OperatorGroup
// names, if it names one.
type resourceDeleter struct {
	client client.Client
	// actingAs states whose permissions it uses; empty for the supervisor's own.
	actingAs string
}

// deleter returns the deleter of custom resources that a policy allows.
func (r resourceCleaner) deleter(p deletionPolicy) (resourceDeleter, error) {
	if p.group == nil || p.group.Spec.ServiceAccountName == "" {
		return resourceDeleter{client: r.client}, nil
	}
	account := types.NamespacedName{Namespace: p.group.Namespace, Name: p.group.Spec.ServiceAccountName}
	c, err := r.accounts.As(account)
	if err != nil {
		return resourceDeleter{}, err //nolint:wrapcheck // it names the account
	}
	return resourceDeleter{client: c, actingAs: fmt.Sprintf("as ServiceAccount %s of OperatorGroup %s", account.Name, p.group.Name)}, nil
}

// permission returns the permission that the supervisor itself needs: to list, and to delete where it uses no
// account.
func (d resourceDeleter) permission() grant.Permission {
	if d.actingAs != "" {
		return grant.Check
	}
	return grant.Cleanup
}

// delete deletes the object that was read, even if its operator has written to it since.
func (d resourceDeleter) delete(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	err := apply.Delete(ctx, d.client, o, apply.SameUID(o))
	if err != nil && d.actingAs != "" {
		return fmt.Errorf("%s: %w", d.actingAs, err)
	}
	return err
}

// isForbidden reports whether the account has no permission to delete the objects of a definition in a
// namespace. It asks the API server, since admission forbids requests too.
func (d resourceDeleter) isForbidden(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, namespace string) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "delete", Group: crd.Spec.Group, Version: "*", Resource: crd.Spec.Names.Plural,
		},
	}}
	err := apply.Review(ctx, d.client, review)
	return err == nil && !review.Status.Allowed
}

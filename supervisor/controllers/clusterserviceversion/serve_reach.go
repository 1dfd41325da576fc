package clusterserviceversion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

// observeReach returns the bounds of the webhooks of a version with one OperatorGroup.
func (r *reconciler) observeReach(ctx context.Context, s *scope) (webhook.Reach, error) {
	reach := webhook.Reach{
		Group: s.Groups[0].Name, AllNamespaces: isGlobal(s.Groups), Account: s.Groups[0].Spec.ServiceAccountName, Excluded: r.namespace,
	}
	if reach.Unbounded() || len(s.CSV.Spec.WebhookDefinitions) == 0 {
		return reach, nil
	}
	for _, d := range s.CSV.Spec.CustomResourceDefinitions.Owned {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.crds.Get(ctx, client.ObjectKey{Name: d.Name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return reach, fmt.Errorf("getting CustomResourceDefinition %s: %w", d.Name, err)
		}
		if crd.Spec.Scope == apiextensionsv1.ClusterScoped && installedWith(crd, client.ObjectKeyFromObject(s.CSV)) {
			reach.ClusterScoped = append(reach.ClusterScoped, schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
		}
	}
	return reach, nil
}

// observeWebhookAccess returns why the account of the OperatorGroup may not have the admission
// webhooks of a version; empty when it may. A webhook reads and changes objects with rights that
// the account may lack. The account must therefore be allowed to create one itself.
func (r *reconciler) observeWebhookAccess(ctx context.Context, s *scope) (string, error) {
	name := s.Groups[0].Spec.ServiceAccountName
	if name == "" {
		return "", nil
	}
	account := types.NamespacedName{Namespace: s.CSV.Namespace, Name: name}
	as, err := r.accounts.As(account)
	if err != nil {
		return "", err //nolint:wrapcheck // it names the account
	}
	var lacks []string
	for _, kind := range []struct {
		webhook  operatorsv1alpha1.WebhookAdmissionType
		resource string
	}{
		{operatorsv1alpha1.ValidatingAdmissionWebhook, "validatingwebhookconfigurations"},
		{operatorsv1alpha1.MutatingAdmissionWebhook, "mutatingwebhookconfigurations"},
	} {
		declares := func(d operatorsv1alpha1.WebhookDescription) bool { return d.Type == kind.webhook }
		if !slices.ContainsFunc(s.CSV.Spec.WebhookDefinitions, declares) {
			continue
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: admissionregistrationv1.GroupName, Version: "v1", Resource: kind.resource,
			},
		}}
		if err := as.Create(ctx, review); err != nil {
			return "", fmt.Errorf("reviewing the access of ServiceAccount %s: %w", account, err)
		}
		if !review.Status.Allowed {
			lacks = append(lacks, kind.resource)
		}
	}
	if len(lacks) == 0 {
		return "", nil
	}
	return fmt.Sprintf("ServiceAccount %s, which OperatorGroup %s names, may not create %s of %s; grant it that right by a ClusterRole, or let the OperatorGroup name another",
		account, s.Groups[0].Name, strings.Join(lacks, " and "), admissionregistrationv1.GroupName), nil
}

// desired returns the objects that a version needs to serve, within its reach.
func (s *scope) desired() (webhook.Objects, error) {
	objects, err := webhook.Desired(s.CSV, &s.Groups[0], s.served.servers, s.served.certs)
	if err != nil {
		return webhook.Objects{}, fmt.Errorf("deriving what ClusterServiceVersion %s/%s serves: %w", s.CSV.Namespace, s.CSV.Name, err)
	}
	return s.served.reach.Narrow(objects), nil
}

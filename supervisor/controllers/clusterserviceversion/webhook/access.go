package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// refusal returns why the OperatorGroup of a version does not allow one of its webhooks; empty when
// it allows all. It reviews only webhooks that have to be written. A new certificate alone does not
// count.
func (o *Observer) refusal(ctx context.Context, s *State, found []object) (string, error) {
	if !s.complete() || slices.ContainsFunc(found, func(one object) bool { return one.configChanged }) {
		refused, err := o.admissionRefusal(ctx, s.version)
		if err != nil || refused != "" {
			return refused, err
		}
	}
	if slices.ContainsFunc(found, isRequest) {
		refused, err := o.requestRefusal(ctx, s.version)
		if err != nil || refused != "" {
			return refused, err
		}
	}
	return o.conversions.refusal(ctx, s)
}

// admissionRefusal returns why the account of the OperatorGroup may not have the admission webhooks
// of a version; empty when it may. A webhook reads and changes objects with permissions that the account
// may lack. The account must therefore be allowed to create one itself.
func (o *Observer) admissionRefusal(ctx context.Context, v Version) (string, error) {
	name := v.Group.Spec.ServiceAccountName
	if name == "" {
		return "", nil
	}
	account := types.NamespacedName{Namespace: v.CSV.Namespace, Name: name}
	as, err := o.accounts.As(account)
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
		if !slices.ContainsFunc(v.CSV.Spec.WebhookDefinitions, declares) {
			continue
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "create", Group: admissionregistrationv1.GroupName, Version: "v1", Resource: kind.resource,
			},
		}}
		if err := apply.Review(ctx, as, review); err != nil {
			return "", fmt.Errorf("reviewing the access of ServiceAccount %s: %w", account, err)
		}
		if !review.Status.Allowed {
			lacks = append(lacks, kind.resource)
		}
	}
	if len(lacks) == 0 {
		return "", nil
	}
	return fmt.Sprintf("ServiceAccount %s of OperatorGroup %s lacks permission to create %s of %s; grant it with a ClusterRole, or name another ServiceAccount in the OperatorGroup",
		account, v.Group.Name, strings.Join(lacks, " and "), admissionregistrationv1.GroupName), nil
}

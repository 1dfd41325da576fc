package compat_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// requests are requests to the API server.
type requests struct {
	group, resource string
	operation       admissionregistrationv1.OperationType
	// condition selects some of the requests by an expression; empty for all in the namespace of the case.
	condition string
}

// refuse makes the API server refuse requests as forbidden. It returns a function that ends this. It also ends with
// the case.
func refuse(t *testing.T, c *compattest.Cluster, r requests) (end func()) {
	t.Helper()
	if r.condition == "" {
		r.condition = fmt.Sprintf("request.namespace == %q", c.Namespace)
	}
	rule := func(group, resource string, operation admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				rule(r.group, r.resource, r.operation), rule("", "configmaps", admissionregistrationv1.Create),
			}},
			// The ConfigMap shows whether the API server knows the policy.
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "selected", Expression: fmt.Sprintf(
				`request.resource.resource == "configmaps" ? request.namespace == %q && object.metadata.name == "probe" : %s`, c.Namespace, r.condition,
			)}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "the case refuses it", Reason: new(metav1.StatusReasonForbidden)}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	c.Make(policy, binding)
	awaitProbe(t, c, apierrors.IsForbidden)
	end = sync.OnceFunc(func() {
		t.Helper()
		if err := client.IgnoreNotFound(c.Delete(background(c), binding)); err != nil {
			t.Errorf("deleting the binding of a policy: %v", err)
		}
		awaitProbe(t, c, func(err error) bool { return err == nil })
	})
	t.Cleanup(end)
	return end
}

// awaitProbe waits until the answer to a request that the policy refuses is as expected. It may be called when the case
// ends.
func awaitProbe(t *testing.T, c *compattest.Cluster, expected func(error) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background(c), compattest.Patience)
	defer cancel()
	err := pause.Until(ctx, 200*time.Millisecond, func() string {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "probe"}}
		if err := c.Create(ctx, probe, client.DryRunAll); !expected(err) {
			return fmt.Sprintf("the answer is %v", err)
		}
		return ""
	})
	if err != nil {
		t.Errorf("waiting for a policy: %v", err)
	}
}

package catalogsource

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestInTerms(t *testing.T) {
	template := field.NewPath("spec", "template", "spec")
	invalid := func(all ...*field.Error) error {
		return fmt.Errorf("applying: %w", apierrors.NewInvalid(kindDeployment.GroupKind(), "shop", all))
	}
	selector := field.Invalid(template.Child("nodeSelector"), "a b", "no label")
	toleration := field.NotSupported(template.Child("tolerations").Index(0).Child("effect"), "Odd", []string{"NoSchedule"})
	other := invalid(selector, field.Required(template.Child("containers"), ""))
	plain := errors.New("away")
	for _, tt := range []struct {
		reason string
		err    error
		want   string
	}{
		{reason: "selector", err: invalid(selector), want: `the API server refuses spec.grpcPodConfig.nodeSelector: Invalid value: "a b": no label; correct it`},
		{
			reason: "both", err: invalid(selector, toleration),
			want: `the API server refuses spec.grpcPodConfig.nodeSelector: Invalid value: "a b": no label; ` +
				`spec.grpcPodConfig.tolerations[0].effect: Unsupported value: "Odd": supported values: "NoSchedule"; correct it`,
		},
		{reason: "what is ours", err: other, want: other.Error()},
		{reason: "anything else", err: plain, want: "away"},
	} {
		if got := inTerms(tt.err).Error(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestStuck(t *testing.T) {
	refusal := func(reason metav1.StatusReason, field, message string) error {
		return fmt.Errorf("applying: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason:  reason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message}}},
		}})
	}
	const invalid = metav1.StatusReasonInvalid
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no error":   {},
		"immutable":  {refusal(invalid, "spec.clusterIPs[0]", "Invalid value: field is immutable"), true},
		"for good":   {refusal(invalid, "spec.clusterIPs[0]", "Invalid value: may not change once set"), true},
		"two bounds": {refusal(invalid, "spec", "minAvailable and maxUnavailable cannot be both set"), true},
		"too large":  {refusal(invalid, "spec.ports[0].port", "must be between 1 and 65535, inclusive"), false},
		"a policy":   {refusal(invalid, "", "the port is immutable"), false},
		"forbidden":  {refusal(metav1.StatusReasonForbidden, "spec", "it is immutable"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isStuck(tt.err); got != tt.want {
				t.Errorf("stuck: %t, want %t", got, tt.want)
			}
		})
	}
}

package catalogsource

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

func TestWithSourceFields(t *testing.T) {
	template := field.NewPath("spec", "template", "spec")
	invalid := func(all ...*field.Error) error {
		return fmt.Errorf("applying: %w", apierrors.NewInvalid(deployment.KindDeployment.GroupKind(), "shop", all))
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
		if got := withSourceFields(tt.err).Error(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
	}
}

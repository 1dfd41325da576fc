package catalogsource

import (
	"fmt"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// TestPackageManifestsIncomplete derives the status for broken channels, and removes the condition with them.
func TestPackageManifestsIncomplete(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"}, Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop.test:50051"},
	}
	many := make([]string, maxNamedChannels+2)
	for i := range many {
		many[i] = fmt.Sprintf("lamp/c%02d", i)
	}
	for _, step := range []struct {
		broken []string
		want   string
	}{
		{[]string{"lamp/beta", "ruin/stable"}, "cannot be read: lamp/beta, ruin/stable; the supervisor's log"},
		{many, "lamp/c08, lamp/c09 and 2 more; the supervisor's log"},
		{nil, ""},
	} {
		state := catalogs.State{Address: source.Spec.Address, BrokenChannels: step.broken}
		source.Status = deriveStatus(source, state, true, &reconcileResult{}, minute(1))
		found := apimeta.FindStatusCondition(source.Status.Conditions, api.ConditionPackageManifestsIncomplete)
		if (found != nil) != (step.want != "") || found != nil && !strings.Contains(found.Message, step.want) {
			t.Errorf("%v: condition %+v, want %q", step.broken, found, step.want)
		}
	}
}

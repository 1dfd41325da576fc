package subscription

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func withdrawn(csv *operatorsv1alpha1.ClusterServiceVersion) {
	metav1.SetMetaDataAnnotation(&csv.ObjectMeta, api.AnnotationWithdrawn, api.WithdrawnToReturn)
}

// TestNotWithdrawn checks which versions stay although they were marked as withdrawn. A later
// deletion would leave their custom resources.
func TestNotWithdrawn(t *testing.T) {
	for _, tt := range []struct {
		reason, pin string
		newest      *operatorsv1alpha1.ClusterServiceVersion
		want        int
	}{
		{reason: "it is to go still", pin: "lamp.v1", newest: version("lamp.v2", "lamp", failed, replaces("lamp.v1"), withdrawn)},
		{reason: "it is going", pin: "lamp.v1", newest: version("lamp.v2", "lamp", failed, replaces("lamp.v1"), withdrawn, going)},
		{reason: "it is going, and the pin is gone", newest: version("lamp.v2", "lamp", failed, replaces("lamp.v1"), withdrawn, going)},
		{reason: "the pin is gone", newest: version("lamp.v2", "lamp", failed, replaces("lamp.v1"), withdrawn), want: 1},
		{reason: "it works", pin: "lamp.v1", newest: version("lamp.v2", "lamp", succeeded, replaces("lamp.v1"), withdrawn), want: 1},
		{reason: "it never was to go", newest: version("lamp.v2", "lamp", failed, replaces("lamp.v1"))},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			sub := subscription("my", "lamp", pinned(tt.pin))
			o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", replacing), tt.newest})
			if got := notWithdrawn(o.versions, decided(t, o)); len(got) != tt.want {
				t.Errorf("kept %v", got)
			}
		})
	}
}

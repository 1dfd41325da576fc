package operatorcondition

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestRefusedWrites checks that a write to a terminating namespace is not an error, and that a
// missing permission is one.
func TestRefusedWrites(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Group: "operators.coreos.com", Resource: "operatorconditions"}, "kettle.v1", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "operatorconditions"}, "kettle.v1", errors.New("no"))
	for name, tt := range map[string]struct {
		refusal error
		want    error
	}{
		"the namespace goes":      {refusal: terminating},
		"a permission is missing": {refusal: forbidden, want: forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := fixtures.Scheme(t)
			tried := 0
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(version()).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					tried++
					return tt.refusal
				},
			}).Build()
			r := &reconciler{client: c, clock: clock.RealClock{}}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(version())})
			if !errors.Is(err, tt.want) || result != (reconcile.Result{}) || tried != 1 {
				t.Errorf("got %+v, %v after %d tries; want error %v", result, err, tried, tt.want)
			}
		})
	}
}

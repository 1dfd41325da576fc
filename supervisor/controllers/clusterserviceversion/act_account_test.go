package clusterserviceversion

import (
	"context"
	"errors"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestConfirmAccount changes an OperatorGroup after it was read from the cache.
func TestConfirmAccount(t *testing.T) {
	scheme := fixtures.Scheme(t)
	group := func(account string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"}, Spec: operatorsv1.OperatorGroupSpec{ServiceAccountName: account},
		}
	}
	unanswered := errors.New("not now")
	cases := map[string]struct {
		reason string
		read   string
		live   *operatorsv1.OperatorGroup
		fails  error
		want   error
	}{
		"Same":       {reason: "the account is the one that was read", read: "cook", live: group("cook")},
		"None":       {reason: "there was no account and is none", live: group("")},
		"Added":      {reason: "the supervisor's own rights bound nothing any more", live: group("cook"), want: apply.ErrStale},
		"Changed":    {reason: "the former account may have had more rights", read: "cook", live: group("waiter"), want: apply.ErrStale},
		"Removed":    {reason: "the account bounds no more", read: "cook", live: group(""), want: apply.ErrStale},
		"Deleted":    {reason: "a deleted group has no account", read: "cook", want: apply.ErrStale},
		"Unanswered": {reason: "without an answer nothing is known", read: "cook", live: group("cook"), fails: unanswered, want: unanswered},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			if tc.live != nil {
				b.WithObjects(tc.live)
			}
			r := &installer{live: b.Build()}
			if err := r.confirmAccount(t.Context(), group(tc.read)); !errors.Is(err, tc.want) {
				t.Errorf("%s: confirmAccount() = %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// TestInstallConfirmsTheAccount changes the account between observation and installation: nothing
// is written.
func TestInstallConfirmsTheAccount(t *testing.T) {
	o := good(operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVReasonRequirementsMet)
	scheme := fixtures.Scheme(t)
	changed := o.Groups[0].DeepCopy()
	changed.Spec.ServiceAccountName = "cook"
	// Without a client for writes, a write would panic.
	r := &installer{live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.CSV.DeepCopy(), changed).Build()}
	if err := r.install(t.Context(), &state{Input: o}); !errors.Is(err, apply.ErrStale) {
		t.Errorf("install() = %v, want %v", err, apply.ErrStale)
	}
}

package installplan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// parsed returns an object from JSON.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestMerged(t *testing.T) {
	for _, tt := range []struct{ reason, wanted, live, want string }{
		{
			reason: "pull secrets of others are kept",
			wanted: `{"kind":"ServiceAccount","imagePullSecrets":[{"name":"mine"}]}`,
			live:   `{"kind":"ServiceAccount","imagePullSecrets":[{"name":"theirs"},{"name":"mine"}]}`,
			want:   `{"kind":"ServiceAccount","imagePullSecrets":[{"name":"mine"},{"name":"theirs"}]}`,
		},
		{
			reason: "a list that the bundle does not have is left alone",
			wanted: `{"kind":"ServiceAccount"}`,
			live:   `{"kind":"ServiceAccount","imagePullSecrets":[{"name":"theirs"}]}`,
			want:   `{"kind":"ServiceAccount"}`,
		},
		{
			reason: "an address stays",
			wanted: `{"kind":"Service","spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"type":"ClusterIP"}}`,
			live:   `{"kind":"Service","spec":{"clusterIP":"10.0.0.2"}}`,
			want:   `{"kind":"Service","spec":{"clusterIP":"10.0.0.2","type":"ClusterIP"}}`,
		},
		{
			reason: "anything else is applied as it is",
			wanted: `{"kind":"ConfigMap","data":{"a":"b"}}`, live: `{"kind":"ConfigMap","data":{"c":"d"}}`, want: `{"kind":"ConfigMap","data":{"a":"b"}}`,
		},
	} {
		if diff := cmp.Diff(parsed(t, tt.want), merged(parsed(t, tt.wanted), parsed(t, tt.live))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestRoleRefChanges(t *testing.T) {
	const live = `{"kind":"RoleBinding","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"a"}}`
	for wanted, want := range map[string]bool{
		live: false,
		`{"kind":"RoleBinding","roleRef":{"kind":"Role","name":"a"}}`: false,
		strings.Replace(live, `"a"`, `"b"`, 1):                        true,
		strings.Replace(live, `"Role"`, `"ClusterRole"`, 1):           true,
		strings.Replace(live, `RoleBinding`, `Role`, 1):               false,
	} {
		if got := roleRefChanges(parsed(t, wanted), parsed(t, live)); got != want {
			t.Errorf("%s: %v", wanted, got)
		}
	}
}

// TestRecreatesOnlyWhatItRead gives a binding of lamp.v1 another role, which requires that it is
// deleted. In one case its owner changes just before the deletion.
func TestRecreatesOnlyWhatItRead(t *testing.T) {
	scheme := fixtures.Scheme(t)
	const live = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"lamp"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"before"}}`
	for name, tc := range map[string]struct {
		reason string
		taken  bool
		role   string
	}{
		"Same":  {reason: "it has not changed", role: "after"},
		"Taken": {reason: "tray.v1 owns it since it was read", taken: true, role: "before"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := parsed(t, live)
			binding.SetLabels(plansteps.OwnerLabels("lamp.v1", "ops"))
			tray := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "tray.v1"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(binding, tray).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if tc.taken {
						now := &rbacv1.ClusterRoleBinding{}
						if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
							return err
						}
						now.Labels = plansteps.OwnerLabels("tray.v1", "ops")
						if err := c.Update(ctx, now); err != nil {
							return err
						}
					}
					return c.Delete(ctx, o, opts...)
				},
			}).Build()
			a := &objectApplier{observer: &observer{namespace: "ops", live: c}, writer: c}
			wanted := parsed(t, strings.Replace(live, "before", "after", 1))
			_, err := a.apply(t.Context(), wanted, &owner{namespace: "ops", name: "lamp.v1", pkg: "lamp"})
			if errors.Is(err, errOtherOwner) != tc.taken || err != nil && !tc.taken {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			got := &rbacv1.ClusterRoleBinding{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(binding), got); err != nil {
				t.Fatal(err)
			}
			if got.RoleRef.Name != tc.role {
				t.Errorf("%s: role %s, want %s", tc.reason, got.RoleRef.Name, tc.role)
			}
		})
	}
}

func TestAdvise(t *testing.T) {
	limited := &account{name: types.NamespacedName{Namespace: "ops", Name: "installer"}, group: types.NamespacedName{Namespace: "ops", Name: "group"}}
	forbidden := func(why string) error { return apierrors.NewForbidden(configMaps, "settings", errors.New(why)) }
	for _, tt := range []struct {
		err     error
		account *account
		command string
		want    string
	}{
		{err: forbidden("exceeded quota: few, requested: count=1"), account: limited, want: "raise the quota"},
		{err: forbidden(`admission webhook "strict.example" denied the request: no`), want: "change the policy"},
		{err: apierrors.NewBadRequest(`ValidatingAdmissionPolicy 'strict' with binding 'strict' denied request: no`), want: "change the policy"},
		{err: forbidden("no"), account: limited, want: "grant ServiceAccount ops/installer this permission, or remove spec.serviceAccountName from OperatorGroup ops/group"},
		{err: forbidden("no"), account: limited, command: "supervisor rbac", want: "grant ServiceAccount ops/installer this permission"},
		{err: forbidden("no"), want: "grant the supervisor this permission; "},
		{err: forbidden("no"), command: "supervisor rbac", want: "grant the supervisor this permission: supervisor rbac; the plan then continues"},
		{err: apierrors.NewBadRequest("no")},
	} {
		got := apiErrorRemedy(tt.err, tt.account, tt.command)
		if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
		if tt.want != "" && terminal(&stepError{step: planOf(phaseInstalling, true, "").Status.Plan[0], err: tt.err}, 1, 0) {
			t.Errorf("%v ends a plan", tt.err)
		}
	}
}

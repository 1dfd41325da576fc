package installplan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
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

func TestReconciled(t *testing.T) {
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
		if diff := cmp.Diff(parsed(t, tt.want), reconciled(parsed(t, tt.wanted), parsed(t, tt.live))); diff != "" {
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

func TestAdvise(t *testing.T) {
	limited := &account{name: types.NamespacedName{Namespace: "ops", Name: "installer"}, group: types.NamespacedName{Namespace: "ops", Name: "group"}}
	forbidden := func(why string) error { return apierrors.NewForbidden(configMaps, "settings", errors.New(why)) }
	for _, tt := range []struct {
		err     error
		account *account
		want    string
	}{
		{err: forbidden("exceeded quota: few, requested: count=1"), account: limited, want: "raise the quota"},
		{err: forbidden(`admission webhook "strict.example" denied the request: no`), want: "change the policy"},
		{err: apierrors.NewBadRequest(`ValidatingAdmissionPolicy 'strict' with binding 'strict' denied request: no`), want: "change the policy"},
		{err: forbidden("no"), account: limited, want: "grant ServiceAccount ops/installer that right, or take spec.serviceAccountName out of OperatorGroup ops/group"},
		{err: forbidden("no"), want: "the supervisor lacks that right: grant it"},
		{err: apierrors.NewBadRequest("no")},
	} {
		got := advise(tt.err, tt.account)
		if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
		if tt.want != "" && terminal(&stepError{step: planOf(working, true, "").Status.Plan[0], err: tt.err}, 1, 0) {
			t.Errorf("%v ends a plan", tt.err)
		}
	}
}

package packagemanifest

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestCertificateRotation renews a certificate. The API server must trust the authority of each one that is used.
func TestCertificateRotation(t *testing.T) {
	t.Parallel()
	now := testingclock.NewFakePassiveClock(time.Unix(1e9, 0))
	r := &registrar{installation: installationOf(Auto), clock: now, namespace: "chandlery-system"}
	step := func(stored *webhook.Certificate, live *unstructured.Unstructured) *webhook.Certificate {
		t.Helper()
		next, err := r.nextCertificate(stored, live)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	trusting := func(c *webhook.Certificate) *unstructured.Unstructured {
		return r.apiService(r.namespace, c.Bundle(), nil)
	}

	first := step(nil, nil)
	if again := step(first, trusting(first)); !bytes.Equal(again.Cert, first.Cert) || again.Next != nil {
		t.Error("a valid certificate is replaced")
	}
	now.SetTime(first.RotateAt)
	due := step(first, trusting(first))
	if due.Next == nil || !bytes.Equal(due.Cert, first.Cert) {
		t.Fatal("a certificate that is due has no successor, or is replaced at once")
	}
	if early := step(due, trusting(first)); !bytes.Equal(early.Cert, first.Cert) {
		t.Error("the successor is used before the API server trusts it")
	}
	used := step(due, trusting(due))
	if !bytes.Equal(used.Cert, due.Next.Cert) || !bytes.Equal(used.PreviousCA, first.CA) {
		t.Fatal("the successor is not used, or its predecessor is not trusted any more")
	}
	if soon := step(used, trusting(used)); len(soon.PreviousCA) == 0 {
		t.Error("the authority of the predecessor is removed while servers may use it")
	}
	now.SetTime(now.Now().Add(2 * overlap))
	if late := step(used, trusting(used)); len(late.PreviousCA) > 0 {
		t.Error("the authority of the predecessor remains")
	}
}

// TestDescribeOwner describes the owners of APIServices that a supervisor leaves unchanged.
func TestDescribeOwner(t *testing.T) {
	t.Parallel()
	service := map[string]any{"service": map[string]any{"namespace": "olm", "name": "packageserver-service"}}
	for name, tt := range map[string]struct {
		spec   map[string]any
		labels map[string]string
		owners []metav1.OwnerReference
		want   string
	}{
		"Service": {spec: service, want: "Service olm/packageserver-service"},
		"OLM": {
			spec:   service,
			labels: map[string]string{"olm.owner": "packageserver", "olm.owner.namespace": "olm", "olm.owner.kind": "ClusterServiceVersion", "other": "x"},
			want: "Service olm/packageserver-service, olm.owner.kind=ClusterServiceVersion, olm.owner.namespace=olm, " +
				"olm.owner=packageserver",
		},
		"Owners": {
			spec: service, owners: []metav1.OwnerReference{{Kind: "ClusterRole", Name: "shop"}, {Kind: "Node", Name: "n1"}},
			want: "Service olm/packageserver-service, ClusterRole shop, Node n1",
		},
		"APIServer": {
			labels: map[string]string{labelAutomanaged: "onstart"},
			want:   "kube-aggregator.kubernetes.io/automanaged=onstart",
		},
		"Nothing": {want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if tt.spec != nil {
				u.Object["spec"] = tt.spec
			}
			u.SetLabels(tt.labels)
			u.SetOwnerReferences(tt.owners)
			if got := describeOwner(u); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	var m Mode
	if m.String() != "auto" || m.Type() != "auto|disabled|only" {
		t.Errorf("the default is %s of %s", &m, m.Type())
	}
	for text, want := range map[string]Mode{"auto": Auto, "disabled": Disabled, "only": Only} {
		if err := m.Set(text); err != nil || m != want {
			t.Errorf("%s: %s, %v", text, m, err)
		}
	}
	if err := m.Set("always"); err == nil || m == "always" {
		t.Errorf("always: %s, %v", m, err)
	}
}

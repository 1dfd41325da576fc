package packagemanifest

import (
	"bytes"
	"testing"
	"time"

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

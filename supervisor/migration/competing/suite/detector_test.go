package suite_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}))
}

// lease returns the Lease of a supervisor, renewed at an arbitrary time.
func lease(namespace, holder string, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.LeaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	}
}

// TestLeases checks that only renewed Leases of other namespaces count.
func TestLeases(t *testing.T) {
	const seconds = 2
	c := controlplane.Client(t)
	own, other := controlplane.Namespace(t), controlplane.Namespace(t)
	look := func() (competing.Finding, time.Duration) {
		begun := time.Now()
		found, err := competing.NewDetector(competing.Config{Client: c, Namespace: own, ManagerNamespaces: []string{other}, Clock: clock.RealClock{}}).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found, time.Since(begun)
	}
	if err := c.Create(t.Context(), lease(own, "ourselves", seconds)); err != nil {
		t.Fatal(err)
	}
	if found, took := look(); found.State != competing.None || took > seconds*time.Second {
		t.Errorf("our own Lease: %+v after %s", found, took)
	}
	theirs := lease(other, "dead", seconds)
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	// The recent time in the Lease does not matter: its holder may be dead.
	if found, took := look(); found.State != competing.None || took < seconds*time.Second {
		t.Errorf("a Lease that is not renewed: %+v after %s", found, took)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// The renewal time comes from a clock that is an hour slow.
			theirs.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
			if err := c.Update(ctx, theirs); err != nil && ctx.Err() == nil {
				t.Errorf("renewing: %v", err)
			}
		}
	}()
	found, _ := look()
	stop()
	<-done
	if found.State != competing.Running || len(found.Supervisors) != 1 || found.Supervisors[0].Namespace != other || found.Supervisors[0].Holder != "dead" {
		t.Errorf("a Lease that is renewed: %+v", found)
	}
	nobody := ""
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Spec.HolderIdentity = &nobody
	if err := c.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if found, took := look(); found.State != competing.None || took > seconds*time.Second {
		t.Errorf("a Lease that was given back: %+v after %s", found, took)
	}
}

// TestForbidden checks that objects which may not be read are reported, and are not competing managers.
func TestForbidden(t *testing.T) {
	w := testenv.New(t)
	w.Config = testenv.ConfigOf(t, "somebody", "system:authenticated")
	c := w.ManagerClient()
	found, err := competing.NewDetector(competing.Config{Client: c, Namespace: "default", Clock: clock.RealClock{}}).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(found.Hidden, "\n")
	if found.State != competing.Unknown || found.Err() != nil || !strings.Contains(all, `cannot list resource "deployments"`) || !strings.Contains(all, `cannot list resource "leases"`) {
		t.Errorf("%+v", found)
	}
}

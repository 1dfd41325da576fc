package suite_test

import (
	"slices"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const uninstalling operatorsv1alpha1.SubscriptionConditionType = "Uninstalling"

// uninstall requests the uninstallation of the operator of a Subscription, waits for the finalizer,
// and deletes the Subscription.
func (w *world) uninstall(name string) {
	w.T.Helper()
	w.annotate(name, "chandlery.dev/on-delete", "uninstall")
	sub := w.becomes(name, func(sub *operatorsv1alpha1.Subscription) bool {
		return slices.Contains(sub.Finalizers, "chandlery.dev/uninstall")
	})
	if err := w.Delete(w.T.Context(), sub); err != nil {
		w.T.Fatal(err)
	}
}

// absent waits until there is no Subscription of a name.
func (w *world) absent(name string) {
	w.T.Helper()
	w.Eventually(func() bool {
		err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, &operatorsv1alpha1.Subscription{})
		return apierrors.IsNotFound(err)
	}).Should(gomega.BeTrue(), "subscription "+name+" is there still")
}

// TestUninstall removes an operator with its Subscription, also with a restart of the supervisor in
// between. The status shows what the Subscription waits for.
func TestUninstall(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp"))
	stop := w.supervise()
	w.succeed("lamp.v2")
	w.settled("my-lamp", "lamp.v2")
	w.uninstall("my-lamp")
	w.says("my-lamp", uninstalling, "WaitingOnCleanup", "waiting for clusterserviceversion lamp.v2")
	w.rests()
	stop()
	w.goes("lamp.v2")
	w.supervise()
	w.absent("my-lamp")
	if csv := w.version("lamp.v2"); csv != nil {
		t.Errorf("lamp.v2 is back: %+v", csv.Status)
	}
}

// TestDeletedWithoutWish keeps the operator where its uninstallation was not requested, or the
// request was withdrawn.
func TestDeletedWithoutWish(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	w.succeed("lamp.v2")
	sub := w.settled("my-lamp", "lamp.v2")
	if len(sub.Finalizers) > 0 {
		t.Errorf("finalizers %q", sub.Finalizers)
	}
	w.annotate("my-lamp", "chandlery.dev/on-delete", "uninstall")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return len(sub.Finalizers) == 1 })
	w.annotate("my-lamp", "chandlery.dev/on-delete", "")
	sub = w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return len(sub.Finalizers) == 0 })
	if err := w.Delete(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	w.absent("my-lamp")
	if csv := w.version("lamp.v2"); csv == nil || !csv.DeletionTimestamp.IsZero() {
		t.Errorf("lamp.v2 is gone or going: %+v", csv)
	}
}

// TestUninstallTakesDependenciesAlong removes the dependencies that only this operator needed, and
// no others.
func TestUninstallTakesDependenciesAlong(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(single("tray", requiresPackage("bulb"), requiresPackage("wire")), single("desk", requiresPackage("wire")), single("bulb"), single("wire"))
	w.Create(w.subscription("my-tray", "tray"))
	w.supervise()
	for _, name := range []string{"tray.v1", "bulb.v1", "wire.v1"} {
		w.succeed(name)
	}
	w.settled("my-tray", "tray.v1")
	w.Create(w.subscription("my-desk", "desk"))
	w.succeed("desk.v1")
	w.settled("my-desk", "desk.v1")
	bulb, wire := "bulb-stable-shop-"+w.Namespace, "wire-stable-shop-"+w.Namespace
	w.settled(bulb, "bulb.v1")
	w.settled(wire, "wire.v1")

	w.uninstall("my-tray")
	w.goes("tray.v1")
	w.says("my-tray", uninstalling, "WaitingOnDependencies", "subscription "+bulb)
	w.goes("bulb.v1")
	w.absent(bulb)
	w.absent("my-tray")
	w.settled(wire, "wire.v1")

	// The dependency of desk stays as long as desk does, and its status reports that.
	w.uninstall(wire)
	w.says(wire, uninstalling, "StillRequired", "clusterserviceversion desk.v1 requires an operator with package: wire")
	w.uninstall("my-desk")
	w.goes("desk.v1")
	w.goes("wire.v1")
	w.absent("my-desk")
	w.absent(wire)
}

// TestUninstallEndsAPlanThatWaits removes a plan that waits for approval, so that it installs
// nothing later.
func TestUninstallEndsAPlanThatWaits(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp", manual))
	w.supervise()
	w.onlyPlan(asking)
	w.uninstall("my-lamp")
	w.absent("my-lamp")
	w.Eventually(func() int { return len(w.plans()) }).Should(gomega.BeZero())
}

package suite_test

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitsFor makes a version wait, in place of its controller.
func (w *world) waitsFor(name, message string) {
	w.T.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = w.Namespace, name
	text := fmt.Appendf(nil, `{"status":{"phase":"Pending","reason":"OperatorConditionNotUpgradeable","message":%q}}`, message)
	w.Eventually(func() error {
		return w.Status().Patch(w.T.Context(), csv, client.RawPatch("application/merge-patch+json", text))
	}).Should(gomega.Succeed())
}

// TestUpdateThatWaits has an operator that prevents its update, for changing reasons.
func TestUpdateThatWaits(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(w.lamp(3))
	w.Create(w.subscription("my-lamp", "lamp", start("lamp.v2")))
	w.supervise()
	w.succeed("lamp.v2")
	w.waitsFor("lamp.v3", "operator is not upgradeable: it is hot")
	sub := w.says("my-lamp", heldBack, "OperatorConditionNotUpgradeable", "clusterserviceversion lamp.v3 is in phase Pending: operator is not upgradeable: it is hot; lamp.v2 stays installed until then")
	if sub.Status.State != upgrading || sub.Status.InstalledCSV != "lamp.v2" {
		t.Errorf("status %+v", sub.Status)
	}
	w.waitsFor("lamp.v3", "operator is not upgradeable: it is warm")
	w.rests()
	w.succeed("lamp.v3")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.InstalledCSV == "lamp.v3" && sub.Status.GetCondition(heldBack).Status != "True"
	})
}

// TestConfigThatCannotBeRead checks the condition about an invalid annotation, and about one that names a container
// that no Deployment has.
func TestConfigThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	w.succeed("lamp.v2")
	w.annotate("my-lamp", "chandlery.dev/config", `{"replicas": -1}`)
	w.says("my-lamp", "ConfigInvalid", "InvalidAnnotation", "replicas: Invalid value: -1: must be a 32-bit integer of at least 0")
	w.annotate("my-lamp", "chandlery.dev/config", `{"args": {"unknown": ["-v"]}}`)
	w.says("my-lamp", "ConfigInvalid", "UnknownContainer", "args[unknown]: no Deployment of lamp.v2 has this container; their containers are ")
	w.annotate("my-lamp", "chandlery.dev/config", `{"replicas": 1}`)
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.GetCondition("ConfigInvalid").Status != "True"
	})
}

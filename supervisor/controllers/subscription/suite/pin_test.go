package suite_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

const heldBack operatorsv1alpha1.SubscriptionConditionType = "NewerVersionHeld"

// annotate sets an annotation of a Subscription, or removes it when the value is empty.
func (w *world) annotate(name, key, value string) {
	w.T.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	sub := w.subscription(name, "")
	sub.Spec = nil
	w.patch(sub, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text))
}

// pin pins the Subscription of these tests to a version, or removes the pin.
func (w *world) pin(version string) { w.annotate("my-lamp", "chandlery.dev/pin", version) }

// version returns a ClusterServiceVersion; nil when there is none.
func (w *world) version(name string) *operatorsv1alpha1.ClusterServiceVersion {
	w.T.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, csv)
	if client.IgnoreNotFound(err) != nil {
		w.T.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return csv
}

// phase sets the phase of a version, in place of its controller, which does not run here.
func (w *world) phase(name string, phase operatorsv1alpha1.ClusterServiceVersionPhase) {
	w.T.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = w.Namespace, name
	w.Eventually(func() error {
		return w.Status().Patch(w.T.Context(), csv, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"phase":%q,"conditions":[{"phase":%q}]}}`, phase, phase)))
	}).Should(gomega.Succeed())
}

// goes waits until a version is being deleted, and removes its finalizer in place of its
// controller.
func (w *world) goes(name string) {
	w.T.Helper()
	w.Eventually(func() bool {
		csv := w.version(name)
		return csv == nil || !csv.DeletionTimestamp.IsZero()
	}).Should(gomega.BeTrue(), name+" is not deleted")
	if csv := w.version(name); csv != nil {
		w.patch(csv, `{"metadata":{"finalizers":null}}`)
	}
}

// replaced deletes a version that another one has replaced.
func (w *world) replaced(name string) {
	w.T.Helper()
	if err := w.Delete(w.T.Context(), w.version(name)); err != nil {
		w.T.Fatal(err)
	}
	w.goes(name)
}

// TestPin installs a version that is not the newest, keeps it, and continues after the pin is
// removed. It then returns to older versions and continues again.
func TestPin(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(w.lamp(3))
	sub := w.subscription("my-lamp", "lamp", start("lamp.v1"))
	sub.Annotations = map[string]string{"chandlery.dev/pin": "lamp.v2"}
	w.Create(sub)
	w.supervise()
	w.succeed("lamp.v2")
	w.settled("my-lamp", "lamp.v2")
	w.says("my-lamp", heldBack, "Pinned", "lamp.v3 is available")
	w.rests()

	w.pin("")
	w.succeed("lamp.v3")
	w.replaced("lamp.v2")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
		return sub.Status.InstalledCSV == "lamp.v3" && sub.Status.GetCondition(heldBack).Status != "True"
	})

	// Return over two versions, and to and fro: no two versions replace each other.
	for _, step := range []struct{ from, to string }{{"lamp.v3", "lamp.v1"}, {"lamp.v1", "lamp.v2"}, {"lamp.v2", "lamp.v1"}, {"lamp.v1", "lamp.v2"}} {
		w.pin(step.to)
		w.succeed(step.to)
		if csv, was := w.version(step.to), w.version(step.from); csv.Spec.Replaces != step.from || was.Spec.Replaces == step.to {
			t.Fatalf("%s replaces %q, %s replaces %q", step.to, csv.Spec.Replaces, step.from, was.Spec.Replaces)
		}
		w.replaced(step.from)
		w.settled("my-lamp", step.to)
	}
}

// TestPinRefused pins to missing versions, and to versions without an upgrade path.
func TestPinRefused(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	w.succeed("lamp.v2")
	w.settled("my-lamp", "lamp.v2")
	w.pin("lamp.v9")
	sub := w.says("my-lamp", unresolved, "ConstraintsNotSatisfiable", "no operators found with name lamp.v9 in channel stable of package lamp")
	if sub.Status.InstalledCSV != "lamp.v2" || sub.Status.State != latest {
		t.Errorf("status %+v", sub.Status)
	}
	w.pin("")
	w.settled("my-lamp", "lamp.v2")
}

// TestPinWithdrawsAnUpdateThatFailed returns to the version that a failed update was to replace,
// and keeps the custom resources.
func TestPinWithdrawsAnUpdateThatFailed(t *testing.T) {
	w := newWorld(t)
	w.Create(w.subscription("my-lamp", "lamp", start("lamp.v1")))
	w.supervise()
	w.succeed("lamp.v1")
	w.phase("lamp.v2", "Failed")
	w.phase("lamp.v1", "Replacing")
	w.says("my-lamp", "ClusterServiceVersionUnhealthy", "", "clusterserviceversion lamp.v2 is in phase Failed")

	w.pin("lamp.v1")
	w.Eventually(func() bool {
		csv := w.version("lamp.v2")
		return csv != nil && !csv.DeletionTimestamp.IsZero() && csv.Annotations[api.AnnotationWithdrawn] == api.WithdrawnToReturn
	}).Should(gomega.BeTrue())
	w.goes("lamp.v2")
	w.succeed("lamp.v1")
	w.settled("my-lamp", "lamp.v1")
	w.says("my-lamp", heldBack, "Pinned", "lamp.v2 is available")
	if got := w.version("lamp.v2"); got != nil {
		t.Errorf("lamp.v2 is back: %+v", got.Status)
	}
	// Without the pin, it tries again.
	w.pin("")
	w.succeed("lamp.v2")
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.InstalledCSV == "lamp.v2" })
}

// wick returns a CustomResourceDefinition of this test, with fields of its spec.
func (w *world) wick(fields ...string) string {
	properties := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, name := range fields {
		properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	group := w.Namespace + ".suite.example"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.APIVersion, crd.Kind, crd.Name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", "wicks."+group
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "wicks", Singular: "wick", Kind: "Wick", ListKind: "WickList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: properties}},
			}},
		}},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		w.T.Fatal(err)
	}
	delete(object, "status")
	text, err := json.Marshal(object)
	if err != nil {
		w.T.Fatal(err)
	}
	return string(text)
}

// TestPinLosesNothing does not return to a version whose definition would drop a field of an
// object. The status names the field, and the return follows the fix.
func TestPinLosesNothing(t *testing.T) {
	w := newWorld(t)
	lamp := w.lamp(2)
	entries := lamp.Channels[0].Entries
	for i := range entries {
		entries[i].Objects = append(entries[i].Objects, w.wick([]string{"length", "colour"}[:i+1]...))
	}
	w.server.Serve(fakecatalog.Simple("lamp", entries...))
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	w.succeed("lamp.v2")
	w.settled("my-lamp", "lamp.v2")
	wick := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"length": "1", "colour": "red"}}}
	wick.SetGroupVersionKind(schema.GroupVersionKind{Group: w.Namespace + ".suite.example", Version: "v1", Kind: "Wick"})
	wick.SetNamespace(w.Namespace)
	wick.SetName("long")
	w.Create(wick)

	w.pin("lamp.v1")
	w.says("my-lamp", unresolved, "ConstraintsNotSatisfiable", "Wick "+w.Namespace+"/long uses field v1 spec.colour, which lamp.v1 does not know and would drop")
	if w.version("lamp.v1") != nil || len(w.plans()) != 1 {
		t.Error("something was changed")
	}
	w.patch(wick, `{"spec":{"colour":null}}`)
	// The object causes no event; another event causes another check.
	w.pin(" lamp.v1")
	w.succeed("lamp.v1")
	w.replaced("lamp.v2")
	w.settled("my-lamp", "lamp.v1")
}

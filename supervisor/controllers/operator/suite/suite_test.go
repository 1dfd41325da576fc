package suite_test

import (
	"os"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/operator"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// world gives a test access to the cluster.
type world struct{ *testenv.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{testenv.New(t)}
}

// written returns the write requests of supervisors that concern the test. The names of its
// cluster-scoped objects end in the name of its namespace.
func (w *world) written() []string {
	return w.Requests.Writes(testenv.Containing(w.Namespace), testenv.WithoutEvents)
}

// supervise runs the controllers until the end of the test.
func (w *world) supervise() {
	w.T.Helper()
	w.StartManager(ctrl.Options{}, func(mgr testenv.Manager) error {
		crds, err := crdcache.Add(mgr)
		if err != nil {
			return err
		}
		return operator.Setup(mgr, operator.Options{CRDs: crds})
	})
}

// status writes the status of an object.
func (w *world) status(obj client.Object) {
	w.T.Helper()
	if err := w.Status().Update(w.T.Context(), obj); err != nil {
		w.T.Fatalf("writing the status of %T %s: %v", obj, obj.GetName(), err)
	}
}

// bears waits until an object has, or lacks, a label.
func (w *world) bears(obj client.Object, label string, wanted bool) {
	w.T.Helper()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(obj), obj)).To(gomega.Succeed())
		_, has := obj.GetLabels()[label]
		g.Expect(has).To(gomega.Equal(wanted), "%T %s: %v", obj, obj.GetName(), obj.GetLabels())
	})
}

// shows waits until the Operator of the test passes all checks.
func (w *world) shows(checks ...func(gomega.Gomega, *operatorsv1.Operator)) *operatorsv1.Operator {
	w.T.Helper()
	o := &operatorsv1.Operator{}
	w.EventuallySucceeds(func(g gomega.Gomega) {
		*o = operatorsv1.Operator{}
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Name: w.operator()}, o)).To(gomega.Succeed())
		g.Expect(o.Status.Components).NotTo(gomega.BeNil())
		for _, check := range checks {
			check(g, o)
		}
	})
	return o
}

// operator returns the name of the test's Operator.
func (w *world) operator() string { return "kettle." + w.Namespace }

// label returns the label of its components.
func (w *world) label() string { return plansteps.ComponentLabel("kettle", w.Namespace) }

// listed returns the components of an Operator in the order of its status.
func listed(o *operatorsv1.Operator) []string {
	var names []string
	for _, ref := range o.Status.Components.Refs {
		names = append(names, ref.APIVersion+" "+ref.Kind+" "+ref.Namespace+"/"+ref.Name)
	}
	return names
}

// conditionsOf returns the conditions of the first component of a kind.
func conditionsOf(o *operatorsv1.Operator, kind string) map[string]string {
	found := map[string]string{}
	for _, ref := range o.Status.Components.Refs {
		if ref.Kind != kind {
			continue
		}
		for _, c := range ref.Conditions {
			found[string(c.Type)] = string(c.Status)
		}
		break
	}
	return found
}

// subscription creates a Subscription to the package kettle with an installed version.
func (w *world) subscription(installed string) *operatorsv1alpha1.Subscription {
	w.T.Helper()
	sub := fixtures.Subscription(w.Namespace, "kettle", "kettle", "shop")
	w.Create(sub)
	sub.Status.InstalledCSV, sub.Status.LastUpdated = installed, metav1.Now()
	w.status(sub)
	return sub
}

// group returns the API group of the test's operator.
func (w *world) group() string { return "kettles." + w.Namespace }

// version returns a version that provides cups.
func (w *world) version(name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle(w.Namespace, name)
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups." + w.group(), Version: "v1", Kind: "Cup"}}
	return csv
}

// owned makes a version the owner of an object: by a reference, or by labels for a cluster-scoped
// object.
func (w *world) owned(csv *operatorsv1alpha1.ClusterServiceVersion, obj client.Object) client.Object {
	w.T.Helper()
	obj.SetLabels(map[string]string{api.LabelManaged: "true"})
	if namespaced, err := w.IsObjectNamespaced(obj); err != nil {
		w.T.Fatal(err)
	} else if !namespaced {
		obj.SetLabels(plansteps.OwnerLabels(csv.Name, w.Namespace))
		return obj
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: csv.Name, UID: csv.UID,
	}})
	return obj
}

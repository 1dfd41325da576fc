package suite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

func TestRestWritesNothing(t *testing.T) {
	w := newWorld(t)
	stop := w.supervise()
	pantry, cellar := controlplane.Namespace(t), controlplane.Namespace(t)
	_, csv := w.installs(pantry, cellar)
	for _, namespace := range []string{pantry, cellar} {
		w.granted(namespace, w.copied(csv, namespace), rules("get", "list"))
	}
	before, versions := w.quiet(), w.versions()
	// Events elsewhere must not cause writes here.
	controlplane.Namespace(t)
	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Labels["operators.coreos.com/other.kitchen"] = "" })
	if got := w.quiet(); got != before {
		t.Errorf("%d writes at rest", got-before)
	}

	stop()
	w.supervise()
	if got := w.quiet(); got != before {
		t.Errorf("%d writes after a start that changed nothing", got-before)
	}
	if diff := cmp.Diff(versions, w.versions()); diff != "" {
		t.Errorf("copies have changed: -before, +after:\n%s", diff)
	}
}

func TestCopiesOfAnotherManagerAreTakenOverAsTheyAre(t *testing.T) {
	w := newWorld(t)
	pantry := controlplane.Namespace(t)
	_, csv := w.installs(pantry)
	w.Expect(w.Delete(t.Context(), roleIn(w.Namespace))).To(gomega.Succeed())
	w.Expect(w.Delete(t.Context(), bindingIn(w.Namespace))).To(gomega.Succeed())

	// OLM's copy has everything except the targets and the component label.
	theirs := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pantry, Name: name,
			Labels: map[string]string{"olm.api.abc": "provided", "olm.copiedFrom": w.Namespace},
			Annotations: map[string]string{
				"alm-examples": "[]", "olm.operatorGroup": "group", "olm.operatorNamespace": w.Namespace,
			},
		},
		Spec: csv.Spec,
	}
	w.Create(theirs)
	changeStatus(w, theirs, func(c *operatorsv1alpha1.ClusterServiceVersion) {
		c.Status = csv.Status
		c.Status.Reason = "Copied"
		c.Status.Message = "The operator is running in " + w.Namespace + " but is managing this namespace"
	})
	before := w.versions()
	w.supervise()
	if got := w.quiet(); got != 0 {
		t.Errorf("%d writes to take over a copy that is as it should be", got)
	}
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("it has changed: -before, +after:\n%s", diff)
	}

	change(w, csv, func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Spec.Description = "Boils more water." })
	w.copied(csv, pantry)
}

// versions returns the resource versions of all copies of the test's version by namespace.
func (w *world) versions() map[string]string {
	w.T.Helper()
	var list operatorsv1alpha1.ClusterServiceVersionList
	w.Expect(w.List(w.T.Context(), &list, client.MatchingLabels{"olm.copiedFrom": w.Namespace})).To(gomega.Succeed())
	found := map[string]string{}
	for i := range list.Items {
		found[list.Items[i].Namespace] = list.Items[i].ResourceVersion
	}
	return found
}

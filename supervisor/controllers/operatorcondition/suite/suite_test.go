package suite_test

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/operatorcondition"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	// account is the service account of the test's operator.
	account = "kettle"
	// own is the name of its version and of all objects of the version.
	own = "kettle.v1"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// world gives a test access to the cluster.
type world struct{ *testenv.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{testenv.New(t)}
	w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}})
	return w
}

// written returns the write requests of supervisors in the namespace of the test.
func (w *world) written() []string {
	return w.Requests.Writes(testenv.Containing("/"+w.Namespace+"/"), testenv.WithoutEvents)
}

// supervise runs the controller until the end of the test.
func (w *world) supervise() {
	w.T.Helper()
	w.StartManager(ctrl.Options{}, func(mgr testenv.Manager) error {
		return operatorcondition.Setup(mgr, operatorcondition.Options{})
	})
}

// appears waits until an object with the name of the version exists and passes all checks.
func (w *world) appears(obj client.Object, checks ...func(gomega.Gomega)) {
	w.T.Helper()
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: own}, obj)).To(gomega.Succeed())
		for _, check := range checks {
			check(g)
		}
	})
}

// absent waits until no object with the name of the version exists.
func (w *world) absent(obj client.Object) {
	w.T.Helper()
	obj.SetNamespace(w.Namespace)
	obj.SetName(own)
	w.EventuallyGone(obj)
}

// version returns a version whose Deployments run as account.
func version(name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle("", name)
	fixtures.PodSpec(csv).ServiceAccountName = account
	return csv
}

// operator returns a client with the permissions of the operator.
func (w *world) operator() client.Client {
	w.T.Helper()
	cfg := controlplane.Get(w.T).Config()
	cfg.Impersonate.UserName = "system:serviceaccount:" + w.Namespace + ":" + account
	cfg.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + w.Namespace, "system:authenticated"}
	c, err := client.New(cfg, client.Options{Scheme: w.Scheme()})
	if err != nil {
		w.T.Fatalf("making a client for the operator: %v", err)
	}
	return c
}

// upgradeable returns the condition Upgradeable as an operator or an administrator writes it.
func upgradeable(status metav1.ConditionStatus) []metav1.Condition {
	return []metav1.Condition{{
		Type: operatorsv2.Upgradeable, Status: status, Reason: "Boiling", Message: "the kettle is on", LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	}}
}

package suite_test

import (
	"errors"
	"os"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/copiedcsv"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// world gives a test access to the cluster. Its namespace is that of the operator.
type world struct{ *testenv.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{testenv.New(t)}
}

// supervise runs the controllers until the end of the test, or until stop is called.
func (w *world) supervise(change ...func(*copiedcsv.Options)) (stop func()) {
	w.T.Helper()
	originals, err := labels.Parse("!" + api.LabelCopiedFrom)
	if err != nil {
		w.T.Fatal(err)
	}
	o := copiedcsv.Options{}
	for _, c := range change {
		c(&o)
	}
	return w.StartManager(ctrl.Options{
		Cache: cache.Options{DefaultTransform: informer.Transform, ByObject: map[client.Object]cache.ByObject{
			&operatorsv1alpha1.ClusterServiceVersion{}: {Label: originals},
		}},
	}, func(mgr testenv.Manager) error {
		return errors.Join(groupindex.Add(mgr.Context, mgr.GetFieldIndexer()), copiedcsv.Setup(mgr, o))
	})
}

// change updates an object and retries after conflicts.
func change[T client.Object](w *world, obj T, how func(T)) {
	w.T.Helper()
	w.Modify(obj, func() { how(obj) })
}

// changeStatus updates the status of an object and retries after conflicts.
func changeStatus[T client.Object](w *world, obj T, how func(T)) {
	w.T.Helper()
	w.ModifyStatus(obj, func() { how(obj) })
}

// quiet waits until the controllers have written nothing for a while, and returns the number of their writes.
func (w *world) quiet() int {
	w.T.Helper()
	return w.EventuallyIdle(func() []string { return w.Requests.Writes(testenv.WithoutEvents) })
}

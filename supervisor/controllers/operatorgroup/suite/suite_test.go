package suite_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
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

// errCut is the error of requests after a supervisor was disconnected from the API server.
var errCut = errors.New("cut off")

// wire limits the number of write requests of a supervisor.
type wire struct {
	next   http.RoundTripper
	writes *atomic.Int64
	limit  int64
}

// RoundTrip forwards a request unless it is a write beyond the limit.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && w.writes.Add(1) > w.limit {
		return nil, errCut
	}
	return w.next.RoundTrip(req)
}

// supervise runs the controllers until the end of the test, or until stop is called.
func (w *world) supervise() (stop func()) {
	w.T.Helper()
	return w.StartManager(ctrl.Options{}, func(mgr testenv.Manager) error {
		return errors.Join(groupindex.Add(mgr.Context, mgr.GetFieldIndexer()), operatorgroup.Setup(mgr, operatorgroup.Options{}))
	})
}

// superviseFor runs controllers that are disconnected after a number of writes. cut reports whether they are.
func (w *world) superviseFor(limit int64) (cut func() bool, stop func()) {
	w.T.Helper()
	writes := &atomic.Int64{}
	limited := *w.World
	limited.Config = rest.CopyConfig(w.Config)
	limited.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next: next, writes: writes, limit: limit} })
	return func() bool { return writes.Load() > limit }, (&world{&limited}).supervise()
}

func (w *world) remove(obj client.Object) {
	w.T.Helper()
	w.Expect(w.Delete(w.T.Context(), obj)).To(gomega.Succeed(), "deleting %T %s", obj, obj.GetName())
}

// stillExists checks after the test that the role of another owner exists.
func (w *world) stillExists(role *rbacv1.ClusterRole) {
	w.T.Helper()
	if err := w.Get(context.WithoutCancel(w.T.Context()), client.ObjectKeyFromObject(role), role); err != nil {
		w.T.Errorf("the role of another owner: %v", err)
	}
}

// staysQuiet fails if the supervisors write while nothing changes.
func (w *world) staysQuiet() {
	w.T.Helper()
	w.EventuallyIdle(func() []string { return w.Requests.Writes() })
}

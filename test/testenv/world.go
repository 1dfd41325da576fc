package testenv

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
)

const (
	// Patience is how long an expected state may take.
	Patience = controlplane.Timeout
	// Polling is the interval between checks whether a state is reached.
	Polling = 200 * time.Millisecond
	// restPolling is the interval between checks that a state stays unchanged.
	restPolling = 20 * time.Millisecond
	// Rest is how long a state must stay unchanged.
	Rest = 3 * time.Second
)

// World is a test's part of the control plane: a namespace of its own, a client with all permissions, and the managers
// that it starts. The assertions of its embedded WithT wait for Patience, and check that a state stays for Rest.
type World struct {
	client.Client
	*gomega.WithT

	T         *testing.T
	Namespace string
	// Config is the access of the managers to the API server: all permissions, unless a test changes it.
	Config *rest.Config
	// Requests are the requests of the managers.
	Requests *Requests

	// test is the test that New was called for. T may be a subtest.
	test *testing.T
}

// New creates a namespace for a test.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{
		Client: controlplane.Client(t), Namespace: controlplane.Namespace(t), Config: controlplane.Get(t).Config(), Requests: &Requests{}, test: t,
	}
	return w.In(t)
}

// In returns the same World for a subtest. What the subtest creates is there until the end of the test.
func (w *World) In(t *testing.T) *World {
	t.Helper()
	sub := *w
	sub.T, sub.WithT = t, gomega.NewWithT(t)
	sub.SetDefaultEventuallyTimeout(Patience)
	sub.SetDefaultEventuallyPollingInterval(Polling)
	sub.SetDefaultConsistentlyDuration(Rest)
	sub.SetDefaultConsistentlyPollingInterval(restPolling)
	return &sub
}

// Get reads an object into a zeroed value. A decoder would not reset fields that are absent.
func (w *World) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().SetZero()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return w.Client.Get(ctx, key, obj, opts...)
}

// Create creates objects, those without a namespace in that of the test. Objects outside of that namespace are deleted
// after the test.
func (w *World) Create(objects ...client.Object) {
	w.T.Helper()
	for _, obj := range objects {
		namespaced, err := w.IsObjectNamespaced(obj)
		if err != nil {
			w.T.Fatal(err)
		}
		if namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace(w.Namespace)
		}
		if err := w.Client.Create(w.T.Context(), obj); err != nil {
			w.T.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
		if obj.GetNamespace() != w.Namespace {
			w.DeleteAtEnd(obj)
		}
	}
}

// DeleteAtEnd deletes objects after the test, if they exist then.
func (w *World) DeleteAtEnd(objects ...client.Object) {
	w.test.Cleanup(func() {
		ctx := context.WithoutCancel(w.test.Context())
		for _, obj := range objects {
			end := func() error { return w.Delete(ctx, obj) }
			if _, is := obj.(*corev1.Namespace); is {
				end = func() error { return controlplane.Get(w.test).DiscardNamespace(ctx, obj.GetName()) }
			}
			if err := client.IgnoreNotFound(end()); err != nil {
				w.test.Errorf("deleting %T %s: %v", obj, obj.GetName(), err)
			}
		}
	})
}

// Modify reads an object, changes it and updates it, and tries again after a conflict.
func (w *World) Modify(obj client.Object, change func()) {
	w.T.Helper()
	w.modify(obj, change, func() error { return w.Update(w.T.Context(), obj) })
}

// ModifyStatus does the same as Modify with the status of an object.
func (w *World) ModifyStatus(obj client.Object, change func()) {
	w.T.Helper()
	w.modify(obj, change, func() error { return w.Status().Update(w.T.Context(), obj) })
}

func (w *World) modify(obj client.Object, change func(), write func() error) {
	w.T.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return write()
	}).Should(gomega.Succeed())
}

// EventuallySucceeds waits until all assertions of a check hold.
func (w *World) EventuallySucceeds(check func(gomega.Gomega)) {
	w.T.Helper()
	w.Eventually(check).Should(gomega.Succeed())
}

// EventuallyGone waits until an object does not exist.
func (w *World) EventuallyGone(obj client.Object) {
	w.T.Helper()
	key := client.ObjectKeyFromObject(obj)
	w.Eventually(func(g gomega.Gomega) {
		err := w.Get(w.T.Context(), key, obj)
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%T %s exists: %v", obj, key, err)
	}).Should(gomega.Succeed())
}

// EventuallyIdle waits until the number of requests stays the same for Rest, and returns it.
func (w *World) EventuallyIdle(requests func() []string) int {
	w.T.Helper()
	last, since := len(requests()), time.Now()
	w.Eventually(func() time.Duration {
		if now := len(requests()); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since)
	}).Should(gomega.BeNumerically(">", Rest), "the managers continue to write")
	return last
}

// Until waits for the time limit until left returns an empty text, and fails the test with the last text after that.
func Until(t *testing.T, limit time.Duration, what string, left func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := pause.Until(ctx, slowPolling, func() string { return left(ctx) }); err != nil {
		t.Fatalf("waited %s for %s: %v", limit, what, err)
	}
}

// slowPolling is the interval of Until, whose checks may read a whole cluster.
const slowPolling = 200 * time.Millisecond

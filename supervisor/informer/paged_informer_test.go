package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// server is an API server that does not stream lists. From its cache it sends all objects at once, as API
// servers do.
type server struct {
	objects int
	expires int
	largest int
	pages   int
}

// IsWatchListSemanticsUnSupported returns true: the server does not stream lists.
func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists a page.
func (s *server) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	from, _ := strconv.Atoi(o.Continue)
	if from > 0 && s.expires > 0 {
		s.expires--
		return nil, apierrors.NewResourceExpired("the continue token is too old")
	}
	to := s.objects
	if o.Limit > 0 && o.ResourceVersion != "0" {
		to = min(to, from+int(o.Limit))
	}
	s.pages++
	s.largest = max(s.largest, to-from)
	list := &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := from; i < to; i++ {
		list.Items = append(list.Items, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("%05d", i), Labels: many("a", 8<<10)}})
	}
	if to < s.objects {
		list.Continue = strconv.Itoa(to)
	}
	return list, nil
}

// WatchWithContext returns a watch without events.
func (s *server) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, errors.New("the server does not stream lists")
	}
	return watch.NewFake(), nil
}

// List implements an older interface.
func (s *server) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

// Watch watches.
func (s *server) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// TestInformerListsInPages uses an API server that does not stream lists, and that loses the state of lists.
func TestInformerListsInPages(t *testing.T) {
	for name, expires := range map[string]int{"at once": 0, "after the list was forgotten": 2} {
		t.Run(name, func(t *testing.T) { listsInPages(t, &server{objects: 900, expires: expires}) })
	}
}

func listsInPages(t *testing.T, s *server) {
	t.Helper()
	began := time.Now()
	i := informer.New(s, &corev1.Service{}, 0, toolscache.Indexers{})
	if err := i.SetTransform(informer.Transform); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go i.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		t.Fatal("the informer does not fill its cache")
	}
	if got := len(i.GetStore().List()); got != s.objects {
		t.Errorf("%d objects, want %d", got, s.objects)
	}
	if !informer.LastPage().After(began) {
		t.Errorf("the last page was read at %s, want after %s", informer.LastPage(), began)
	}
	if s.largest > 64 || s.pages < s.objects/64 {
		t.Errorf("%d pages, the largest has %d objects", s.pages, s.largest)
	}
	for _, o := range i.GetStore().List() {
		if service, is := o.(*corev1.Service); !is || !informer.Trimmed(service) {
			t.Fatalf("an object was not transformed: %T", o)
		}
	}
}

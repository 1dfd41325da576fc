package discovery

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted is an API server that counts the lists of widgets.
type counted struct {
	status atomic.Int64
	lists  atomic.Int64
	// hold, if not nil, blocks each list. entered receives a value when a list is blocked.
	hold, entered chan struct{}
}

func (c *counted) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != pathResource {
		http.NotFound(w, req)
		return
	}
	c.lists.Add(1)
	if c.hold != nil {
		c.entered <- struct{}{}
		select {
		case <-c.hold:
		case <-req.Context().Done():
			return
		}
	}
	w.WriteHeader(int(c.status.Load()))
	reply(w, metav1.List{})
}

func newCounted(t *testing.T, held bool) (*counted, *Finder, *testingclock.FakePassiveClock) {
	t.Helper()
	server := &counted{}
	if held {
		server.hold, server.entered = make(chan struct{}), make(chan struct{}, 100)
	}
	server.status.Store(http.StatusOK)
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	clock := testingclock.NewFakePassiveClock(now)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	finder, err := New(&rest.Config{Host: listening.URL, Transport: transport}, Options{Clock: clock, InstalledTTL: time.Minute, OtherTTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return server, finder, clock
}

func find(t *testing.T, finder *Finder, want Outcome) {
	t.Helper()
	got, err := finder.Find(t.Context(), Auto, widgets())
	if err != nil || got.Outcome != want {
		t.Errorf("Find(...): %s (%s), %v, want %s", got.Outcome, got.Message(), err, want)
	}
}

func TestResultsAreCached(t *testing.T) {
	server, finder, clock := newCounted(t, false)
	step := func(reason string, later time.Duration, status int, want Outcome, lists int64) {
		t.Helper()
		clock.SetTime(clock.Now().Add(later))
		server.status.Store(int64(status))
		find(t, finder, want)
		if got := server.lists.Load(); got != lists {
			t.Errorf("%s: listed %d times, want %d", reason, got, lists)
		}
	}
	step("the first asks", 0, 200, Installed, 1)
	step("the second remembers", 59*time.Second, 404, Installed, 1)
	step("what is installed is asked for again after a minute", time.Second, 404, NotInstalled, 2)
	step("what is not is remembered, too", time.Second-1, 200, NotInstalled, 2)
	step("for a shorter time", 1, 200, Installed, 3)

	finder.Invalidate()
	step("nothing is believed any more after a change", 0, 404, NotInstalled, 4)
	step("nor kept before the change is over", 0, 200, Installed, 5)
	step("so that what comes a moment later is seen", settling, 404, NotInstalled, 6)
	step("and kept", 0, 200, NotInstalled, 6)
}

// TestHandler sends changes as informers do.
func TestHandler(t *testing.T) {
	definition := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", ResourceVersion: version}}
	}
	server, finder, clock := newCounted(t, false)
	handler := finder.Handler()
	for i, tc := range []struct {
		reason string
		tell   func()
		asks   bool
	}{
		{"nothing is known", func() {}, true},
		{"a resync changes nothing", func() { handler.OnUpdate(definition("1"), definition("1")) }, false},
		{"a change does", func() { handler.OnUpdate(definition("1"), definition("2")) }, true},
		{"and what comes", func() { handler.OnAdd(definition("1"), false) }, true},
		{"and what goes", func() { handler.OnDelete(definition("2")) }, true},
	} {
		before := server.lists.Load()
		tc.tell()
		clock.SetTime(clock.Now().Add(settling))
		find(t, finder, Installed)
		if asked := server.lists.Load() > before; asked != tc.asks {
			t.Errorf("%d: %s: asked again: %v, want %v", i, tc.reason, asked, tc.asks)
		}
	}
}

// TestConcurrentCallsShareRequests makes many concurrent calls, one of which is cancelled.
func TestConcurrentCallsShareRequests(t *testing.T) {
	server, finder, _ := newCounted(t, true)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := finder.Find(ctx, Auto, widgets())
		left <- err
	}()
	<-server.entered // the request of the cancelled caller is on its way
	var others sync.WaitGroup
	for range 20 {
		others.Go(func() { find(t, finder, Installed) })
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "Widget.v1.example.com") {
		t.Errorf("the one who left got %v, want that it has left", err)
	}
	close(server.hold)
	others.Wait()
	if got := server.lists.Load(); got != 1 {
		t.Errorf("listed %d times, want once for all", got)
	}
}

// TestChangeDuringRequest invalidates the cache during a request. The answer shows the previous state, so it is
// not cached.
func TestChangeDuringRequest(t *testing.T) {
	server, finder, _ := newCounted(t, true)
	server.status.Store(http.StatusNotFound)
	var first sync.WaitGroup
	first.Go(func() { find(t, finder, NotInstalled) })
	<-server.entered
	finder.Invalidate()
	close(server.hold)
	first.Wait()
	server.status.Store(http.StatusOK)
	find(t, finder, Installed)
}

// TestRequestTimeout uses a server that never answers, and a caller that does not cancel the request.
func TestRequestTimeout(t *testing.T) {
	there := newPlaces(t)
	finder, err := New(&rest.Config{Host: there.stalled}, Options{RequestTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	got, err := finder.Find(t.Context(), Auto, widgets())
	if err != nil || got.Reason != ReasonTimedOut || !errors.Is(got.Cause, context.DeadlineExceeded) {
		t.Errorf("Find(...): %v (%v), %v, want %s", got.Verdict, got.Cause, err, ReasonTimedOut)
	}
}

func TestTargetWithoutName(t *testing.T) {
	_, finder, _ := newCounted(t, false)
	if _, err := finder.Find(t.Context(), Auto, Target{}); err == nil || !strings.Contains(err.Error(), "neither a kind nor a resource") {
		t.Errorf("Find(...): %v, want that the target names nothing", err)
	}
}

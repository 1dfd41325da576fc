package supervisor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/failover"
)

// fakeLock is a Lease with the content that the test sets.
type fakeLock struct {
	resourcelock.Interface

	holder string
	err    error
	// written is the last record that was written.
	written resourcelock.LeaderElectionRecord
}

func (l *fakeLock) Identity() string { return "me" }

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (l *fakeLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.written = record
	return l.err
}

func (l *fakeLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.written = record
	return l.err
}

// TestAcquireTime checks that the Lease has the time at which the process led, and not that at which it began to wait.
func TestAcquireTime(t *testing.T) {
	begun := time.Unix(1000, 0)
	led := begun.Add(time.Hour)
	clock := testingclock.NewFakePassiveClock(begun)
	lease := &fakeLock{}
	f := &fence{clock: clock, renewDeadline: 10 * time.Second, beforeLeading: func(context.Context) error {
		clock.SetTime(led)
		return nil
	}}
	l := &fencedLock{Interface: lease, fence: f}
	stale := resourcelock.LeaderElectionRecord{HolderIdentity: "me", AcquireTime: metav1.NewTime(begun), RenewTime: metav1.NewTime(begun)}
	if err := l.Create(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	if !lease.written.AcquireTime.Time.Equal(led) || !lease.written.RenewTime.Time.Equal(led) {
		t.Errorf("created with %v", lease.written)
	}
	renewal := stale
	renewal.RenewTime = metav1.NewTime(led.Add(time.Second))
	if err := l.Update(t.Context(), renewal); err != nil {
		t.Fatal(err)
	}
	if !lease.written.AcquireTime.Time.Equal(led) || !lease.written.RenewTime.Equal(&renewal.RenewTime) {
		t.Errorf("renewed with %v", lease.written)
	}
}

func TestFence(t *testing.T) {
	mine, nobodys := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	errBoom := errors.New("boom")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, api.LeaseName)
	for name, tt := range map[string]struct {
		reason    string
		history   func(context.Context, *fencedLock, *fakeLock, *testingclock.FakePassiveClock)
		open      bool
		leaseLost bool
	}{
		"Standby": {
			reason: "a process that never led may not write, and is not ended when another one leads",
			history: func(ctx context.Context, l *fencedLock, lease *fakeLock, _ *testingclock.FakePassiveClock) {
				lease.holder = "other"
				_, _, _ = l.Get(ctx)
			},
		},
		"Leading": {
			reason: "the one that took the Lease may",
			history: func(ctx context.Context, l *fencedLock, _ *fakeLock, _ *testingclock.FakePassiveClock) {
				_ = l.Create(ctx, mine)
			},
			open: true,
		},
		"RenewalFails": {
			reason: "a renewal that failed counts for nothing",
			history: func(ctx context.Context, l *fencedLock, lease *fakeLock, clock *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				lease.err = errBoom
				clock.SetTime(clock.Now().Add(6 * time.Second))
				_ = l.Update(ctx, mine)
				clock.SetTime(clock.Now().Add(5 * time.Second))
			},
		},
		"Renewed": {
			reason: "one that succeeded does",
			history: func(ctx context.Context, l *fencedLock, _ *fakeLock, clock *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				clock.SetTime(clock.Now().Add(6 * time.Second))
				_ = l.Update(ctx, mine)
				clock.SetTime(clock.Now().Add(5 * time.Second))
			},
			open: true,
		},
		"Frozen": {
			reason: "a process that was frozen for longer than the deadline may not write when it comes back",
			history: func(ctx context.Context, l *fencedLock, _ *fakeLock, clock *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				clock.SetTime(clock.Now().Add(10 * time.Second))
			},
		},
		"Taken": {
			reason: "one that sees another holder is over, and a late renewal does not change that",
			history: func(ctx context.Context, l *fencedLock, lease *fakeLock, _ *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				lease.holder = "other"
				_, _, _ = l.Get(ctx)
				_ = l.Update(ctx, mine)
			},
			leaseLost: true,
		},
		"Deleted": {
			reason: "so is one whose Lease is gone",
			history: func(ctx context.Context, l *fencedLock, lease *fakeLock, _ *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				lease.err = gone
				_, _, _ = l.Get(ctx)
			},
			leaseLost: true,
		},
		"Unreachable": {
			reason: "an API server that does not answer says nothing about who leads",
			history: func(ctx context.Context, l *fencedLock, lease *fakeLock, _ *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				lease.err = errBoom
				_, _, _ = l.Get(ctx)
			},
			open: true,
		},
		"Released": {
			reason: "a Lease that was released is not written under, even if the release failed",
			history: func(ctx context.Context, l *fencedLock, lease *fakeLock, _ *testingclock.FakePassiveClock) {
				_ = l.Update(ctx, mine)
				lease.err = errBoom
				_ = l.Update(ctx, nobodys)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancelRun := context.WithCancelCause(t.Context())
			defer cancelRun(nil)
			clock := testingclock.NewFakePassiveClock(time.Now())
			lease := &fakeLock{holder: "me"}
			f := &fence{clock: clock, renewDeadline: 10 * time.Second, cancelRun: cancelRun}
			tt.history(ctx, &fencedLock{Interface: lease, fence: f}, lease, clock)
			if got := f.open(); got != tt.open {
				t.Errorf("%s: open %v", tt.reason, got)
			}
			if got := errors.Is(context.Cause(ctx), ErrLeaseLost); got != tt.leaseLost {
				t.Errorf("%s: Lease lost %v (%v)", tt.reason, got, context.Cause(ctx))
			}
		})
	}
}

// TestFenceWrap checks which requests pass, and through which transport.
// TestLeaseTaken checks which errors are the lost race of a standby.
func TestLeaseTaken(t *testing.T) {
	leases := schema.GroupResource{Resource: "leases"}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for name, tt := range map[string]struct {
		err   error
		leads bool
		want  bool
	}{
		"Created":  {err: apierrors.NewAlreadyExists(leases, api.LeaseName), want: true},
		"Changed":  {err: apierrors.NewConflict(leases, api.LeaseName, nil), want: true},
		"OfLeader": {err: apierrors.NewConflict(leases, api.LeaseName, nil), leads: true},
		"Other":    {err: apierrors.NewForbidden(leases, api.LeaseName, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &fakeLock{}
			l := &fencedLock{Interface: lease, fence: &fence{clock: testingclock.NewFakePassiveClock(time.Now()), renewDeadline: time.Second}}
			if tt.leads {
				if err := l.Create(t.Context(), mine); err != nil {
					t.Fatal(err)
				}
			}
			lease.err = tt.err
			for _, err := range []error{l.Create(t.Context(), mine), l.Update(t.Context(), mine)} {
				if errors.Is(err, ErrLeaseTaken) != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}

func TestFenceWrap(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	f := &fence{clock: clock, renewDeadline: time.Second, leaderTimeout: time.Second}
	var used string
	transport := func(name string) http.RoundTripper {
		return roundTripperFunc(func(*http.Request) (*http.Response, error) {
			used = name
			return &http.Response{Body: http.NoBody}, nil
		})
	}
	guarded := f.wrap(transport("shared"), transport("leader"))
	const object, mark = "/api/v1/namespaces/n/configmaps/c", "/api/v1/namespaces/n/pods/p/status"
	send := func(method, path string) (string, error) {
		used = ""
		req, err := http.NewRequestWithContext(t.Context(), method, "http://cluster"+path, io.NopCloser(strings.NewReader("x")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := guarded.RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return used, err
	}
	for _, step := range []struct {
		reason, method, path, want string
		before                     func()
	}{
		{reason: "a standby does not create", method: http.MethodPost, path: object},
		{reason: "nor update", method: http.MethodPut, path: object},
		{reason: "nor patch", method: http.MethodPatch, path: object},
		{reason: "nor delete", method: http.MethodDelete, path: object},
		{reason: "nor mark pods beside a leader", method: http.MethodPatch, path: mark},
		{reason: "a standby reads", method: http.MethodGet, path: object, want: "shared"},
		{
			reason: "a standby without a leader marks pods", method: http.MethodPatch, path: mark, want: "shared",
			before: func() { f.observeLease([]byte("1")); clock.SetTime(clock.Now().Add(time.Minute)) },
		},
		{reason: "and writes nothing else", method: http.MethodPatch, path: object},
		{reason: "the leader writes", method: http.MethodPatch, path: object, want: "leader", before: func() { f.renew(clock.Now()) }},
		{reason: "it marks pods as standbys do", method: http.MethodPatch, path: mark, want: "shared"},
		{reason: "it reads as standbys do", method: http.MethodGet, path: object, want: "shared"},
	} {
		if step.before != nil {
			step.before()
		}
		got, err := send(step.method, step.path)
		if got != step.want || (step.want == "") != errors.Is(err, ErrNotLeading) {
			t.Errorf("%s: by %q, error %v; want %q", step.reason, got, err, step.want)
		}
	}
}

func TestIdentities(t *testing.T) {
	one, two := uniqueIdentity("node_1"), uniqueIdentity("node_1")
	if one == two {
		t.Errorf("two processes of one name are both %s", one)
	}
	if got := IdentityOf(one); got != "node_1" {
		t.Errorf("IdentityOf(%q) = %q", one, got)
	}
	if got := IdentityOf("plain"); got != "plain" {
		t.Errorf("IdentityOf(plain) = %q", got)
	}
}

// TestFailoverRole observes a standby beside a leader that renews its Lease, stops, and continues.
func TestFailoverRole(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	f := &fence{clock: clock, renewDeadline: 10 * time.Second, leaderTimeout: 2 * time.Second}
	after := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	for _, step := range []struct {
		reason string
		do     func()
		want   failover.Role
	}{
		{reason: "it has not seen the Lease yet", do: func() { after(time.Minute) }, want: failover.Standby},
		{reason: "there is a leader", do: func() { f.observeLease([]byte("1")) }, want: failover.Standby},
		{reason: "the Lease changed a moment ago", do: func() { after(time.Second); f.observeLease([]byte("1")) }, want: failover.Standby},
		{reason: "the Lease is the same as before", do: func() { after(time.Second); f.observeLease([]byte("1")) }, want: failover.LeaderlessStandby},
		{reason: "the Lease is renewed", do: func() { f.observeLease([]byte("2")) }, want: failover.Standby},
		{reason: "it leads itself", do: func() { after(time.Minute); f.renew(clock.Now()) }, want: failover.Leader},
		{reason: "it cannot renew its own Lease", do: func() { after(time.Minute) }, want: failover.Standby},
	} {
		step.do()
		if got := f.role(); got != step.want {
			t.Errorf("%s: role %d, want %d", step.reason, got, step.want)
		}
	}
}

func TestAllowedOnStandby(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		want         bool
	}{
		{http.MethodPatch, "/api/v1/namespaces/olm/pods/catalog-1/status", true},
		{http.MethodPatch, "/k8s/clusters/c-1/api/v1/namespaces/olm/pods/catalog-1/status", true},
		{http.MethodPost, "/k8s/clusters/c-1/apis/events.k8s.io/v1/namespaces/olm/events", true},
		{http.MethodPatch, "/k8s/clusters/c-1/api/v1/namespaces/olm/pods/catalog-1", false},
		{http.MethodPatch, "/api/v1/namespaces/olm/services/x/proxy/api/v1/namespaces/olm/pods/catalog-1/status", false},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/olm/events", true},
		{http.MethodPatch, "/apis/events.k8s.io/v1/namespaces/olm/events/one", true},
		{http.MethodDelete, "/api/v1/namespaces/olm/pods/catalog-1", false},
		{http.MethodPatch, "/api/v1/namespaces/olm/pods/catalog-1", false},
		{http.MethodPut, "/api/v1/namespaces/olm/pods/catalog-1/status", false},
		{http.MethodPatch, "/apis/apps/v1/namespaces/olm/deployments/pods/status", false},
		{http.MethodPatch, "/apis/operators.coreos.com/v1alpha1/namespaces/olm/catalogsources/one/status", false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://cluster"+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := allowedOnStandby(req); got != tt.want {
			t.Errorf("%s %s: allowed %v", tt.method, tt.path, got)
		}
	}
}

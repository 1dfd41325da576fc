package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
	"github.com/chandlery/chandlery/supervisor/controllers/failover"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// ErrNotLeading is the error of a write by a process that does not lead, or cannot know that it still does.
var ErrNotLeading = errors.New("this process does not lead, so that it must not write")

// ErrLeaseLost means that another process leads although this one had not stopped.
var ErrLeaseLost = errors.New("another process leads now")

// ErrLeaseTaken means that another standby took the Lease first. The standby goes on waiting.
var ErrLeaseTaken = errors.New("another process took the Lease first")

// fence prevents writes by a process that does not lead. Leader election alone does not prevent them. A process
// that was frozen, or cut off, still acts as the leader for a while, and its writes are based on outdated
// state.
//
// The fence is open only while the last renewal of the Lease is younger than the renew deadline. A standby
// waits longer than that (the lease duration) before it takes over, so the two never write at the same time.
//
// When a leader stops renewing its Lease and the Lease has not expired, the standbys may send writes that are
// harmless from any process (see allowedOnStandby).
type fence struct {
	clock         clock.PassiveClock
	renewDeadline time.Duration
	// leaderTimeout is how long a leader may fail to renew its Lease before standbys may send
	// some writes (see allowedOnStandby).
	leaderTimeout time.Duration
	// cancelRun ends the run of the process; it is called at most once.
	cancelRun context.CancelCauseFunc
	// beforeLeading is called before the process takes the lead, unless it is nil. Its error prevents that.
	beforeLeading func(context.Context) error

	mu sync.Mutex
	// renewed is the start of the last successful renewal; zero while the process does not lead. Both clocks advance
	// while the process is frozen.
	renewed time.Time
	lost    bool
	// leaseChanged is when another leader's Lease was last seen to change, and lease is its content at that time.
	leaseChanged time.Time
	lease        string
}

// open reports whether the process may write now.
func (f *fence) open() bool { return f.remaining() > 0 }

// remaining returns how long the process may still write if it does not renew the Lease; 0 if it may not write.
func (f *fence) remaining() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost || f.renewed.IsZero() {
		return 0
	}
	return max(0, f.renewDeadline-f.elapsed(f.renewed))
}

// elapsed returns the time since a reading of the clock, by the monotonic clock or by the wall clock, whichever
// is longer. The monotonic clock stops while a virtual machine is paused or suspended. A wall clock that is set
// forward closes the fence until the next renewal. One that is set back has no effect.
func (f *fence) elapsed(since time.Time) time.Duration {
	return max(f.clock.Since(since), f.clock.Now().Round(0).Sub(since.Round(0)))
}

// isLeading reports whether the process has the Lease, as far as it knows.
func (f *fence) isLeading() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.renewed.IsZero()
}

// renew records a renewal that started at a time.
func (f *fence) renew(start time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = start
}

// release records that the process released the Lease.
func (f *fence) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = time.Time{}
}

// loseLease records that another process took the lead, and ends the run. It has no effect on a process that
// does not lead.
func (f *fence) loseLease(how string) {
	f.mu.Lock()
	leading := !f.renewed.IsZero() && !f.lost
	f.lost = f.lost || leading
	f.mu.Unlock()
	if leading {
		f.cancelRun(fmt.Errorf("%w: %s", ErrLeaseLost, how))
	}
}

// observeLease records the content of another leader's Lease.
func (f *fence) observeLease(lease []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if content := string(lease); content != f.lease {
		f.lease, f.leaseChanged = content, f.clock.Now()
	}
}

// role returns what the process may do about replicas.
func (f *fence) role() failover.Role {
	if f.open() {
		return failover.Leader
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost || !f.renewed.IsZero() || f.leaseChanged.IsZero() || f.clock.Since(f.leaseChanged) < f.leaderTimeout {
		return failover.Standby
	}
	return failover.LeaderlessStandby
}

// statusOfPod and eventsPath match the paths that standbys may write to, after the prefix of some API servers.
var (
	statusOfPod = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/pods/[^/]+/status$`)
	eventsPath  = regexp.MustCompile(`^/apis/events\.k8s\.io/v1/namespaces/[^/]+/events(/[^/]+)?$`)
	apiPrefix   = regexp.MustCompile(`/apis?/`)
)

// allowedOnStandby reports whether a standby without a leader may send a request. It may write the condition
// of a pod, which its kubelet corrects if it is wrong, and Events, which are only messages.
func allowedOnStandby(req *http.Request) bool {
	path := withoutPrefix(req.URL.Path)
	return req.Method == http.MethodPatch && statusOfPod.MatchString(path) ||
		(req.Method == http.MethodPost || req.Method == http.MethodPatch) && eventsPath.MatchString(path)
}

// withoutPrefix returns a path from the place where the API begins. This is the first matching place, so that a
// path behind a proxy of the API does not count as a path of the API.
func withoutPrefix(path string) string {
	if begin := apiPrefix.FindStringIndex(path); begin != nil {
		return path[begin[0]:]
	}
	return path
}

// wrap returns a transport that refuses requests that change something while the fence is closed. It sends requests that only a leader
// may send through writes, and others through next.
func (f *fence) wrap(next, writes http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
		switch req.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return next.RoundTrip(req)
		}
		allowed := allowedOnStandby(req)
		if !f.open() && (f.role() != failover.LeaderlessStandby || !allowed) {
			return nil, errors.Join(fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, ErrNotLeading), closeBody(req))
		}
		if allowed {
			return next.RoundTrip(req)
		}
		return writes.RoundTrip(req)
	})
}

// closeBody closes the body of a refused request, as a RoundTripper must.
func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

// roundTripperFunc is a function that implements http.RoundTripper.
type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// fencedLock is a Lease that reports its changes to a fence.
type fencedLock struct {
	resourcelock.Interface

	fence *fence
	// monitor waits for the API server, with pauses, while the process does not lead; nil to not wait.
	monitor *availability.Monitor
	pause   time.Duration
	// acquired is when this process took the lead.
	acquired metav1.Time
}

// Create creates the Lease.
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.checkBeforeLeading(ctx); err != nil {
		return err
	}
	start := l.fence.clock.Now()
	l.setTimes(&record, start)
	err := l.Interface.Create(ctx, record)
	l.recordRenewal(record, start, err)
	return l.asTaken(record, err)
}

// Update takes, renews or releases the Lease.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == l.Identity() {
		if err := l.checkBeforeLeading(ctx); err != nil {
			return err
		}
	} else {
		// Once the Lease is released, the process must not write any more, whether or not the release succeeds.
		l.fence.release()
	}
	start := l.fence.clock.Now()
	l.setTimes(&record, start)
	err := l.Interface.Update(ctx, record)
	l.recordRenewal(record, start, err)
	return l.asTaken(record, err)
}

// Get reads the Lease, and checks whether another process has it.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		l.fence.loseLease("the Lease is gone")
	case err == nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		l.fence.observeLease(raw)
		l.fence.loseLease("the Lease is held by " + record.HolderIdentity)
	}
	return record, raw, err //nolint:wrapcheck // leader election reads the API's own error
}

// read reads the Lease. A process that does not lead has no deadline, and waits for the API server. Otherwise
// leader election would log each attempt.
func (l *fencedLock) read(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	get := func() error {
		record, raw, err = l.Interface.Get(ctx)
		return err //nolint:wrapcheck // leader election reads the API's own error
	}
	if l.monitor == nil || l.fence.isLeading() {
		err = get()
	} else {
		err = l.monitor.Retry(ctx, "reading the Lease", l.pause, get)
	}
	return record, raw, err
}

// checkBeforeLeading checks whether the process may take the lead. A leading process is checked elsewhere.
func (l *fencedLock) checkBeforeLeading(ctx context.Context) error {
	if l.fence.beforeLeading == nil || l.fence.isLeading() {
		return nil
	}
	return l.fence.beforeLeading(ctx)
}

// setTimes sets when this process took the lead. Leader election takes that time before a process waits to lead, which can
// last for days beside OLM, and repeats it at each renewal.
func (l *fencedLock) setTimes(record *resourcelock.LeaderElectionRecord, now time.Time) {
	if record.HolderIdentity != l.Identity() {
		return
	}
	if !l.fence.isLeading() {
		l.acquired, record.RenewTime = metav1.NewTime(now), metav1.NewTime(now)
	}
	record.AcquireTime = l.acquired
}

// asTaken returns ErrLeaseTaken with an error of a standby that lost a race for the Lease, and other errors unchanged.
func (l *fencedLock) asTaken(record resourcelock.LeaderElectionRecord, err error) error {
	races := record.HolderIdentity == l.Identity() && !l.fence.isLeading()
	if races && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
		return fmt.Errorf("%w: %w", ErrLeaseTaken, err)
	}
	return err
}

func (l *fencedLock) recordRenewal(record resourcelock.LeaderElectionRecord, start time.Time, err error) {
	if err == nil && record.HolderIdentity == l.Identity() {
		l.fence.renew(start)
	}
}

// uniqueIdentity adds a unique suffix to a name. Two processes with the same name thus never use the Lease as
// the same holder.
func uniqueIdentity(name string) string {
	var suffix [4]byte
	// Read never fails: https://pkg.go.dev/crypto/rand#Read.
	_, _ = rand.Read(suffix[:])
	return name + "_" + hex.EncodeToString(suffix[:])
}

// IdentityOf returns the --identity of the process that holds a Lease.
func IdentityOf(holder string) string { return competing.Identity(holder) }

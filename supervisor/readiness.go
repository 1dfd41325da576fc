package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
)

// errStarting is the reason why a starting process is not ready.
var errStarting = errors.New("the supervisor is starting")

// readiness reports whether the process is ready, leading or not: when its caches are full and it should get requests for
// PackageManifests, unless it waits until another lifecycle manager has stopped. If it is not ready,
// the answer contains the reason.
type readiness struct {
	monitor  *availability.Monitor
	synced   atomic.Pointer[func(context.Context) error]
	packages atomic.Pointer[func(context.Context) error]
	// waiting is why the process must not lead; nil if it may.
	waiting atomic.Pointer[error]
}

// setWaiting sets why the process must not lead; nil if it may.
func (r *readiness) setWaiting(reason error) {
	if reason == nil {
		r.waiting.Store(nil)
		return
	}
	r.waiting.Store(&reason)
}

// use sets the check of readiness.
func (r *readiness) use(synced func(context.Context) error) { r.synced.Store(&synced) }

// usePackages sets the check that the process should get requests for PackageManifests; nil for none.
func (r *readiness) usePackages(served func(context.Context) error) {
	if served != nil {
		r.packages.Store(&served)
	}
}

// err returns why the process is not ready; nil if it is.
func (r *readiness) err(ctx context.Context) error {
	if waiting := r.waiting.Load(); waiting != nil {
		return *waiting
	}
	err := errStarting
	if synced := r.synced.Load(); synced != nil {
		err = (*synced)(ctx)
	}
	if packages := r.packages.Load(); err == nil && packages != nil {
		err = (*packages)(ctx)
	}
	if err == nil {
		return nil
	}
	if waiting := r.monitor.Err(); waiting != nil {
		return waiting //nolint:wrapcheck // says what is waited for
	}
	return err
}

// ServeHTTP answers a probe.
func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text := "ok"
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := r.err(req.Context()); err != nil {
		text = err.Error()
		w.WriteHeader(http.StatusInternalServerError)
	}
	// A write error means that the client has closed the connection.
	_, _ = fmt.Fprintln(w, text)
}

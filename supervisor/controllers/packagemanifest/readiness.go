package packagemanifest

import (
	"context"
	"errors"
	"sync/atomic"
)

// errNotReady is returned while the process must not get requests yet.
var errNotReady = errors.New("the packages of the catalogs are being read")

// readiness decides whether the process should get requests. It waits until the catalogs are read, so that a new process
// replaces another one without failed requests. It does not wait if no other process is ready: an API without a server
// prevents the deletion of every namespace. Requests for items then fail with status 503 until the catalogs are read.
type readiness struct {
	// read reports whether the catalogs have been read, and serving whether the server answers.
	read, serving func() bool
	// checkEndpoints returns an error that wraps errNotServing if the Service has no ready endpoint.
	checkEndpoints func(context.Context) error
	// passed is whether the process was ready. It remains so, because it is an endpoint then.
	passed atomic.Bool
}

// check returns an error if the process should not get requests yet.
func (r *readiness) check(ctx context.Context) error {
	if r.passed.Load() {
		return nil
	}
	if !r.read() && (!r.serving() || !errors.Is(r.checkEndpoints(ctx), errNotServing)) {
		return errNotReady
	}
	r.passed.Store(true)
	return nil
}

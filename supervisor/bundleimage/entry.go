package bundleimage

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// freshTime is how long the authorization by a registry is valid without another request. The registry is then
	// asked again. Its last answer remains valid until authorizedTime.
	freshTime      = 5 * time.Minute
	authorizedTime = 10 * time.Minute
	// tagTime is the interval at which a tag is resolved again if its image is unusable.
	tagTime = 5 * time.Minute
	// forgetTime is how long an unused request is remembered.
	forgetTime = time.Hour
)

// restTime is how long callers that wait for content get the same error after a failed attempt.
const restTime = 2 * time.Second

// backoff is the pauses after a failed attempt.
var backoff = apply.Backoff{First: 5 * time.Second, Max: 5 * time.Minute}

// entry is the state of one request.
type entry struct {
	// namespaces are notified of changes.
	namespaces map[string]bool
	// requested is the time of the last request.
	requested time.Time

	// running is closed when the current attempt ends; nil if there is none.
	running chan struct{}
	began   time.Time
	// pull is the pull that the current attempt waits for.
	pull *pull
	// node is the pull by a node that the current attempt waits for.
	node *NodePull

	// grant is the content that was authorized at authorizedAt.
	grant        grant
	authorizedAt time.Time

	// attempts is the number of consecutive failures, and err the error of the last one.
	attempts          int
	err               error
	failedAt, retryAt time.Time
}

// isAuthorized reports whether the digest may be returned.
func (e *entry) isAuthorized(now time.Time, policy string) bool {
	return e.grant.digest != "" && e.grant.policy == policy && now.Sub(e.authorizedAt) < authorizedTime
}

// isDue reports whether an attempt is to start.
func (e *entry) isDue(now time.Time, policy string) bool {
	switch {
	case e.running != nil:
		return false
	case e.err != nil:
		return !e.retryAt.IsZero() && !now.Before(e.retryAt)
	default:
		return e.grant.digest == "" || e.grant.policy != policy || now.Sub(e.authorizedAt) >= freshTime
	}
}

// inBackOff reports whether it is too early for another attempt, even for callers that wait.
func (e *entry) inBackOff(now time.Time) bool {
	return e.err != nil && (e.retryAt.IsZero() || now.Sub(e.failedAt) < restTime)
}

func (e *entry) state(now time.Time, policy string) State {
	if e.isAuthorized(now, policy) {
		return State{Ready: true, Digest: e.grant.digest, Node: e.grant.node}
	}
	s := State{Node: e.node, Attempts: e.attempts, Err: e.err, FailedAt: e.failedAt, RetryAt: e.retryAt}
	if e.running != nil {
		s.Began = e.began
	}
	if e.pull != nil {
		s.Done, s.Total = e.pull.done, e.pull.total
	}
	return s
}

// succeed records that the request is authorized for content.
func (e *entry) succeed(o *outcome, now time.Time) {
	e.grant, e.authorizedAt = o.grant, now
	e.attempts, e.err, e.failedAt, e.retryAt = 0, nil, time.Time{}, time.Time{}
}

// fail records an error. After a permanent error, another attempt follows only for a tag, which may point to
// another image later.
func (e *entry) fail(err error, interval time.Duration, now time.Time) {
	known, isImage := errors.AsType[*image.Error](err)
	if isImage && e.isRevokedBy(known) {
		e.grant, e.authorizedAt = grant{}, time.Time{}
	}
	if !isImage || known.MayPass() {
		e.attempts++
		e.err, e.failedAt, e.retryAt = err, now, now.Add(jitter(max(backoff.After(e.attempts), interval)))
		return
	}
	// The same error for an unchanged tag is not another failure.
	if e.err == nil || e.err.Error() != err.Error() {
		e.attempts++
		e.err, e.failedAt = err, now
	}
	e.retryAt = time.Time{}
	if image.IsReference(known.Reference) && !image.IsDigest(known.Reference) {
		e.retryAt = now.Add(jitter(max(tagTime, interval)))
	}
}

// isRevokedBy reports whether an error ends the previous authorization. It stays valid until the registry revokes it. What
// a node has pulled stays valid for its time if no node can pull it again: nodes do not tell why in a typed form.
func (e *entry) isRevokedBy(err *image.Error) bool {
	if _, failed := errors.AsType[*NodeError](err); failed && e.grant.node != nil {
		return false
	}
	return err.Reason != image.ReasonUnreachable && err.Reason != image.ReasonLocal && err.Reason != image.ReasonNode
}

// show records why the supervisor could not pull, until a node has ended.
func (e *entry) show(err error, now time.Time) {
	e.err, e.failedAt, e.retryAt = err, now, time.Time{}
	if known, ok := errors.AsType[*image.Error](err); ok && e.grant.node == nil && e.isRevokedBy(known) {
		e.grant, e.authorizedAt = grant{}, time.Time{}
	}
}

// jitter makes a pause up to a fifth longer, so that requests that failed together are not repeated together.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/5+1) //nolint:gosec // nothing depends on it being hard to guess
}

package bundleimage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/internal/keylimit"
)

func TestPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0: 0, 1: backoff.First, 2: 2 * backoff.First, 5: 16 * backoff.First, 7: backoff.Max, 1000: backoff.Max,
	} {
		if got := backoff.After(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	for range 100 {
		if got := jitter(10 * time.Second); got < 10*time.Second || got > 12*time.Second {
			t.Errorf("10s became %s", got)
		}
	}
}

func TestEntry(t *testing.T) {
	now, allowed := time.Now(), &outcome{grant: grant{digest: "d", policy: "1"}}
	trouble := func(reason image.Reason, reference string) error {
		return &image.Error{Reference: reference, Reason: reason, Err: errors.New("trouble")}
	}
	const tag, pinned = "registry.example/a:v1", "registry.example/a@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for what, tc := range map[string]struct {
		reason     string
		happened   func(*entry)
		after      time.Duration
		authorized bool
		due        bool
		pausing    bool
	}{
		"New":         {reason: "nothing is known", happened: func(*entry) {}, due: true},
		"Fresh":       {reason: "it was let in", happened: func(e *entry) { e.succeed(allowed, now) }, after: freshTime - 1, authorized: true},
		"Stale":       {reason: "it is asked again in time", happened: func(e *entry) { e.succeed(allowed, now) }, after: freshTime, authorized: true, due: true},
		"Expired":     {reason: "what was allowed does not count for ever", happened: func(e *entry) { e.succeed(allowed, now) }, after: authorizedTime, due: true},
		"OtherPolicy": {reason: "it was allowed by another policy", happened: func(e *entry) { e.succeed(&outcome{grant: grant{digest: "d"}}, now) }, due: true},
		"Unsigned":    {reason: "a signature may come", happened: func(e *entry) { e.fail(trouble(image.ReasonPolicyRefused, pinned), 0, now) }, after: 2 * backoff.First, due: true},
		"Running":     {reason: "one attempt at a time", happened: func(e *entry) { e.running = make(chan struct{}) }},
		"Failed":      {reason: "a failure rests", happened: func(e *entry) { e.fail(trouble(image.ReasonNotFound, tag), 0, now) }, after: time.Second, pausing: true},
		"FailedLater": {reason: "and for those who wait not for long", happened: func(e *entry) { e.fail(trouble(image.ReasonNotFound, tag), 0, now) }, after: restTime},
		"FailedDue":   {reason: "and then it is tried again", happened: func(e *entry) { e.fail(trouble(image.ReasonNotFound, tag), 0, now) }, after: 2 * backoff.First, due: true},
		"Interval":    {reason: "not before it is allowed", happened: func(e *entry) { e.fail(trouble(image.ReasonNotFound, tag), time.Hour, now) }, after: time.Hour - 1},
		"Content":     {reason: "content does not get better", happened: func(e *entry) { e.fail(trouble(image.ReasonInvalid, pinned), 0, now) }, after: 100 * time.Hour, pausing: true},
		"ContentTag":  {reason: "a tag may", happened: func(e *entry) { e.fail(trouble(image.ReasonInvalid, tag), 0, now) }, after: 2 * tagTime, due: true},
		"Reference":   {reason: "what is no reference does not", happened: func(e *entry) { e.fail(trouble(image.ReasonReference, "A B"), 0, now) }, after: 100 * time.Hour, pausing: true},
		"Other":       {reason: "other errors may pass", happened: func(e *entry) { e.fail(errAway, 0, now) }, after: 2 * backoff.First, due: true},
		"KeptAway": {
			reason: "a registry that is away takes nothing back", after: time.Second, authorized: true, pausing: true,
			happened: func(e *entry) { e.succeed(allowed, now); e.fail(trouble(image.ReasonUnreachable, tag), 0, now) },
		},
		"TakenBack": {
			reason: "one that refuses does", after: time.Second, pausing: true,
			happened: func(e *entry) { e.succeed(allowed, now); e.fail(trouble(image.ReasonUnauthorized, tag), 0, now) },
		},
		"Refused": {
			reason: "so does a policy", after: time.Second, pausing: true,
			happened: func(e *entry) { e.succeed(allowed, now); e.fail(trouble(image.ReasonPolicyRefused, tag), 0, now) },
		},
		"Recovered": {
			reason: "success ends all failures", authorized: true,
			happened: func(e *entry) { e.fail(errAway, 0, now); e.succeed(allowed, now) },
		},
	} {
		t.Run(what, func(t *testing.T) {
			e := &entry{}
			tc.happened(e)
			at := now.Add(tc.after)
			if e.isAuthorized(at, "1") != tc.authorized || e.isDue(at, "1") != tc.due || e.inBackOff(at) != tc.pausing {
				t.Errorf("%s: authorized %v, due %v, pausing %v, want %v, %v, %v", tc.reason, e.isAuthorized(at, "1"), e.isDue(at, "1"), e.inBackOff(at), tc.authorized, tc.due, tc.pausing)
			}
			if s := e.state(at, "1"); s.Ready != tc.authorized || s.Ready && s.Err != nil {
				t.Errorf("%s: %+v", tc.reason, s)
			}
		})
	}
}

// TestSameFailure checks that the same error for an unchanged tag counts once.
func TestSameFailure(t *testing.T) {
	e, now := &entry{}, time.Now()
	known := &image.Error{Reference: "registry.example/a:v1", Reason: image.ReasonInvalid, Err: errors.New("two versions")}
	e.fail(known, 0, now)
	first := e.state(now, "")
	e.fail(known, 0, now.Add(time.Hour))
	if s := e.state(now.Add(time.Hour), ""); s.Attempts != 1 || !s.FailedAt.Equal(first.FailedAt) || !s.RetryAt.After(first.RetryAt) {
		t.Errorf("%+v became %+v", first, s)
	}
}

func TestRequestKey(t *testing.T) {
	a := request("registry.example/a:v1", "user", "x", "y", "x")
	b := request("registry.example/a:v1", "user", "y", "x")
	b.Namespace, b.Timeout = "other", 0
	if a.key() != b.key() {
		t.Error("for whom and how long makes another request")
	}
	b.Secrets = []string{"xy"}
	if a.key() == b.key() {
		t.Error("other Secrets make no other request")
	}
}

// TestPullsOfOneCatalog has catalogs whose images are in many registries. A catalog leaves slots for another one, and those of a
// namespace leave slots for another namespace.
func TestPullsOfOneCatalog(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pl := &puller{
		ctx: ctx, limiter: keylimit.New(maxPulls, maxPullsPerHost), catalogs: keylimit.New(math.MaxInt, maxPullsPerCatalog),
		namespaces: keylimit.New(math.MaxInt, maxPullsPerNamespace),
	}
	of := func(namespace, catalog string, host int) *authorization {
		return &authorization{
			Request: &Request{Catalog: types.NamespacedName{Namespace: namespace, Name: catalog}}, resolved: fmt.Sprintf("%d.example.com/image:v1", host),
		}
	}
	for i := range maxPullsPerCatalog {
		if _, err := pl.acquire(of("olm", "slow", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pl.acquire(of("olm", "other", 0)); err != nil {
		t.Fatal(err)
	}
	release, err := pl.acquire(of("tenant", "shop", 1))
	if err != nil {
		t.Fatal(err)
	}
	release()
	cancel()
	for _, catalog := range []string{"slow", "third"} {
		if _, err := pl.acquire(of("olm", catalog, 9)); err == nil {
			t.Errorf("catalog %s gets the last slot", catalog)
		}
	}
}

func TestMemory(t *testing.T) {
	m := newMemory(10)
	text := func(size int) []string { return []string{strings.Repeat("x", size)} }
	m.put(contentKey{reference: "a"}, text(4))
	m.put(contentKey{reference: "b"}, text(4))
	m.put(contentKey{reference: "a"}, text(4))
	m.put(contentKey{reference: "c"}, text(4))
	if m.get(contentKey{reference: "a"}) == nil || m.get(contentKey{reference: "b"}) != nil || m.get(contentKey{reference: "c"}) == nil {
		t.Errorf("it keeps %v", m.items)
	}
	m.put(contentKey{reference: "d"}, text(11))
	if len(m.items) != 0 || m.left != 10 || m.order.Len() != 0 {
		t.Errorf("what is too large leaves %v", m.items)
	}
}

func TestTimeout(t *testing.T) {
	for _, tc := range []struct{ flag, request, want time.Duration }{
		{flag: time.Minute, request: -1, want: time.Minute},
		{flag: time.Minute, request: time.Second, want: time.Second},
		{flag: time.Minute, request: 0, want: math.MaxInt64},
		{flag: 0, request: -1, want: math.MaxInt64},
	} {
		o := &Options{Timeout: tc.flag}
		if got := o.timeout(&Request{Timeout: tc.request}); got != tc.want {
			t.Errorf("%s and %s: %s, want %s", tc.flag, tc.request, got, tc.want)
		}
	}
}

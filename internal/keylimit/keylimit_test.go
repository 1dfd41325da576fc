package keylimit

import (
	"context"
	"testing"
)

// TestLimiter has a limit of three operations, and of two for each key.
func TestLimiter(t *testing.T) {
	t.Parallel()
	l := New(3, 2)
	take := func(key string) func() {
		t.Helper()
		release, err := l.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	full := func(key string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Acquire(ctx, key); err == nil {
			t.Errorf("there is room for %s", key)
		}
		if release := l.TryAcquire(key); release != nil {
			t.Errorf("there is room for %s without waiting", key)
		}
	}
	first, second := take("a"), take("a")
	full("a")
	third := l.TryAcquire("b")
	if third == nil {
		t.Fatal("there is no room for b")
	}
	full("b")
	waiting := make(chan func())
	go func() { waiting <- take("b") }()
	first()
	fourth := <-waiting
	full("c")
	for _, release := range []func(){second, third, fourth} {
		release()
	}
	if len(l.keys) != 0 || l.taken != 0 {
		t.Errorf("%+v is left", l.keys)
	}
}

package packages_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/chandlery/chandlery/test/testenv"
)

// TestRestartedSupervisors kills both supervisors and starts them beside a catalog that is slow to send its content. One is
// ready before it has read the catalog, because no other is. The API server then serves the API group before any list of
// packages. Lists say when to try again, and succeed once the catalog is read.
func TestRestartedSupervisors(t *testing.T) {
	s := open(t)
	l := s.lists(packageCount)
	listed := func(ctx context.Context) string {
		if _, err := l.version(ctx); err != nil {
			return err.Error()
		}
		return ""
	}
	testenv.Until(t, testenv.Patience, "the packages to be listed", listed)
	for _, p := range s.pods {
		if err := p.process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.mark(p, false)
	}
	release := s.catalog.Hold()
	t.Cleanup(release)
	testenv.Until(t, testenv.Patience, "lists to fail", func(ctx context.Context) string {
		if listed(ctx) == "" {
			return "the packages are listed"
		}
		return ""
	})
	first, second := s.pods["one"], s.pods["two"]
	s.start(first)
	s.mark(first, true)
	s.run(second)
	testenv.Until(t, testenv.Patience, "the API group to be served", func(ctx context.Context) string {
		early := listed(ctx) == ""
		_, err := l.get(ctx, groupPath, "application/json")
		switch {
		case err != nil && early:
			t.Fatalf("packages were listed before the API group was served: %v", err)
		case err != nil:
			return err.Error()
		}
		return ""
	})
	_, err := l.version(t.Context())
	refused, is := errors.AsType[*statusError](err)
	if !is || refused.code != http.StatusServiceUnavailable || refused.Details == nil || refused.Details.RetryAfterSeconds == 0 {
		t.Errorf("a list before the catalog was read: %v, want status 503 with the time of the next attempt", err)
	}
	release()
	testenv.Until(t, testenv.Patience, "the packages to be listed again", listed)
	s.probes(second, http.StatusOK)
	s.mark(first, false)
	s.mark(second, true)
	testenv.Until(t, testenv.Patience, "the packages to be listed by the other supervisor", listed)
}

package packages_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/testenv"
)

// TestChangedContent replaces the content of a catalog behind its connection. No list of two supervisors is a mixture of
// both contents, no call fails, and in the end both supervisors show the new content.
func TestChangedContent(t *testing.T) {
	s := open(t)
	calls := startClients(t, s.lists(packageCount))
	calls.succeed(t)
	begun := time.Now()
	s.catalog.Serve(packages(2)...)
	testenv.Until(t, testenv.Patience, "both supervisors to show the new content", func(context.Context) string {
		made := calls.since(time.Now().Add(-span))
		if n := len(made); n > 0 && made[0].begun.Before(begun) {
			return "a call is older than the change"
		}
		former := slices.IndexFunc(made, func(one call) bool { return one.version != "2.0.0" })
		if former >= 0 {
			return fmt.Sprintf("version %q of %d calls: %v", made[former].version, len(made), made[former].err)
		}
		return lackOf(len(made), clientCount)
	})
	if failed := calls.failed(begun); len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first with: %v", len(failed), len(calls.since(begun)), failed[0].err)
	}
}

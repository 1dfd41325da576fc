package failover

import (
	"fmt"
	"io"
	"time"

	"github.com/chandlery/chandlery/test/caller"
)

// Table writes rounds as a table for a document.
func Table(out io.Writer, rounds []Round) error {
	if _, err := fmt.Fprint(out, "| Round | Taken away | NotReady after | At full strength | after NotReady | New connections: failed | failing | Long-lived: failed | failing |\n|---|---|---|---|---|---|---|---|---|\n"); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for i, r := range rounds {
		notReady, since := "", ""
		if !r.Loss.NotReady.IsZero() {
			notReady, since = seconds(r.Loss.NotReady.Sub(r.Loss.Begun)), seconds(r.Loss.Restored.Sub(r.Loss.NotReady))
		}
		fresh, long := r.Seen[caller.NewConnection], r.Seen[caller.LongLived]
		if _, err := fmt.Fprintf(out, "| %d | %s | %s | %s | %s | %d of %d | %s | %d of %d | %s |\n", i+1, r.Kind, notReady, seconds(r.Loss.Restored.Sub(r.Loss.Begun)), since,
			fresh.Failed, fresh.Calls, seconds(fresh.Failing), long.Failed, long.Calls, seconds(long.Failing)); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

package tenant_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/attack"
	"github.com/chandlery/chandlery/test/process"
)

// TestLargeObjects has a tenant create and change objects of 1 MiB of every kind that supervisors
// watch. The tenant also has a Deployment that looks like OLM's and a Lease of 68 years. The
// supervisor must remain the leader, its memory must stay bounded, also after a restart, and a
// Subscription in another namespace must be installed. It covers a part of what bench/tenant
// measures.
func TestLargeObjects(t *testing.T) {
	result, err := attack.Run(t.Context(), attack.Options{
		Root: "../../..", Dir: bin, Objects: 20, Size: 1 << 20, Kinds: attack.Kinds(), Together: true,
		Rate: 20, Duration: 20 * time.Second, Installs: 1,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Tail(filepath.Join(bin, "supervisor.log")))
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
}

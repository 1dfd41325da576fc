package tenant_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/attack"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/sampling"
)

// TestLargeObjects has a tenant create and change objects of 1 MiB of every kind that supervisors
// watch. The tenant also has a Deployment that looks like OLM's and a Lease of 68 years. The
// supervisor must remain the leader, its memory must stay bounded, also after a restart, and a
// Subscription in another namespace must be installed. It covers a part of what bench/tenant
// measures.
func TestLargeObjects(t *testing.T) {
	const (
		size = 1 << 20
		rate = 20
		// all is the number of objects of a kind for which the limit of the growth is MaxGrowth.
		all = 20
	)
	objects := sampling.Number(t, "LARGE_OBJECTS", all, 1)
	result, err := attack.Run(t.Context(), attack.Options{
		Root: "../../..", Dir: bin, Objects: objects, Size: size, Kinds: attack.Kinds(), Together: true,
		Rate: rate, Duration: time.Duration(objects) * time.Second, Installs: 1, Settle: 10 * time.Second, Plane: controlplane.Get(t),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, process.Tail(filepath.Join(bin, "supervisor.log")))
	}
	if err := result.Check(); err != nil {
		t.Error(err)
	}
	running, restarted := result.Growth()
	if limit := int64(attack.MaxGrowth * objects / all); running >= limit || restarted >= limit {
		t.Errorf("with %d objects of each kind, the live heap grew by %d KiB, after a restart by %d KiB, want less than %d KiB",
			objects, running>>10, restarted>>10, limit>>10)
	}
}

package tenant_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/attack"
	"github.com/chandlery/chandlery/test/process"
)

// TestLargeObjects has a tenant create and change objects of 1 MiB of every kind that
// supervisors watch, beside a Deployment that looks like OLM's and a Lease of 68 years: the
// supervisor keeps the lead, its memory stays bounded, also after it was started again, and a
// Subscription in another namespace is installed. It is a sample of what bench/tenant measures.
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

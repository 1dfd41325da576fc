package content_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func load(tb testing.TB) *bundles.Catalog {
	tb.Helper()
	c, err := fbc.Load(tb.Context(), os.DirFS(realcatalogs.Dir(tb, realcatalogs.Metadata)), fbc.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// heap returns the memory of live objects, in bytes.
func heap() int64 {
	// The second collection frees what the finalizers of the first one released.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestHeap checks the heap and the size estimate of the largest catalog in use.
func TestHeap(t *testing.T) {
	source := load(t)
	before := heap()
	c, err := content.FromCatalog(source)
	if err != nil {
		t.Fatal(err)
	}
	took := heap() - before
	entries, unusable := 0, 0
	for _, p := range c.Packages() {
		for _, channel := range p.Channels {
			entries += len(channel.Entries)
			if channel.Err != nil {
				unusable++
			}
		}
		for _, bundle := range p.Bundles {
			if bundle.Err != nil {
				unusable++
			}
		}
	}
	t.Logf("%d packages, %d entries: %d bytes of heap, estimated %d", len(c.Packages()), entries, took, c.Bytes())
	if unusable > 0 {
		t.Errorf("%d channels and bundles cannot be used", unusable)
	}
	const budget = 20 << 20
	if took > budget {
		t.Errorf("%d bytes of heap, the budget is %d", took, budget)
	}
	if c.Bytes() < took*7/10 || c.Bytes() > took*13/10 {
		t.Errorf("the estimate %d is not within 30%% of %d", c.Bytes(), took)
	}
	runtime.KeepAlive(source)
	runtime.KeepAlive(c)
}

func BenchmarkFromCatalog(b *testing.B) {
	source := load(b)
	b.ReportAllocs()
	var size int64
	for b.Loop() {
		c, err := content.FromCatalog(source)
		if err != nil {
			b.Fatal(err)
		}
		size = c.Bytes()
	}
	b.ReportMetric(float64(size), "bytes/catalog")
}

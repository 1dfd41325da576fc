package catalogs_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// read follows a catalog and returns its state once it is ready.
func (b *bench) read(t *testing.T, key types.NamespacedName, address string) catalogs.State {
	t.Helper()
	if err := b.store.Follow(key, address, dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	var state catalogs.State
	b.Eventually(func() bool {
		state, _ = b.store.State(key)
		return state.Ready()
	}).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.BeTrue())
	return state
}

func TestStoreHoldsAContentOnce(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			first := b.read(t, shop, start(t, lamp("{}")).Address())
			replica := start(t, lamp("{}"))
			near := b.read(t, types.NamespacedName{Namespace: shop.Namespace, Name: "mirror"}, replica.Address())
			if read := replica.Listed() + replica.Pages(); kind != "silent" && read > 0 {
				t.Errorf("what is held of a catalog of the namespace was read, %d times", read)
			}
			other := start(t, lamp("{}"))
			far := b.read(t, types.NamespacedName{Namespace: "elsewhere", Name: "shop"}, other.Address())
			if read := other.Listed() + other.Pages(); read == 0 {
				t.Error("the word of a server of another namespace was believed")
			}
			if near.Snapshot.Content != first.Snapshot.Content || far.Snapshot.Content != first.Snapshot.Content {
				t.Error("the same content is held more than once")
			}
			if far.Snapshot.Digest != first.Snapshot.Digest {
				t.Error("the same content has two digests")
			}
		})
	}
}

func TestStoreDoesNotTakeOneContentForAnother(t *testing.T) {
	forged, genuine := fakecatalog.StartExtended(t, shops(3)...), fakecatalog.StartExtended(t, lamp("{}"))
	forged.Announce("the same")
	genuine.Announce("the same")
	b := newBench(t)
	b.read(t, types.NamespacedName{Namespace: "elsewhere", Name: "shop"}, forged.Address())
	state := b.read(t, shop, genuine.Address())
	if state.Snapshot.Content.Package("lamp") == nil {
		t.Errorf("packages %+v", state.Snapshot.Content.Packages())
	}
}

func TestStoreForgetsWhatNobodyServes(t *testing.T) {
	server, other := fakecatalog.StartExtended(t, shops(200)...), fakecatalog.StartExtended(t, shops(200)...)
	b := newBench(t)
	second := types.NamespacedName{Namespace: "elsewhere", Name: "shop"}
	b.read(t, shop, server.Address())
	b.read(t, second, other.Address())
	cached := func() int {
		runtime.GC()
		return b.store.Held()
	}
	becomes := func(n int) {
		b.Eventually(cached).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.Equal(n))
	}
	becomes(1)
	server.Serve(lamp("{}"))
	becomes(2)
	b.store.Remove(second)
	becomes(1)
	b.store.Remove(shop)
	becomes(0)
	// A catalog of the same name starts without earlier content.
	server.Serve(lamp("[]"))
	if state := b.read(t, shop, server.Address()); state.Snapshot.Content.Package("lamp") == nil {
		t.Error("a catalog that was made again has other content")
	}
}

// gauges returns the values of a metric by catalog name.
func gauges(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			catalog := ""
			for _, label := range m.GetLabel() {
				if label.GetName() == "name" {
					catalog = label.GetValue()
				}
			}
			values[catalog] = m.GetGauge().GetValue()
		}
	}
	return values
}

func TestStoreCountsWhatItHolds(t *testing.T) {
	b := newBench(t)
	mirror := types.NamespacedName{Namespace: shop.Namespace, Name: "mirror"}
	state := b.read(t, shop, fakecatalog.StartExtended(t, lamp("{}")).Address())
	b.read(t, mirror, fakecatalog.StartExtended(t, lamp("{}")).Address())
	size := float64(state.Snapshot.Bytes())
	becomes := func(name string, want map[string]float64) {
		t.Helper()
		b.Eventually(func() map[string]float64 { return gauges(t, name) }).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.Equal(want))
	}
	becomes("chandlery_catalog_snapshot_bytes", map[string]float64{"shop": size, "mirror": size})
	becomes("chandlery_catalog_snapshots", map[string]float64{"": 1})
	becomes("chandlery_catalog_snapshots_bytes", map[string]float64{"": size})
	b.store.Remove(shop)
	becomes("chandlery_catalog_snapshot_bytes", map[string]float64{"mirror": size})
	b.store.Remove(mirror)
	becomes("chandlery_catalog_snapshots", map[string]float64{"": 0})
	becomes("chandlery_catalog_snapshots_bytes", map[string]float64{"": 0})
}

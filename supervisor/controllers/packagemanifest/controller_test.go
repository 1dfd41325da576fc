package packagemanifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// follower is a reconciler with one catalog.
type follower struct {
	*reconciler

	t     *testing.T
	key   types.NamespacedName
	clock *testingclock.FakePassiveClock
}

// follow follows the catalog at an address.
func follow(t *testing.T, address string) *follower {
	t.Helper()
	source := fixtures.ServedCatalog("olm", "shop", address)
	source.Spec.DisplayName = "Shop"
	reader, _ := fixtures.RecordingClient(t, source)
	now := testingclock.NewFakePassiveClock(time.Unix(1e9, 0))
	store := catalogs.NewStore(t.Context(), time.Second, clock.RealClock{})
	f := &follower{
		t: t, key: client.ObjectKeyFromObject(source), clock: now,
		reconciler: &reconciler{reader: reader, store: store, index: manifest.NewIndex("olm"), turns: newTurns("olm"), clock: now},
	}
	if err := store.Follow(f.key, address, dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Remove(f.key) })
	return f
}

// until reconciles until a condition holds.
func (f *follower) until(what string, holds func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if err := pause.Until(ctx, 20*time.Millisecond, func() string {
		_, err := f.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: f.key})
		if err == nil && holds() {
			return ""
		}
		return fmt.Sprintf("the last error is %v", err)
	}); err != nil {
		f.t.Fatalf("%s: not within a minute: %v", what, err)
	}
}

// heads returns the heads of channels, by package and channel.
func (f *follower) heads() map[string]string {
	f.t.Helper()
	found := map[string]string{}
	for _, item := range f.index.List("") {
		text, err := item.Package.StatusJSON(item.Source)
		if err != nil {
			f.t.Fatal(err)
		}
		var shown manifest.Status
		if err := json.Unmarshal(text, &shown); err != nil {
			f.t.Fatal(err)
		}
		for _, c := range shown.Channels {
			found[shown.PackageName+"/"+c.Name] = c.CurrentCSV
		}
	}
	return found
}

// version returns an entry with a ClusterServiceVersion that has some more text.
func version(name, replaces, text string) fakecatalog.Entry {
	csv := fmt.Sprintf(`{"kind":"ClusterServiceVersion","metadata":{"name":%q},"spec":{"version":"1.0.0","description":%q}}`, name, text)
	return fakecatalog.Entry{Name: name, Version: "1.0.0", Replaces: replaces, Objects: []string{csv}}
}

// TestContentIsFollowed has a catalog with a channel whose head cannot be read and a head of 5 MiB: a message
// has an inline ClusterServiceVersion twice. The catalog then changes,
// stops, and is deleted.
func TestContentIsFollowed(t *testing.T) {
	t.Parallel()
	broken := fakecatalog.Entry{Name: "lamp.v0", Version: "0.1.0", Objects: []string{`{"kind":"ClusterServiceVersion","metadata":{"name":7}}`}}
	served := fakecatalog.StartExtended(t,
		fakecatalog.Package{Name: "lamp", Channels: []fakecatalog.Channel{
			{Name: "stable", Entries: []fakecatalog.Entry{version("lamp.v1", "", "")}}, {Name: "broken", Entries: []fakecatalog.Entry{broken}},
		}},
		fakecatalog.Simple("giant", version("giant.v1", "", strings.Repeat("x", 5<<19))),
		fakecatalog.Simple("ruin", broken),
	)
	f := follow(t, served.Address())
	if f.allRead(t.Context()) {
		t.Error("the catalog counts as read before it was")
	}
	f.until("the first content", func() bool { return len(f.index.List("")) > 0 })
	if diff := cmp.Diff(map[string]string{"lamp/stable": "lamp.v1", "giant/stable": "giant.v1"}, f.heads()); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	if !f.allRead(t.Context()) {
		t.Error("the catalog does not count as read")
	}
	if n := testutil.ToFloat64(brokenChannels.WithLabelValues("olm", "shop")); n != 2 {
		t.Errorf("%v broken channels, want 2", n)
	}
	state, _ := f.store.State(f.key)
	f.store.SetBrokenChannels(f.key, state.Snapshot, nil)
	f.until("the same content", func() bool {
		state, _ := f.store.State(f.key)
		return cmp.Equal([]string{"lamp/broken", "ruin/stable"}, state.BrokenChannels)
	})

	served.Serve(fakecatalog.Simple("lamp", version("lamp.v1", "", ""), version("lamp.v2", "lamp.v1", "")))
	f.until("the new content", func() bool { return cmp.Equal(map[string]string{"lamp/stable": "lamp.v2"}, f.heads()) })

	served.Stop()
	since := func() time.Time { return f.index.List("")[0].Source.UnavailableSince }
	f.until("the catalog is away", func() bool { return !since().IsZero() })
	f.clock.SetTime(time.Unix(2e9, 0))
	f.until("the catalog is still away", func() bool { return true })
	if got := since(); got.Unix() != 1e9 || len(f.index.List("")) != 1 {
		t.Errorf("away since %s", got)
	}

	f.reader, _ = fixtures.RecordingClient(t)
	f.until("the catalog is deleted", func() bool { return len(f.index.List("")) == 0 })
}

// TestKnownContentOfAnAbsentCatalog has a catalog with content that is known, such as that on disk, and whose heads cannot be
// read because no server answers. There is nothing to repeat until one does.
func TestKnownContentOfAnAbsentCatalog(t *testing.T) {
	t.Parallel()
	served := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", version("lamp.v1", "", "")))
	f := follow(t, served.Address())
	state := func() catalogs.State { s, _ := f.store.State(f.key); return s }
	f.until("the content", func() bool { return state().Snapshot != nil })
	f.index.Remove(f.key)
	served.Stop()
	if err := f.store.Follow(f.key, "127.0.0.1:1", dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	f.until("the catalog is away", func() bool { return state().Err != nil })
	if _, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key}); err != nil || state().Snapshot == nil {
		t.Errorf("error %v, state %+v", err, state())
	}
	if len(f.index.List("")) != 0 || !f.allRead(t.Context()) {
		t.Errorf("%d packages, all read %v", len(f.index.List("")), f.allRead(t.Context()))
	}
	served.Restart()
	if err := f.store.Follow(f.key, served.Address(), dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	f.until("the catalog is back", func() bool { return len(f.index.List("")) == 1 })
}

// TestInterruptedReadingChangesNothing has a catalog whose new content cannot be read. The previous packages are listed.
func TestInterruptedReadingChangesNothing(t *testing.T) {
	t.Parallel()
	second := func(name string) fakecatalog.Package {
		return fakecatalog.Simple(name, version(name+".v1", "", ""), version(name+".v2", name+".v1", ""))
	}
	served := fakecatalog.Start(t, fakecatalog.Simple("lamp", version("lamp.v1", "", "")), fakecatalog.Simple("torch", version("torch.v1", "", "")))
	f := follow(t, served.Address())
	first := map[string]string{"lamp/stable": "lamp.v1", "torch/stable": "torch.v1"}
	f.until("the first content", func() bool { return cmp.Equal(first, f.heads()) })
	known, _ := f.store.State(f.key)
	// The heads of the catalog are not those of the content that is being read.
	served.Serve(second("lamp"), second("torch"))
	if packages, _, err := f.read(t.Context(), f.key, known.Snapshot.Content, false); !errors.Is(err, catalogs.ErrOtherHead) {
		t.Errorf("a mixture of contents: %v, %v", packages, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := pause.Until(ctx, 20*time.Millisecond, func() string {
		if state, _ := f.store.State(f.key); state.Snapshot == known.Snapshot {
			return "the content is the first one"
		}
		return ""
	}); err != nil {
		t.Fatal(err)
	}
	served.Fail(status.Error(codes.Unavailable, "restarting"))
	if _, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key}); replicas.IsReplicaFailure(err) {
		t.Logf("the reading ended with: %v", err)
	} else {
		t.Errorf("the heads of a failing catalog were read: %v", err)
	}
	if diff := cmp.Diff(first, f.heads()); diff != "" {
		t.Errorf("heads after an interrupted reading (-want +got):\n%s", diff)
	}
	served.Fail(nil)
	f.until("the second content", func() bool {
		return cmp.Equal(map[string]string{"lamp/stable": "lamp.v2", "torch/stable": "torch.v2"}, f.heads())
	})
	served.Stop()
	if packages, _, err := f.read(t.Context(), f.key, known.Snapshot.Content, false); err == nil {
		t.Errorf("content of a stopped catalog: %v", packages)
	}
	f.until("the catalog is away", func() bool { return !f.index.List("")[0].Source.UnavailableSince.IsZero() })
	if n := len(f.index.List("")); n != 2 {
		t.Errorf("%d packages of a stopped catalog, want 2", n)
	}
}

// TestOtherHead has catalogs that send another head of a channel than they list. Only that channel is left out, once the
// catalog has confirmed what it lists. Until then its packages stay as they were.
func TestOtherHead(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...fakecatalog.Package) *fakecatalog.Server{
		"Extended": fakecatalog.StartExtended,
		"Plain":    fakecatalog.Start,
		"Unannounced": func(tb testing.TB, packages ...fakecatalog.Package) *fakecatalog.Server {
			tb.Helper()
			served := fakecatalog.Start(tb, packages...)
			served.Announce("")
			return served
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The server sends the last entry of a channel as its head.
			contradictory := fakecatalog.Package{Name: "lamp", Channels: []fakecatalog.Channel{
				{Name: "beta", Entries: []fakecatalog.Entry{version("lamp.v2", "lamp.v1", ""), version("lamp.v1", "", "")}},
				{Name: "stable", Entries: []fakecatalog.Entry{version("lamp.v1", "", "")}},
			}}
			served := start(t, contradictory, fakecatalog.Simple("torch", version("torch.v1", "", "")))
			f := follow(t, served.Address())
			f.until("the content", func() bool { return len(f.index.List("")) > 0 })
			if diff := cmp.Diff(map[string]string{"lamp/stable": "lamp.v1", "torch/stable": "torch.v1"}, f.heads()); diff != "" {
				t.Errorf("heads (-want +got):\n%s", diff)
			}
			if catalog, _ := f.index.Catalog(f.key); !cmp.Equal([]string{"lamp/beta"}, catalog.BrokenChannels) {
				t.Errorf("broken channels %v", catalog.BrokenChannels)
			}
		})
	}
}

// TestOtherHeadsAreConfirmed covers the states of a catalog after it sent a head that it had not listed.
func TestOtherHeadsAreConfirmed(t *testing.T) {
	t.Parallel()
	catalog, read := types.NamespacedName{Namespace: "olm", Name: "shop"}, time.Unix(1e9, 0)
	state := func(digest string, after time.Duration) catalogs.State {
		return catalogs.State{Snapshot: &catalogs.Snapshot{Digest: digest}, ReadAt: read.Add(after)}
	}
	var o otherHeads
	if o.confirmed(catalog, state("a", time.Hour)) {
		t.Error("nothing was seen")
	}
	o.add(catalog, "a", read)
	o.add(catalog, "a", read.Add(time.Minute))
	for name, tt := range map[string]struct {
		state catalogs.State
		want  bool
	}{
		"Same":         {state("a", 0), false},
		"Confirmed":    {state("a", time.Second), true},
		"OtherContent": {state("b", time.Second), false},
	} {
		if got := o.confirmed(catalog, tt.state); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	o.add(catalog, "b", read.Add(time.Minute))
	if o.confirmed(catalog, state("a", time.Hour)) || !o.confirmed(catalog, state("b", time.Hour)) {
		t.Error("the content that was seen last does not count")
	}
	o.remove(catalog)
	if o.confirmed(catalog, state("b", time.Hour)) {
		t.Error("a removed catalog is known")
	}
}

// TestRealCatalog reads a catalog of 331 packages. They must take little memory.
func TestRealCatalog(t *testing.T) {
	const most = 4 << 20
	_, port, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	running, err := process.Start(t.Context(), process.Spec{
		Name: "registry serve", Path: programs.Registry(t), Log: filepath.Join(t.TempDir(), "registry.log"),
		Args: []string{"serve", realcatalogs.Dir(t, realcatalogs.Metadata), "--host=127.0.0.1", "--port", port, "--metrics-address=0", "--termination-log="},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	f := follow(t, net.JoinHostPort("127.0.0.1", port))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var state catalogs.State
	if err := pause.Until(ctx, 100*time.Millisecond, func() string {
		if state, _ = f.store.State(f.key); state.Snapshot == nil {
			return fmt.Sprintf("the last error is %v", state.Err)
		}
		return ""
	}); err != nil {
		t.Fatalf("the catalog is not read: %v", err)
	}
	before, begun := heap(), time.Now()
	packages, _, err := f.read(t.Context(), f.key, state.Snapshot.Content, false)
	if err != nil {
		t.Fatal(err)
	}
	took, held := time.Since(begun), heap()-before
	source, size := &manifest.Source{Namespace: "olm", Name: "shop"}, 0
	begun = time.Now()
	for _, p := range packages {
		text, err := p.StatusJSON(source)
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
	}
	t.Logf("%d packages read in %s, %.1f MB of heap; all in %s, %.1f MB", len(packages), took, float64(held)/1e6, time.Since(begun), float64(size)/1e6)
	if len(packages) != len(state.Snapshot.Content.Packages()) || held > most {
		t.Errorf("%d of %d packages take %d bytes, at most %d are allowed", len(packages), len(state.Snapshot.Content.Packages()), held, most)
	}
	runtime.KeepAlive(packages)
}

// heap returns the memory of live objects, in bytes.
func heap() int64 {
	// The second collection frees what finalizers and pools held.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestIsCurrent covers content without an announced digest, as opm serves it, whose heads may change with each connection,
// and channels whose heads could not be read.
func TestIsCurrent(t *testing.T) {
	t.Parallel()
	read := time.Unix(1e9, 0)
	first, second := read.Add(-time.Minute), read.Add(time.Minute)
	for name, tt := range map[string]struct {
		digest    string
		connected time.Time
		broken    []string
		age       time.Duration
		want      bool
	}{
		"Same":           {digest: "a", connected: first, want: true},
		"OtherDigest":    {digest: "b", connected: first},
		"NewConnection":  {digest: "a", connected: second},
		"BrokenRecently": {digest: "a", connected: first, broken: []string{"lamp/stable"}, age: retryBroken - time.Second, want: true},
		"BrokenLong":     {digest: "a", connected: first, broken: []string{"lamp/stable"}, age: retryBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := manifest.Catalog{Digest: "a", Connected: first, ReadAt: read, BrokenChannels: tt.broken}
			state := catalogs.State{LastConnect: tt.connected, Snapshot: &catalogs.Snapshot{Digest: tt.digest}}
			if got := isCurrent(known, state, read.Add(tt.age)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

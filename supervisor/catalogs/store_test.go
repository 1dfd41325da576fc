package catalogs_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/forwarder"
)

const (
	refresh  = 50 * time.Millisecond
	patience = 20 * time.Second
)

var shop = types.NamespacedName{Namespace: "olm", Name: "shop"}

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	goleak.VerifyTestMain(m)
}

// bench is a store under test.
type bench struct {
	*gomega.WithT

	store *catalogs.Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchWith(t, refresh)
}

func newBenchWith(t *testing.T, refresh time.Duration) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	store := catalogs.NewStore(ctx, refresh, clock.RealClock{})
	t.Cleanup(func() {
		cancel()
		if err := store.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	return &bench{WithT: gomega.NewWithT(t), store: store}
}

func (b *bench) follow(t *testing.T, address string) {
	t.Helper()
	if err := b.store.Follow(shop, address, dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
}

// becomes waits until the state of the catalog matches, and returns it.
func (b *bench) becomes(t *testing.T, what string, holds func(catalogs.State) bool) catalogs.State {
	t.Helper()
	var state catalogs.State
	b.Eventually(func() bool {
		state, _ = b.store.State(shop)
		return holds(state)
	}).WithTimeout(patience).WithPolling(5*time.Millisecond).Should(gomega.BeTrue(), func() string {
		return what + ": " + state.Connectivity
	})
	return state
}

func (b *bench) ready(t *testing.T) catalogs.State {
	t.Helper()
	return b.becomes(t, "ready", catalogs.State.Ready)
}

func lamp(manifests ...string) fakecatalog.Package {
	return fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Objects: manifests})
}

func TestStoreConnectsAndReads(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) { connectsAndReads(t, start(t, lamp("{}")), kind == "extended") })
	}
}

// kinds returns the kinds of servers: OLM's, which announces no digest, and this project's without
// and with the extension API.
func kinds() map[string]func(tb testing.TB, packages ...fakecatalog.Package) *fakecatalog.Server {
	return map[string]func(tb testing.TB, packages ...fakecatalog.Package) *fakecatalog.Server{
		"silent": func(tb testing.TB, packages ...fakecatalog.Package) *fakecatalog.Server {
			tb.Helper()
			server := fakecatalog.Start(tb, packages...)
			server.Announce("")
			return server
		},
		"announcing": fakecatalog.Start,
		"extended":   fakecatalog.StartExtended,
	}
}

func connectsAndReads(t *testing.T, server *fakecatalog.Server, pages bool) {
	t.Helper()
	b := newBench(t)
	if _, followed := b.store.State(shop); followed {
		t.Error("a catalog is followed that nobody asked for")
	}
	before := time.Now()
	b.follow(t, server.Address())
	state := b.ready(t)
	if state.Address != server.Address() || state.LastConnect.Before(before) || state.Err != nil {
		t.Errorf("state %+v", state)
	}
	if state.ReadAt.Before(before) {
		t.Errorf("content as of %s", state.ReadAt)
	}
	if got := state.Snapshot.Content.Packages(); len(got) != 1 || got[0].Name != "lamp" || got[0].DefaultChannel != "stable" {
		t.Errorf("content %+v", got)
	}
	if got := state.Snapshot.Manifests("lamp", "lamp.v1"); (got == "") != pages || (got != "" && got != plansteps.Digest([]string{"{}"})) {
		t.Errorf("digest of the manifests %q", got)
	}

	bundle, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1")
	if err != nil {
		t.Fatal(err)
	}
	if bundle.Name != "lamp.v1" || bundle.Package != "lamp" || bundle.Channel != "stable" || bundle.Catalog != shop || len(bundle.Objects) != 1 || len(bundle.Properties) != 1 {
		t.Errorf("bundle %+v", bundle)
	}
	if got := state.Snapshot.Manifests("lamp", "lamp.v1"); got != plansteps.Digest([]string{"{}"}) {
		t.Errorf("digest of the manifests %q although they have been read", got)
	}
	if _, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v2"); err == nil || !strings.Contains(err.Error(), "reading bundle lamp.v2 of package lamp from catalog olm/shop") {
		t.Errorf("error for a bundle that is not there: %v", err)
	}
	b.store.Remove(shop)
	if _, followed := b.store.State(shop); followed {
		t.Error("a catalog is followed that was removed")
	}
	if _, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1"); err == nil || !strings.Contains(err.Error(), catalogs.ErrNotConnected.Error()) {
		t.Errorf("error for a catalog that is not followed: %v", err)
	}
}

func TestStoreNoticesNewContent(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) { noticesNewContent(t, start(t, lamp("{}"))) })
	}
}

func noticesNewContent(t *testing.T, server *fakecatalog.Server) {
	t.Helper()
	b := newBench(t)
	b.store.Settings().Reread = refresh
	changes := b.store.Listen()
	b.follow(t, server.Address())
	first := b.ready(t)
	// After a second reading, every event of the first one has arrived.
	seen := b.becomes(t, "seen again", func(s catalogs.State) bool { return s.ReadAt.After(first.ReadAt) })
	for len(changes) > 0 {
		<-changes
	}
	// An unchanged digest publishes no change but moves ReadAt.
	asked := server.Asked()
	b.Eventually(server.Asked).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.BeNumerically(">", asked+1))
	again := b.becomes(t, "seen once more", func(s catalogs.State) bool { return s.ReadAt.After(seen.ReadAt) })
	if again.Snapshot != first.Snapshot {
		t.Error("the same content made another snapshot")
	}
	if !again.LastConnect.Equal(first.LastConnect) {
		t.Errorf("connected at %s, before at %s, although nothing happened", again.LastConnect, first.LastConnect)
	}
	if len(changes) > 0 {
		t.Error("the same content is told as a change")
	}
	server.Serve(lamp("{}", "[]"))
	second := b.becomes(t, "new content", func(s catalogs.State) bool { return s.Snapshot.Digest != first.Snapshot.Digest })
	if !second.LastConnect.After(first.LastConnect) {
		t.Errorf("new content is served since %s, the old one since %s", second.LastConnect, first.LastConnect)
	}
	if _, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1"); err != nil {
		t.Fatal(err)
	}
	if second.Snapshot.Manifests("lamp", "lamp.v1") != plansteps.Digest([]string{"{}", "[]"}) {
		t.Error("the digest of the manifests did not change")
	}
	b.Eventually(changes).WithTimeout(patience).Should(gomega.Receive())
	// A server that returns to its previous content is trusted.
	server.Serve(lamp("{}"))
	b.becomes(t, "the content before", func(s catalogs.State) bool { return s.Snapshot.Digest == first.Snapshot.Digest })
}

func TestStoreTakesTheServersWordForUnchangedContent(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	server.Announce("first")
	b := newBench(t)
	b.follow(t, server.Address())
	first := b.ready(t)
	asked := server.Asked()
	b.Eventually(server.Asked).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.BeNumerically(">", asked+2))
	if n := server.Listed(); n != 1 {
		t.Errorf("content that the server calls unchanged was read %d times", n)
	}
	server.Serve(lamp("{}", "[]"))
	server.Announce("second")
	b.becomes(t, "new content", func(s catalogs.State) bool { return s.Snapshot.Digest != first.Snapshot.Digest })
}

// TestStoreCountsReadings checks that the metric counts complete readings, not checks, and ends with the catalog.
func TestStoreCountsReadings(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	server.Announce("first")
	b := newBench(t)
	counted := types.NamespacedName{Namespace: "olm", Name: "counted"}
	if err := b.store.Follow(counted, server.Address(), dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	reads := func() float64 { return catalogs.SnapshotReads(counted) }
	b.Eventually(reads).WithTimeout(patience).Should(gomega.BeEquivalentTo(1))
	asked := server.Asked()
	b.Eventually(server.Asked).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.BeNumerically(">", asked+2))
	if got := reads(); got != 1 {
		t.Errorf("%v readings of unchanged content", got)
	}
	server.Serve(lamp("{}", "[]"))
	server.Announce("second")
	b.Eventually(reads).WithTimeout(patience).Should(gomega.BeEquivalentTo(2))
	b.store.Remove(counted)
	b.Eventually(reads).WithTimeout(patience).Should(gomega.BeEquivalentTo(0))
}

func TestStoreKeepsItsSnapshotWhileTheServerIsAway(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	b := newBench(t)
	b.follow(t, server.Address())
	first := b.ready(t)
	server.Stop()
	away := b.becomes(t, "the server is gone", func(s catalogs.State) bool { return s.Connectivity == "TRANSIENT_FAILURE" })
	if away.Ready() || away.Snapshot != first.Snapshot {
		t.Errorf("ready %v, snapshot kept %v", away.Ready(), away.Snapshot == first.Snapshot)
	}
	server.Restart()
	b.becomes(t, "connected again, later", func(s catalogs.State) bool { return s.Ready() && s.LastConnect.After(first.LastConnect) })
}

func TestStoreChangesTheAddress(t *testing.T) {
	server, other := fakecatalog.Start(t, lamp("{}")), fakecatalog.Start(t, lamp("[]"))
	other.Fail(status.Error(codes.Unavailable, "starting"))
	b := newBench(t)
	b.follow(t, server.Address())
	first := b.ready(t)
	b.follow(t, server.Address())
	b.follow(t, other.Address())
	if state, _ := b.store.State(shop); state.Snapshot != first.Snapshot || state.Ready() {
		t.Errorf("after the change: ready %v, snapshot kept %v", state.Ready(), state.Snapshot == first.Snapshot)
	}
	other.Fail(nil)
	if second := b.ready(t); second.Address != other.Address() || second.Snapshot.Digest == first.Snapshot.Digest {
		t.Errorf("address %s, content new %v", second.Address, second.Snapshot.Digest != first.Snapshot.Digest)
	}
}

func TestStoreRetriesContentThatFails(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	server.Fail(status.Error(codes.Unavailable, "starting"))
	b := newBench(t)
	b.follow(t, server.Address())
	failing := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
	if failing.Ready() || failing.Connectivity != "READY" || !strings.Contains(failing.Err.Error(), "failed to list bundles") {
		t.Errorf("state %+v", failing)
	}
	server.Fail(nil)
	first := b.ready(t)
	server.Fail(status.Error(codes.Internal, "broken"))
	broken := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
	if broken.Snapshot != first.Snapshot {
		t.Error("an error took the snapshot away")
	}
}

func TestStoreRefusesMessagesThatAreTooLarge(t *testing.T) {
	server := fakecatalog.Start(t, lamp(strings.Repeat(" ", 64<<20)))
	b := newBench(t)
	b.follow(t, server.Address())
	// On a busy machine, the reading may time out, which is another error.
	state := b.becomes(t, "an error", func(s catalogs.State) bool {
		return s.Err != nil && status.Code(unwrapped(s.Err)) == codes.ResourceExhausted
	})
	if state.Snapshot != nil {
		t.Errorf("error %v, snapshot %v", state.Err, state.Snapshot)
	}
}

func unwrapped(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

func TestStoreTellsOfAddressesThatAreNone(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	b := newBench(t)
	changes := b.store.Listen()
	b.follow(t, server.Address())
	first := b.ready(t)
	for len(changes) > 0 {
		<-changes
	}
	b.follow(t, "dns://%zz/")
	state, _ := b.store.State(shop)
	if state.Err == nil || !strings.Contains(state.Err.Error(), "preparing a connection to dns://%zz/") {
		t.Errorf("error %v", state.Err)
	}
	if state.Address != "dns://%zz/" || state.Connectivity != "TRANSIENT_FAILURE" || state.Ready() || state.Snapshot != first.Snapshot {
		t.Errorf("state %+v", state)
	}
	b.Eventually(changes).WithTimeout(patience).Should(gomega.Receive())
	if _, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1"); !errors.Is(err, catalogs.ErrNotConnected) {
		t.Errorf("reading a bundle gives %v", err)
	}
	b.follow(t, server.Address())
	b.ready(t)
}

func TestStoreSaysWhyThereIsNoConnection(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	b := newBench(t)
	b.follow(t, server.Address())
	b.ready(t)
	server.Stop()
	away := b.becomes(t, "not connected", func(s catalogs.State) bool { return errors.Is(s.Err, catalogs.ErrNotConnected) })
	if away.Connectivity != "TRANSIENT_FAILURE" || away.Ready() ||
		!strings.Contains(away.Err.Error(), "nothing answers at "+server.Address()) || !strings.Contains(away.Err.Error(), "connection refused") {
		t.Errorf("state %+v", away)
	}
	server.Restart()
	b.ready(t)
}

func TestStoreNoticesAServerThatHangs(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) {
			server := start(t, lamp("{}"))
			way := forwarder.Start(t, server.Address())
			b := newBench(t)
			b.store.Settings().Probe = 200 * time.Millisecond
			b.store.Settings().Answer = time.Second
			b.follow(t, way.Address)
			first := b.ready(t)
			way.Stop()
			hung := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
			way.Resume()
			if hung.Ready() || hung.Snapshot != first.Snapshot || status.Code(hung.Err) != codes.DeadlineExceeded {
				t.Errorf("ready %v, snapshot kept %v, error %v", hung.Ready(), hung.Snapshot == first.Snapshot, hung.Err)
			}
			b.ready(t)
		})
	}
}

// hosted follows a catalog at the replicas.
func (b *bench) hosted(t *testing.T, servers ...*fakecatalog.Server) {
	t.Helper()
	var endpoints []replicas.Endpoint
	for i, server := range servers {
		name := "shop-1-" + strconv.Itoa(i)
		endpoints = append(endpoints, replicas.Endpoint{
			Address: server.Address(), Ready: true, Pod: types.NamespacedName{Namespace: shop.Namespace, Name: name}, UID: types.UID(server.Address()),
		})
	}
	if err := b.store.FollowReplicas(shop, "shop.olm.svc:50051", dialtls.Security{}, endpoints); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) serving(n int) {
	b.Eventually(func() int {
		count := 0
		for _, r := range b.store.Replicas(shop) {
			if r.Health == replicas.Serving {
				count++
			}
		}
		return count
	}).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.Equal(n))
}

func TestStoreAsksTheReplicaThatIsLeft(t *testing.T) {
	one, two := fakecatalog.Start(t, lamp("{}")), fakecatalog.Start(t, lamp("{}"))
	b := newBench(t)
	b.hosted(t, one, two)
	if state := b.ready(t); state.Address != "shop.olm.svc:50051" {
		t.Errorf("address %s", state.Address)
	}
	b.serving(2)
	for round := range 20 {
		switch round {
		case 5:
			one.Stop()
		case 15:
			one.Restart()
		}
		if _, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1"); err != nil {
			t.Fatal(err)
		}
	}
	b.serving(2)
	b.ready(t)
	one.Stop()
	two.Stop()
	away := b.becomes(t, "away", func(s catalogs.State) bool { return s.Connectivity == "TRANSIENT_FAILURE" })
	if !errors.Is(away.Err, catalogs.ErrNotConnected) || !strings.Contains(away.Err.Error(), "connection refused") || away.Snapshot == nil {
		t.Errorf("state %+v", away)
	}
}

func TestStoreReadsFromAReplicaThatJoins(t *testing.T) {
	old, next := fakecatalog.Start(t, lamp("{}")), fakecatalog.Start(t, lamp("[]"))
	b := newBenchWith(t, time.Hour)
	b.hosted(t)
	b.becomes(t, "no replica yet", func(s catalogs.State) bool { return s.Connectivity == "CONNECTING" })
	b.hosted(t, old)
	first := b.ready(t)
	b.hosted(t, old, next)
	b.serving(2)
	b.hosted(t, next)
	b.becomes(t, "new content", func(s catalogs.State) bool { return s.Snapshot.Digest != first.Snapshot.Digest })
}

// TestStoreDoesNotWaitForEverForAReplica has a catalog whose pods have no address, as when its
// image cannot be pulled.
func TestStoreDoesNotWaitForEverForAReplica(t *testing.T) {
	b := newBench(t)
	b.store.Settings().Answer = 20 * time.Millisecond
	news := b.store.Listen()
	b.hosted(t)
	state := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
	if !errors.Is(state.Err, catalogs.ErrNotConnected) || !strings.Contains(state.Err.Error(), "no replica of it answers yet") {
		t.Errorf("error %v", state.Err)
	}
	b.Eventually(news).WithTimeout(patience).Should(gomega.Receive())
	b.hosted(t, fakecatalog.Start(t, lamp("{}")))
	b.ready(t)
}

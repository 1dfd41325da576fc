package catalogs_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// shops returns n packages.
func shops(n int) []fakecatalog.Package {
	packages := make([]fakecatalog.Package, 0, n)
	for i := range n {
		name := "p" + strconv.Itoa(i)
		packages = append(packages, fakecatalog.Simple(name, fakecatalog.Entry{Name: name + ".v1", Version: "1.0.0"}))
	}
	return packages
}

func TestStoreHearsOfNewContent(t *testing.T) {
	server := fakecatalog.StartExtended(t, lamp("{}"))
	b := newBenchWith(t, time.Hour)
	b.follow(t, server.Address())
	first := b.ready(t)
	server.Serve(shops(3)...)
	b.becomes(t, "new content", func(s catalogs.State) bool { return s.Snapshot.Digest != first.Snapshot.Digest })
	if n := server.Listed(); n > 0 {
		t.Errorf("everything was listed %d times", n)
	}
}

func TestStoreReadsPages(t *testing.T) {
	const packages = 17
	content := shops(packages)
	content[0].Deprecation, content[1].Channels[0].Deprecation, content[2].Channels[0].Entries[0].Deprecation = "package", "channel", "bundle"
	server := fakecatalog.StartExtended(t, content...)
	server.Paginate(3)
	server.Abort(4)
	b := newBenchWith(t, time.Hour)
	b.follow(t, server.Address())
	read := b.ready(t).Snapshot.Content
	if n := len(read.Packages()); n != packages {
		t.Errorf("%d packages", n)
	}
	if p := read.Package("p0"); p.Deprecation != "package" || p.DefaultChannel != "stable" {
		t.Errorf("package %+v", p)
	}
	if p := read.Package("p1"); p.Channel("stable").Deprecation != "channel" {
		t.Errorf("channel %+v", p.Channel("stable"))
	}
	if p := read.Package("p2"); p.Bundle("p2.v1").Deprecation != "bundle" {
		t.Errorf("bundle %+v", p.Bundle("p2.v1"))
	}
}

func TestStoreGivesUpPagesThatChangeAllTheTime(t *testing.T) {
	server := fakecatalog.StartExtended(t, shops(9)...)
	server.Paginate(3)
	server.Abort(1000)
	b := newBench(t)
	b.follow(t, server.Address())
	state := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
	if state.Snapshot != nil || !strings.Contains(state.Err.Error(), "failed to list bundles") {
		t.Errorf("state %+v", state)
	}
	server.Abort(0)
	b.ready(t)
}

func TestStoreLearnsWhichAPIAServerHas(t *testing.T) {
	server := fakecatalog.Start(t, lamp("{}"))
	b := newBench(t)
	b.follow(t, server.Address())
	b.ready(t)
	if n := server.Pages(); n > 0 {
		t.Fatalf("%d pages were read", n)
	}
	for _, extended := range []bool{true, false} {
		server.Stop()
		b.becomes(t, "the server is gone", func(s catalogs.State) bool { return s.Connectivity == "TRANSIENT_FAILURE" })
		server.Extend(extended)
		server.Serve(lamp("{}", strconv.FormatBool(extended)))
		pages, listed := server.Pages(), server.Listed()
		server.Restart()
		b.Eventually(func() bool { return server.Pages() > pages || server.Listed() > listed }).WithTimeout(patience).Should(gomega.BeTrue())
		if got := server.Pages() > pages; got != extended {
			t.Errorf("pages were read: %v, want %v", got, extended)
		}
		b.ready(t)
	}
}

func TestStoreSaysThatACatalogIsTooLarge(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) {
			server := start(t, lamp("{}"))
			b := newBench(t)
			b.store.Settings().Limit = 4 << 10
			b.follow(t, server.Address())
			first := b.ready(t)
			server.Serve(shops(1000)...)
			b.store.Remove(shop)
			b.follow(t, server.Address())
			state := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
			for _, want := range []string{"cannot be used", "4096 bytes", "several catalogs"} {
				if !strings.Contains(state.Err.Error(), want) {
					t.Errorf("error %q lacks %q", state.Err, want)
				}
			}
			if state.Snapshot != nil || first.Snapshot == nil {
				t.Error("what was removed is still there")
			}
			// The catalog is not read repeatedly.
			pages, listed, asked := server.Pages(), server.Listed(), server.Asked()
			b.Eventually(server.Asked).WithTimeout(patience).Should(gomega.BeNumerically(">", asked+2))
			if server.Pages() > pages+1 || server.Listed() > listed+1 {
				t.Errorf("read again: %d pages, %d lists", server.Pages()-pages, server.Listed()-listed)
			}
			server.Serve(lamp("[]"))
			if kind == "silent" {
				server.Stop()
				server.Restart()
			}
			b.ready(t)
		})
	}
}

func TestStoreKeepsAGoodSnapshotWhenTheNextIsTooLarge(t *testing.T) {
	server := fakecatalog.StartExtended(t, lamp("{}"))
	b := newBench(t)
	b.store.Settings().Limit = 4 << 10
	b.follow(t, server.Address())
	first := b.ready(t)
	server.Serve(shops(1000)...)
	bad := b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
	if bad.Snapshot != first.Snapshot || bad.Ready() {
		t.Errorf("state %+v", bad)
	}
	server.Serve(lamp("{}"))
	if back := b.ready(t); back.Snapshot != first.Snapshot {
		t.Error("the content that was there all along was read again")
	}
}

func TestStoreSaysWhatAServerWithoutContentSays(t *testing.T) {
	server := fakecatalog.StartExtended(t, lamp("{}"))
	server.Announce("")
	b := newBench(t)
	b.follow(t, server.Address())
	b.becomes(t, "an error", func(s catalogs.State) bool {
		return s.Err != nil && strings.Contains(s.Err.Error(), "no content to serve yet")
	})
	server.Announce("first")
	b.ready(t)
}

// rollout is a catalog with repeated rollouts.
type rollout struct{ servers []*fakecatalog.Server }

// endpoints returns the first n endpoints, each of its own rollout.
func (r rollout) endpoints(n int) []replicas.Endpoint {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var endpoints []replicas.Endpoint
	for i := range n {
		endpoints = append(endpoints, replicas.Endpoint{
			Address: r.servers[i].Address(), Ready: true, Pod: types.NamespacedName{Namespace: shop.Namespace, Name: "shop-" + strconv.Itoa(i)},
			UID: types.UID(strconv.Itoa(i)), Revision: strconv.Itoa(i), Created: begun.Add(time.Duration(i) * time.Minute),
		})
	}
	return endpoints
}

func (b *bench) roll(t *testing.T, endpoints []replicas.Endpoint) {
	t.Helper()
	if err := b.store.FollowReplicas(shop, "shop.olm.svc:50051", dialtls.Security{}, endpoints); err != nil {
		t.Fatal(err)
	}
}

func TestStoreDoesNotGoBackDuringARollOut(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) {
			r := rollout{servers: []*fakecatalog.Server{start(t, lamp("1")), start(t, shops(2)...), start(t, lamp("1"))}}
			b := newBench(t)
			b.store.Settings().Reread = refresh
			b.roll(t, r.endpoints(1))
			old := b.ready(t)
			b.roll(t, r.endpoints(2))
			next := b.becomes(t, "new content", func(s catalogs.State) bool { return s.Ready() && s.Snapshot.Digest != old.Snapshot.Digest })
			// While the new replica is unreachable, the old one serves bundles, but its old content
			// is not used.
			r.servers[1].Stop()
			b.serving(1)
			asked, listed := r.servers[0].Asked(), r.servers[0].Listed()
			b.Eventually(func() bool { return r.servers[0].Asked() > asked+3 || r.servers[0].Listed() > listed+3 }).WithTimeout(patience).Should(gomega.BeTrue())
			if state, _ := b.store.State(shop); state.Snapshot.Digest != next.Snapshot.Digest {
				t.Error("the content went back")
			}
			r.servers[1].Restart()
			b.serving(2)
			b.ready(t)
			// A rollback creates new replicas with the old content.
			b.roll(t, r.endpoints(3))
			b.becomes(t, "the old content", func(s catalogs.State) bool { return s.Snapshot.Digest == old.Snapshot.Digest })
		})
	}
}

func TestStoreGoesBackInTheEnd(t *testing.T) {
	r := rollout{servers: []*fakecatalog.Server{fakecatalog.StartExtended(t, lamp("1")), fakecatalog.StartExtended(t, shops(2)...)}}
	b := newBench(t)
	b.store.Settings().Settle = 200 * time.Millisecond
	b.roll(t, r.endpoints(1))
	old := b.ready(t)
	b.roll(t, r.endpoints(2))
	b.becomes(t, "new content", func(s catalogs.State) bool { return s.Ready() && s.Snapshot.Digest != old.Snapshot.Digest })
	r.servers[1].Stop()
	b.becomes(t, "the old content", func(s catalogs.State) bool { return s.Snapshot.Digest == old.Snapshot.Digest })
}

func TestStoreMovesItsEarToAnotherReplica(t *testing.T) {
	one, two := fakecatalog.StartExtended(t, lamp("{}")), fakecatalog.StartExtended(t, lamp("{}"))
	b := newBenchWith(t, time.Hour)
	b.hosted(t, one, two)
	b.ready(t)
	b.serving(2)
	packages := 1
	// Each call serves new content. The previous content belongs to another replica.
	change := func() {
		packages++
		one.Serve(shops(packages)...)
		two.Serve(shops(packages)...)
		b.becomes(t, "new content", func(s catalogs.State) bool { return s.Ready() && len(s.Snapshot.Content.Packages()) == packages })
	}
	for _, server := range []*fakecatalog.Server{one, two} {
		server.Stop()
		change()
		server.Restart()
		b.serving(2)
		change()
	}
}

func TestStoreSaysThatAServerFails(t *testing.T) {
	server := fakecatalog.StartExtended(t, lamp("{}"))
	b := newBench(t)
	b.store.Settings().Answer = time.Second
	b.follow(t, server.Address())
	b.ready(t)
	server.Fail(status.Error(codes.Unavailable, "restarting"))
	b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
	server.Fail(nil)
	b.ready(t)
}

// TestStoreDoesNotMindAMomentWithoutAnswer has a server that refuses calls for a moment. The
// content stays, and the store publishes nothing.
func TestStoreDoesNotMindAMomentWithoutAnswer(t *testing.T) {
	server := fakecatalog.StartExtended(t, shops(1)...)
	b := newBench(t)
	b.store.Settings().Answer = time.Hour
	b.follow(t, server.Address())
	b.ready(t)
	server.Fail(status.Error(codes.Unavailable, "restarting"))
	server.HangUp()
	b.Consistently(func() error {
		state, _ := b.store.State(shop)
		return state.Err
	}).WithTimeout(2 * time.Second).WithPolling(time.Millisecond).Should(gomega.Succeed())
	server.Fail(nil)
	server.Serve(shops(2)...)
	b.becomes(t, "the new content", func(s catalogs.State) bool { return s.Ready() && len(s.Snapshot.Content.Packages()) == 2 })
}

// TestStoreForgetsTheSilenceOfAServerThatAnswers stops and starts a server repeatedly. The state
// never shows a connection together with a missing answer.
func TestStoreForgetsTheSilenceOfAServerThatAnswers(t *testing.T) {
	server := fakecatalog.StartExtended(t, shops(1)...)
	b := newBenchWith(t, time.Hour)
	b.follow(t, server.Address())
	b.ready(t)
	for range 5 {
		server.Stop()
		b.becomes(t, "an error", func(s catalogs.State) bool { return s.Err != nil })
		server.Restart()
		b.becomes(t, "a connection", func(s catalogs.State) bool {
			connected := s.Connectivity == "READY"
			if connected && errors.Is(s.Err, catalogs.ErrNotConnected) {
				t.Fatalf("connected, and %v", s.Err)
			}
			return connected
		})
	}
}

func TestStoreDoesNotMindAWatchThatEnds(t *testing.T) {
	server := fakecatalog.StartExtended(t, shops(1)...)
	b := newBenchWith(t, time.Hour)
	changes := b.store.Listen()
	b.follow(t, server.Address())
	b.ready(t)
	for packages := 2; packages < 5; packages++ {
		for len(changes) > 0 {
			<-changes
		}
		server.HangUp()
		server.Serve(shops(packages)...)
		b.Eventually(func() int {
			state, _ := b.store.State(shop)
			if !state.Ready() {
				t.Fatalf("the end of a stream is taken for a failure: %+v", state)
			}
			return len(state.Snapshot.Content.Packages())
		}).WithTimeout(patience).WithPolling(time.Millisecond).Should(gomega.Equal(packages))
	}
}

package catalogs

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// serveRegistry serves a directory and returns the address.
func serveRegistry(tb testing.TB, program, dir string) string {
	tb.Helper()
	address := ports.Address(tb)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		tb.Fatal(err)
	}
	running, err := process.Start(tb.Context(), process.Spec{
		Name: "registry serve", Path: program, Log: filepath.Join(tb.TempDir(), "registry.log"),
		Args: []string{"serve", dir, "--host=127.0.0.1", "--port", port, "--metrics-address=0", "--termination-log="},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := running.Unexpected(); err != nil {
			tb.Error(err)
		}
		if err := running.Stop(30 * time.Second); err != nil {
			tb.Error(err)
		}
	})
	awaitServing(tb, running, dialRegistry(tb, address))
	return address
}

func dialRegistry(tb testing.TB, address string) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

func awaitServing(tb testing.TB, running *process.Process, conn *grpc.ClientConn) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 3*time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		if err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(running.Log())
			tb.Fatalf("the registry does not serve: %v\n%s", err, log)
		case <-running.Done():
			tb.Fatal(running.Unexpected())
		case <-ticker.C:
		}
	}
}

// ways returns the two functions that read a whole catalog.
func ways(conn grpc.ClientConnInterface) map[string]func(ctx context.Context) (*Snapshot, error) {
	return map[string]func(ctx context.Context) (*Snapshot, error){
		"pages": func(ctx context.Context) (*Snapshot, error) {
			return fetchPages(ctx, registryv1.NewRegistryServiceClient(conn), maxBytes)
		},
		"list": func(ctx context.Context) (*Snapshot, error) {
			return fetchList(ctx, api.NewRegistryClient(conn), maxBytes)
		},
	}
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

// TestSnapshotOfRealCatalogs reads catalogs in both ways. Both must return the same content with
// little memory.
func TestSnapshotOfRealCatalogs(t *testing.T) {
	const most = 20 << 20
	program := programs.Registry(t)
	for _, name := range []string{realcatalogs.Metadata, realcatalogs.Objects} {
		t.Run(name, func(t *testing.T) {
			conn := dialRegistry(t, serveRegistry(t, program, realcatalogs.Dir(t, name)))
			read := map[string]*Snapshot{}
			for way, fetch := range ways(conn) {
				before := heap()
				snapshot, err := fetch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				setAllManifests(t, conn, snapshot, name == realcatalogs.Objects)
				held := heap() - before
				t.Logf("%s: %d packages in %.1f MB of heap, estimated %.1f MB", way, len(snapshot.Content.Packages()), float64(held)/1e6, float64(snapshot.Bytes())/1e6)
				if held > most {
					t.Errorf("%s: the snapshot takes %d bytes", way, held)
				}
				read[way] = snapshot
			}
			compareSnapshots(t, read["list"], read["pages"])
			compareSnapshots(t, read["list"], keptSnapshot(t, read["list"]))
		})
	}
}

// keptSnapshot writes a snapshot to disk and returns what is read from there, with the manifests of the original.
func keptSnapshot(t *testing.T, s *Snapshot) *Snapshot {
	t.Helper()
	cache, err := contentcache.Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	stored, shop := NewContentStore(cache), types.NamespacedName{Namespace: "olm", Name: "shop"}
	stored.Identify(t.Context(), shop, "uid")
	begin := time.Now()
	stored.keep(t.Context(), shop, s)
	stored.wait()
	written := time.Now()
	kept, err := stored.Restore(shop)
	if err != nil || kept == nil {
		t.Fatalf("restored %v, error %v", kept, err)
	}
	t.Logf("kept: written in %s, read in %s", written.Sub(begin), time.Since(written))
	kept.shared.listed, kept.manifests = s.shared.listed, s.manifests
	return kept
}

// setAllManifests records the digests of inline manifests, as if every bundle were installed.
func setAllManifests(t *testing.T, conn grpc.ClientConnInterface, s *Snapshot, inline bool) {
	t.Helper()
	if !inline || len(s.shared.listed) > 0 {
		return
	}
	client, known, catalog := api.NewRegistryClient(conn), 0, types.NamespacedName{Namespace: "olm", Name: "shop"}
	for _, p := range s.Content.Packages() {
		for _, c := range p.Channels {
			for _, e := range c.Entries {
				if s.Manifests(p.Name, e.Bundle.Name) != "" {
					continue
				}
				bundle, err := fetchBundle(t.Context(), client, catalog, &api.GetBundleRequest{PkgName: p.Name, ChannelName: c.Name, CsvName: e.Bundle.Name})
				if err != nil {
					t.Fatal(err)
				}
				s.setManifests(p.Name, e.Bundle.Name, plansteps.Digest(bundle.Objects))
				known++
			}
		}
	}
	t.Logf("digests of %d bundles", known)
}

// compareSnapshots reports the facts that only one of two snapshots has.
func compareSnapshots(t *testing.T, a, b *Snapshot) {
	t.Helper()
	one, other := factsOf(a), factsOf(b)
	if len(one) != len(other) {
		t.Errorf("%d and %d facts", len(one), len(other))
	}
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			t.Fatalf("fact %d (-list +pages):\n%s", i, cmp.Diff(one[i], other[i]))
		}
	}
}

// factsOf lists all facts of a snapshot.
func factsOf(s *Snapshot) (facts []string) {
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	for _, p := range s.Content.Packages() {
		add("package %s default %s deprecated %q", p.Name, p.DefaultChannel, p.Deprecation)
		for _, c := range p.Channels {
			add("%s channel %s deprecated %q error %v", p.Name, c.Name, c.Deprecation, c.Err)
			for _, e := range c.Entries {
				add("%s channel %s entry %s at %d replaces %q skips %q range %q", p.Name, c.Name, e.Bundle.Name, e.Position, e.Replaces, e.Skips, e.SkipRange)
			}
		}
		for _, b := range p.Bundles {
			add("%s bundle %s image %q deprecated %q manifests %s error %v", p.Name, b.Name, b.Image, b.Deprecation, s.Manifests(p.Name, b.Name), b.Err)
			add("%s bundle %s subject %+v", p.Name, b.Name, b.Subject)
			for i := range b.Requires {
				add("%s bundle %s requires %s", p.Name, b.Name, b.Requires[i].String())
			}
		}
	}
	return facts
}

// writeCatalog writes one package with the given number of versions to a directory.
func writeCatalog(t *testing.T, dir string, versions int) {
	t.Helper()
	text, replaces := `{"schema":"olm.package","name":"lamp","defaultChannel":"stable"}`, ""
	entries := ""
	for i := range versions {
		name := fmt.Sprintf("lamp.v%d.0.0", i+1)
		text += fmt.Sprintf(`{"schema":"olm.bundle","package":"lamp","name":%q,"image":"example/lamp:%d","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"%d.0.0"}}]}`, name, i, i+1)
		if entries != "" {
			entries += ","
		}
		entries += fmt.Sprintf(`{"name":%q%s}`, name, replaces)
		replaces = fmt.Sprintf(`,"replaces":%q`, name)
	}
	text += `{"schema":"olm.channel","package":"lamp","name":"stable","entries":[` + entries + `]}`
	made := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(made, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, filepath.Join(dir, "catalog.json")); err != nil {
		t.Fatal(err)
	}
}

// TestStoreFollowsTheRegistry checks that the store receives content changes that the registry
// announces.
func TestStoreFollowsTheRegistry(t *testing.T) {
	const patience = time.Minute
	dir := t.TempDir()
	writeCatalog(t, dir, 1)
	address := serveRegistry(t, programs.Registry(t), dir)
	ctx, cancel := context.WithCancel(t.Context())
	store := NewStore(ctx, time.Hour, clock.RealClock{})
	t.Cleanup(func() {
		cancel()
		if err := store.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	catalog, changes := types.NamespacedName{Namespace: "olm", Name: "shop"}, store.Listen()
	if err := store.Follow(catalog, address, dialtls.Security{}); err != nil {
		t.Fatal(err)
	}
	for versions := 1; versions <= 3; versions++ {
		writeCatalog(t, dir, versions)
		deadline := time.After(patience)
		for state, _ := store.State(catalog); !state.Ready() || len(state.Snapshot.Content.Package("lamp").Bundles) != versions; state, _ = store.State(catalog) {
			select {
			case <-changes:
			case <-deadline:
				t.Fatalf("%d versions were not seen: %+v", versions, state)
			}
		}
	}
}

// BenchmarkReading reads a whole catalog in both ways.
func BenchmarkReading(b *testing.B) {
	program := programs.Registry(b)
	for _, name := range []string{realcatalogs.Metadata, realcatalogs.Objects} {
		conn := dialRegistry(b, serveRegistry(b, program, realcatalogs.Dir(b, name)))
		for way, fetch := range ways(conn) {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := fetch(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package catalogs_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/contentcache"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

const shopUID types.UID = "7d0c1a52-0000-4000-8000-000000000001"

// pictured returns a package whose version has an image.
func pictured(name string) fakecatalog.Package {
	return fakecatalog.Simple(name, fakecatalog.Entry{Name: name + ".v1", Version: "1.0.0", Image: "example/" + name})
}

// process is one run of a supervisor that keeps contents in a directory.
type process struct {
	*bench

	stop func()
}

// startProcess starts a store. It ends with stop, or with the test.
func startProcess(t *testing.T, dir string, uid types.UID) *process {
	t.Helper()
	cache, err := contentcache.Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	store := catalogs.NewStore(ctx, refresh, clock.RealClock{})
	store.Contents = catalogs.NewContentStore(cache)
	store.Settings().Restore = 50 * time.Millisecond
	store.Settings().Answer = 100 * time.Millisecond
	store.Contents.Identify(ctx, shop, uid)
	p := &process{bench: &bench{WithT: gomega.NewWithT(t), store: store}}
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := store.Start(ctx); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(p.stop)
	return p
}

// kept waits until the content of the shop is on disk, and returns its file.
func (p *process) kept(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, shop.Namespace, string(shopUID)+".index")
	p.Eventually(func() error { _, err := os.Stat(file); return err }).WithTimeout(patience).Should(gomega.Succeed())
	return file
}

// offers returns the names of the packages in a state.
func offers(s catalogs.State) (names []string) {
	if s.Snapshot == nil {
		return nil
	}
	for _, p := range s.Snapshot.Content.Packages() {
		names = append(names, p.Name)
	}
	return names
}

// TestRestartWhileCatalogIsAway reads a catalog, which then stops, and restarts the store.
func TestRestartWhileCatalogIsAway(t *testing.T) {
	for kind, start := range kinds() {
		t.Run(kind, func(t *testing.T) {
			torch := fakecatalog.Simple("torch", fakecatalog.Entry{Name: "torch.v1", Version: "1.0.0", Objects: []string{"{}"}})
			dir, server := t.TempDir(), start(t, pictured("lamp"), torch)
			before := startProcess(t, dir, shopUID)
			before.follow(t, server.Address())
			read := before.ready(t)
			before.kept(t, dir)
			before.stop()
			server.Stop()

			after := startProcess(t, dir, shopUID)
			after.follow(t, server.Address())
			state := after.becomes(t, "restored", func(s catalogs.State) bool { return s.Snapshot != nil && s.Err != nil })
			if got := offers(state); len(got) != 2 || got[0] != "lamp" || got[1] != "torch" {
				t.Errorf("restored %q", got)
			}
			if state.Ready() || state.Serving() || state.ReadAt.Before(read.ReadAt.Add(-time.Second)) || state.ReadAt.After(time.Now()) {
				t.Errorf("state %+v", state)
			}
			// A version with an image can be planned. Inline manifests are not kept.
			bundle, err := after.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1")
			if err != nil || bundle.Name != "lamp.v1" || len(bundle.Properties) != 1 {
				t.Errorf("bundle %+v, error %v", bundle, err)
			}
			if bundle, err := after.store.Bundle(t.Context(), shop, "torch", "stable", "torch.v1"); err == nil {
				t.Errorf("bundle %+v", bundle)
			}

			// The catalog is read again when it returns.
			server.Serve(pictured("fan"))
			server.Restart()
			if got := offers(after.ready(t)); len(got) != 1 || got[0] != "fan" {
				t.Errorf("read %q", got)
			}
		})
	}
}

// TestHostedCatalogIsAway restores the content of a catalog that has no replica.
func TestHostedCatalogIsAway(t *testing.T) {
	dir, server := t.TempDir(), fakecatalog.StartExtended(t, pictured("lamp"))
	before := startProcess(t, dir, shopUID)
	before.follow(t, server.Address())
	before.ready(t)
	before.kept(t, dir)
	before.stop()

	after := startProcess(t, dir, shopUID)
	if err := after.store.FollowReplicas(shop, "shop.olm.svc:50051", dialtls.Security{}, []replicas.Endpoint(nil)); err != nil {
		t.Fatal(err)
	}
	after.becomes(t, "restored", func(s catalogs.State) bool { return s.Snapshot != nil && errors.Is(s.Err, catalogs.ErrNotConnected) })
}

// TestLivingCatalogIsNotRestored checks that content on disk does not replace the content of a catalog that answers.
func TestLivingCatalogIsNotRestored(t *testing.T) {
	dir, server := t.TempDir(), fakecatalog.StartExtended(t, pictured("lamp"))
	before := startProcess(t, dir, shopUID)
	before.follow(t, server.Address())
	before.ready(t)
	before.kept(t, dir)
	before.stop()
	server.Serve(pictured("fan"))
	after := startProcess(t, dir, shopUID)
	after.store.Settings().Restore = patience
	after.follow(t, server.Address())
	state := after.becomes(t, "read", func(s catalogs.State) bool { return s.Snapshot != nil })
	if got := offers(state); len(got) != 1 || got[0] != "fan" {
		t.Errorf("first content %q", got)
	}
}

// TestForeignContentIsNotRestored restarts a store whose content on disk is not that of the CatalogSource.
func TestForeignContentIsNotRestored(t *testing.T) {
	for name, test := range map[string]struct {
		uid    types.UID
		change func(file string) error
		fails  bool
	}{
		"the CatalogSource was created again": {uid: "7d0c1a52-0000-4000-8000-000000000002", change: func(string) error { return nil }},
		"the file was changed": {uid: shopUID, fails: true, change: func(file string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(file, text, 0o600)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, server := t.TempDir(), fakecatalog.StartExtended(t, pictured("lamp"))
			before := startProcess(t, dir, shopUID)
			before.follow(t, server.Address())
			before.ready(t)
			file := before.kept(t, dir)
			before.stop()
			server.Stop()
			if err := test.change(file); err != nil {
				t.Fatal(err)
			}
			restored, err := startProcess(t, dir, test.uid).store.Contents.Restore(shop)
			if restored != nil || (err != nil) != test.fails || (err != nil && !errors.Is(err, contentcache.ErrUnusable)) {
				t.Errorf("restored %+v, error %v", restored, err)
			}
		})
	}
}

// TestOtherUIDRemovesContent checks that content of a CatalogSource that was created again is removed.
func TestOtherUIDRemovesContent(t *testing.T) {
	dir, server := t.TempDir(), fakecatalog.StartExtended(t, pictured("lamp"))
	p := startProcess(t, dir, shopUID)
	p.follow(t, server.Address())
	p.ready(t)
	file := p.kept(t, dir)
	p.store.Contents.Identify(t.Context(), shop, "other")
	p.Eventually(func() error { _, err := os.Stat(file); return err }).WithTimeout(patience).Should(gomega.MatchError(fs.ErrNotExist))
}

// TestFailedWriteIsRepeated checks that content that could not be written is written when it is read again.
func TestFailedWriteIsRepeated(t *testing.T) {
	dir, server := t.TempDir(), fakecatalog.Start(t, pictured("lamp"))
	obstacle := filepath.Join(dir, shop.Namespace)
	if err := os.WriteFile(obstacle, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, dir, shopUID)
	p.follow(t, server.Address())
	p.ready(t)
	p.Eventually(p.store.Contents.Idle).WithTimeout(patience).Should(gomega.BeTrue())
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	server.Restart() // the supervisor reads the same content at each new connection
	p.kept(t, dir)
}

// TestFetchSkipsUnusableContent checks that unusable contents of a peer, such as one of another version, do not keep a
// starting supervisor from reading the others.
func TestFetchSkipsUnusableContent(t *testing.T) {
	there, server := t.TempDir(), fakecatalog.StartExtended(t, pictured("lamp"))
	other := startProcess(t, there, shopUID)
	other.follow(t, server.Address())
	other.ready(t)
	other.kept(t, there)

	here, existing := t.TempDir(), map[types.NamespacedName]types.UID{shop: shopUID}
	for i := range 8 {
		existing[types.NamespacedName{Namespace: "broken", Name: strconv.Itoa(i)}] = shopUID
	}
	p := startProcess(t, here, shopUID)
	p.store.Contents.UsePeer(func(_ context.Context, name types.NamespacedName, uid types.UID) (io.ReadCloser, error) {
		if name.Namespace == "broken" {
			return io.NopCloser(strings.NewReader("broken")), nil
		}
		return other.store.Contents.Open(name, uid)
	})
	if err := p.store.Contents.Fetch(t.Context(), existing); err != nil {
		t.Error(err)
	}
	p.kept(t, here)
}

package contentcache

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

const plenty = 1 << 30

var shop = key{NamespacedName: types.NamespacedName{Namespace: "olm", Name: "shop"}, uid: "7d0c1a52-0000-4000-8000-000000000001"}

func property(kind, value string) constraint.Property {
	return constraint.Property{Type: kind, Value: value}
}

// lamp returns a channel entry of package lamp with an image.
func lamp(channel, name, version string, properties ...constraint.Property) content.ChannelEntry {
	return content.ChannelEntry{
		Package: "lamp", Channel: channel, Bundle: name, Version: version, Image: "example/" + name,
		Properties: append([]constraint.Property{property("olm.package", `{"packageName":"lamp","version":"`+version+`"}`)}, properties...),
	}
}

func build(tb testing.TB, entries ...content.ChannelEntry) *content.Catalog {
	tb.Helper()
	b := content.NewBuilder(plenty)
	for _, e := range entries {
		if err := b.Add(e); err != nil {
			tb.Fatal(err)
		}
	}
	b.Describe("lamp", "stable", "use fan")
	b.DeprecateChannel("lamp", "stable", "old")
	b.DeprecateBundle("lamp", "lamp.v1", "broken")
	return b.Build()
}

func open(tb testing.TB, size int64) *Cache {
	tb.Helper()
	c, err := Open(filepath.Join(tb.TempDir(), "catalogs"), size)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// write writes a catalog of one version.
func write(tb testing.TB, c *Cache, k key) {
	tb.Helper()
	if err := c.Write(tb.Context(), k.NamespacedName, k.uid, build(tb, lamp("stable", "lamp.v1", "1.0.0"))); err != nil {
		tb.Fatal(err)
	}
}

// received holds the messages of a catalog.
type received struct {
	bundles  []*api.Bundle
	packages []*api.Package
}

// read reads a catalog.
func (r *received) read(c *Cache, k key) (time.Time, error) {
	return c.Read(k.NamespacedName, k.uid,
		func(b *api.Bundle) error { r.bundles = append(r.bundles, b); return nil },
		func(p *api.Package) error { r.packages = append(r.packages, p); return nil },
	)
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	c := open(t, 0)
	gvk := property("olm.gvk", `{"group":"g","version":"v1","kind":"Lamp"}`)
	v2 := lamp("stable", "lamp.v2", "2.0.0", gvk)
	v2.Replaces, v2.Skips, v2.SkipRange = "lamp.v1", []string{"lamp.v0"}, "<2.0.0"
	begin := time.Now().Truncate(time.Second)
	if err := c.Write(t.Context(), shop.NamespacedName, shop.uid, build(t, lamp("stable", "lamp.v1", "1.0.0"), v2)); err != nil {
		t.Fatal(err)
	}
	var got received
	at, err := got.read(c, shop)
	if err != nil || at.Before(begin) {
		t.Fatalf("written at %s, error %v", at, err)
	}
	want := received{
		bundles: []*api.Bundle{
			{
				CsvName: "lamp.v1", PackageName: "lamp", ChannelName: "stable", Version: "1.0.0", BundlePath: "example/lamp.v1",
				Properties:  []*api.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}},
				Deprecation: &api.Deprecation{Message: "broken"},
			},
			{
				CsvName: "lamp.v2", PackageName: "lamp", ChannelName: "stable", Version: "2.0.0", BundlePath: "example/lamp.v2",
				Replaces: "lamp.v1", Skips: []string{"lamp.v0"}, SkipRange: "<2.0.0",
				ProvidedApis: []*api.GroupVersionKind{{Group: "g", Version: "v1", Kind: "Lamp"}},
				Properties: []*api.Property{
					{Type: "olm.package", Value: `{"packageName":"lamp","version":"2.0.0"}`}, {Type: "olm.gvk", Value: gvk.Value},
				},
			},
		},
		packages: []*api.Package{{
			Name: "lamp", DefaultChannelName: "stable", Deprecation: &api.Deprecation{Message: "use fan"},
			Channels: []*api.Channel{{Name: "stable", CsvName: "lamp.v2", Deprecation: &api.Deprecation{Message: "old"}}},
		}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(received{}), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// TestUnusualContent writes content that the format of an index cannot hold as it is.
func TestUnusualContent(t *testing.T) {
	unreadable := lamp("stable", "lamp.v1", "1.0.0", property("olm.constraint", `{"unknown":1}`))
	untyped := content.ChannelEntry{Package: "lamp", Channel: "stable", Bundle: "lamp.v1", Image: "example/lamp"}
	twice := lamp("stable", "lamp.v1", "1.0.0", property("olm.package", `{"packageName":"lamp","version":"1.0.0"}`))
	invalid := lamp("stable", "lamp.v1", "1.0.0", property("other", "no JSON"))
	inline := lamp("stable", "lamp.v1", "1.0.0")
	inline.Image = ""
	for name, test := range map[string]struct {
		entries []content.ChannelEntry
		// names are the bundles, and constraints the text of the only olm.constraint.
		names      []string
		constraint string
	}{
		"a bundle that cannot be used": {entries: []content.ChannelEntry{unreadable}, names: []string{"lamp.v1"}, constraint: "properties[1] of type"},
		"a value that is not JSON":     {entries: []content.ChannelEntry{invalid}, names: []string{"lamp.v1"}, constraint: "properties[1] of type"},
		"no property of the package":   {entries: []content.ChannelEntry{untyped}, names: []string{"lamp.v1"}},
		"the same property twice":      {entries: []content.ChannelEntry{twice}, names: []string{"lamp.v1"}},
		"inline manifests":             {entries: []content.ChannelEntry{inline}, names: []string{"lamp.v1"}},
		"a channel with two heads": {
			entries: []content.ChannelEntry{lamp("stable", "lamp.v1", "1.0.0"), lamp("beta", "lamp.v2", "2.0.0"), lamp("beta", "lamp.v3", "3.0.0")},
			names:   []string{"lamp.v1"},
		},
		"only a channel with two heads": {entries: []content.ChannelEntry{lamp("beta", "lamp.v2", "2.0.0"), lamp("beta", "lamp.v3", "3.0.0")}},
		"nothing":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 0)
			if err := c.Write(t.Context(), shop.NamespacedName, shop.uid, build(t, test.entries...)); err != nil {
				t.Fatal(err)
			}
			var got received
			if _, err := got.read(c, shop); err != nil {
				t.Fatal(err)
			}
			var names, constraints []string
			for _, b := range got.bundles {
				names = append(names, b.GetCsvName())
				for _, p := range b.GetProperties() {
					if p.GetType() == "olm.constraint" {
						constraints = append(constraints, p.GetValue())
					}
				}
			}
			if !slices.Equal(names, test.names) {
				t.Errorf("bundles %q", names)
			}
			if text := strings.Join(constraints, " "); !strings.Contains(text, test.constraint) || (text == "") != (test.constraint == "") {
				t.Errorf("constraints %s", text)
			}
		})
	}
}

// TestForeignContentIsNotRead changes the file of a catalog. It is never read, and it is removed.
func TestForeignContentIsNotRead(t *testing.T) {
	other := func(change func(*key)) key {
		k := shop
		change(&k)
		return k
	}
	overwrite := func(change func([]byte) []byte) func(*testing.T, *Cache) {
		return func(t *testing.T, c *Cache) {
			t.Helper()
			text, err := os.ReadFile(c.path(shop))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.path(shop), change(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	foreign := func(k key) func(*testing.T, *Cache) {
		return func(t *testing.T, c *Cache) {
			t.Helper()
			write(t, c, k)
			if err := os.Rename(c.path(k), c.path(shop)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, change := range map[string]func(*testing.T, *Cache){
		"empty":           overwrite(func([]byte) []byte { return nil }),
		"text":            overwrite(func([]byte) []byte { return []byte("text") }),
		"truncated":       overwrite(func(text []byte) []byte { return text[:len(text)-1] }),
		"longer":          overwrite(func(text []byte) []byte { return append(text, 0) }),
		"too large":       overwrite(func(text []byte) []byte { return append(text, make([]byte, DefaultSize/share)...) }),
		"changed header":  overwrite(func(text []byte) []byte { text[20] ^= 1; return text }),
		"changed data":    overwrite(func(text []byte) []byte { text[600] ^= 1; return text }),
		"changed tables":  overwrite(func(text []byte) []byte { text[len(text)-9] ^= 1; return text }),
		"other namespace": foreign(other(func(k *key) { k.Namespace = "tenant" })),
		"other name":      foreign(other(func(k *key) { k.Name, k.uid = "fan", "7d0c1a52-0000-4000-8000-000000000002" })),
		"other UID":       foreign(other(func(k *key) { k.uid = "7d0c1a52-0000-4000-8000-000000000003" })),
		"a directory": func(t *testing.T, c *Cache) {
			t.Helper()
			replace(t, c, func(name string) error { return os.Mkdir(name, 0o700) })
		},
		"a symbolic link": func(t *testing.T, c *Cache) {
			t.Helper()
			replace(t, c, func(name string) error {
				if err := os.WriteFile(name+".target", nil, 0o600); err != nil {
					return err
				}
				return os.Symlink(name+".target", name)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 0)
			write(t, c, shop)
			change(t, c)
			var got received
			if _, err := got.read(c, shop); !errors.Is(err, ErrUnusable) {
				t.Fatalf("error %v, read %+v", err, got)
			}
			if _, err := got.read(c, shop); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file was not removed: %v", err)
			}
		})
	}
}

// replace replaces the file of a catalog.
func replace(t *testing.T, c *Cache, create func(name string) error) {
	t.Helper()
	if err := errors.Join(os.Remove(c.path(shop)), create(c.path(shop))); err != nil {
		t.Fatal(err)
	}
}

// TestReceive copies a file between caches. Damaged, foreign and large files are refused.
func TestReceive(t *testing.T) {
	other := shop
	other.uid = "other"
	from := open(t, 0)
	write(t, from, shop)
	write(t, from, other)
	text := func(k key) []byte {
		file, err := from.Open(k.NamespacedName, k.uid)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		text, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	damaged := text(shop)
	damaged[600] ^= 1
	for name, test := range map[string]struct {
		text []byte
		want error
	}{
		"intact":    {text: text(shop)},
		"truncated": {text: text(shop)[:100], want: ErrUnusable},
		"damaged":   {text: damaged, want: ErrUnusable},
		"foreign":   {text: text(other), want: ErrUnusable},
		"too large": {text: make([]byte, DefaultSize/share+1), want: ErrUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			to := open(t, 0)
			if err := to.Receive(shop.NamespacedName, shop.uid, bytes.NewReader(test.text)); !errors.Is(err, test.want) {
				t.Fatalf("error %v", err)
			}
			if _, err := new(received).read(to, shop); errors.Is(err, fs.ErrNotExist) != (test.want != nil) {
				t.Errorf("error %v", err)
			}
			if files, err := to.files(); err != nil || (len(files) == 0) != (test.want != nil) {
				t.Errorf("files %+v, error %v", files, err)
			}
		})
	}
	t.Run("content that exists stays", func(t *testing.T) {
		to := open(t, 0)
		if err := to.Write(t.Context(), shop.NamespacedName, shop.uid, build(t)); err != nil {
			t.Fatal(err)
		}
		if err := to.Receive(shop.NamespacedName, shop.uid, bytes.NewReader(text(shop))); err != nil {
			t.Fatal(err)
		}
		var got received
		if _, err := got.read(to, shop); err != nil || len(got.bundles) > 0 {
			t.Errorf("read %+v, error %v", got, err)
		}
	})
}

// TestReceiverRefuses checks that the error of a receiver is returned.
func TestReceiverRefuses(t *testing.T) {
	c := open(t, 0)
	refused := errors.New("refused")
	write(t, c, shop)
	if _, err := c.Read(shop.NamespacedName, shop.uid, func(*api.Bundle) error { return refused }, nil); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}

func TestInvalidKeys(t *testing.T) {
	c := open(t, 0)
	for _, uid := range []types.UID{"", "..", "../x", "a/b", ".hidden", "a.b", types.UID(strings.Repeat("a", 200))} {
		k := shop
		k.uid = uid
		if err := c.Write(t.Context(), k.NamespacedName, k.uid, build(t)); err == nil {
			t.Errorf("UID %q was written", uid)
		}
		if _, err := new(received).read(c, k); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("UID %q: %v", uid, err)
		}
		if err := c.Remove(k.NamespacedName, k.uid); err != nil {
			t.Errorf("UID %q: %v", uid, err)
		}
	}
	k := shop
	k.Namespace = ".."
	if err := c.Write(t.Context(), k.NamespacedName, k.uid, build(t)); err == nil {
		t.Error("namespace .. was written")
	}
}

// TestContentTooLarge checks that content above its share is not kept, nor the content before it.
func TestContentTooLarge(t *testing.T) {
	c := open(t, 64<<10)
	write(t, c, shop)
	var entries []content.ChannelEntry
	for i := range 2000 {
		e := lamp("stable", "lamp.v"+strconv.Itoa(i), strconv.Itoa(i)+".0.0")
		if i > 0 {
			e.Replaces = "lamp.v" + strconv.Itoa(i-1)
		}
		entries = append(entries, e)
	}
	if err := c.Write(t.Context(), shop.NamespacedName, shop.uid, build(t, entries...)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if _, err := new(received).read(c, shop); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestExcess(t *testing.T) {
	for name, test := range map[string]struct {
		files []file
		size  int64
		want  []string
	}{
		"nothing":         {size: 1},
		"all fit":         {files: []file{{name: "a", namespace: "x", bytes: 5}, {name: "b", namespace: "y", bytes: 5}}, size: 10},
		"largest first":   {files: []file{{name: "a", namespace: "x", bytes: 2}, {name: "b", namespace: "x", bytes: 9}}, size: 10, want: []string{"b"}},
		"names break tie": {files: []file{{name: "b", namespace: "x", bytes: 6}, {name: "a", namespace: "x", bytes: 6}}, size: 10, want: []string{"a"}},
		"a namespace with many files does not displace another": {
			files: []file{
				{name: "olm", namespace: "olm", bytes: 6},
				{name: "a", namespace: "x", bytes: 4},
				{name: "b", namespace: "x", bytes: 4},
				{name: "c", namespace: "x", bytes: 3},
			},
			size: 13, want: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range excess(test.files, test.size) {
				got = append(got, f.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("removed %q", got)
			}
		})
	}
}

// TestWriteBoundsTheCache fills a cache from one namespace. The content of the other one stays.
func TestWriteBoundsTheCache(t *testing.T) {
	c := open(t, 16<<10)
	write(t, c, shop)
	for i := range 20 {
		write(t, c, key{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: "c" + strconv.Itoa(i)}, uid: types.UID("uid-" + strconv.Itoa(i))})
	}
	if _, err := new(received).read(c, shop); err != nil {
		t.Error(err)
	}
	files, err := c.files()
	if err != nil || len(excess(files, c.size)) > 0 || len(files) < 3 {
		t.Errorf("%d files, error %v", len(files), err)
	}
}

// TestRetain removes the files of catalogs that do not exist, unless they are new.
func TestRetain(t *testing.T) {
	c := open(t, 0)
	gone := shop
	gone.uid = "gone"
	write(t, c, shop)
	write(t, c, gone)
	existing := map[types.NamespacedName]types.UID{shop.NamespacedName: shop.uid}
	if err := c.Retain(existing, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := new(received).read(c, gone); err != nil {
		t.Errorf("a new file was removed: %v", err)
	}
	if err := c.Retain(existing, time.Now().Add(youngest)); err != nil {
		t.Fatal(err)
	}
	if _, err := new(received).read(c, gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := new(received).read(c, shop); err != nil {
		t.Error(err)
	}
	if err := errors.Join(c.Remove(shop.NamespacedName, shop.uid), c.Remove(shop.NamespacedName, shop.uid)); err != nil {
		t.Error(err)
	}
	if _, err := new(received).read(c, shop); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefusesForeignDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, 0); err == nil || !strings.Contains(err.Error(), "--catalog-cache-dir") {
		t.Errorf("error %v", err)
	}
}

// TestOpenOnVolume opens a directory to which a kubelet has given the group of its volume access.
func TestOpenOnVolume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalogs")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	write(t, c, shop)
}

// FuzzRead reads foreign bytes. Reading must end without a panic, and pass on nothing from another CatalogSource.
func FuzzRead(f *testing.F) {
	c := open(f, 1<<20)
	for _, k := range []key{shop, {NamespacedName: shop.NamespacedName, uid: "other"}} {
		write(f, c, k)
		text, err := os.ReadFile(c.path(k))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := open(t, 1<<20)
		if err := errors.Join(os.Mkdir(filepath.Dir(c.path(shop)), 0o700), os.WriteFile(c.path(shop), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := new(received).read(c, shop); err != nil {
			if !errors.Is(err, ErrUnusable) {
				t.Errorf("error %v", err)
			}
			return
		}
		x, err := index.Open(c.path(shop))
		if err != nil || x.Info().SourceDigest != shop.hexDigest() {
			t.Errorf("a foreign file was read: %v", err)
		}
	})
}

package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// more is a second package and objects of a custom schema.
const more = `
{schema: olm.package, name: a, defaultChannel: c}
---
{schema: olm.channel, package: a, name: c, entries: [{name: a.v1}]}
---
{schema: olm.bundle, package: a, name: a.v1, image: example.org/a, properties: [
  {type: olm.package, value: {packageName: a, version: 1.0.0}}, {type: olm.gvk, value: {group: g, version: v1, kind: K}},
  {type: olm.csv.metadata, value: {displayName: A, keywords: [light], provider: {name: Acme}, annotations: {categories: "x, y"}}}]}
---
{schema: example.notes, package: a, name: n1, text: one}
---
{schema: example.notes, package: a, name: n2, text: two}
---
{schema: example.notes, name: n3, text: three}
`

// open opens the objects of a catalog.
func open(tb testing.TB, root fs.FS) *fbc.Reader {
	tb.Helper()
	reader, err := fbc.Open(tb.Context(), root, fbc.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := reader.Close(); err != nil {
			tb.Error(err)
		}
	})
	return reader
}

// create writes the index of two packages and returns the file's name.
func create(tb testing.TB) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "c.index")
	root := fstest.MapFS{"p.yaml": {Data: []byte(sample)}, "a.yaml": {Data: []byte(more)}}
	if _, err := Create(tb.Context(), name, open(tb, root), Options{}); err != nil {
		tb.Fatal(err)
	}
	return name
}

// answers returns the answers of an index to every query.
func answers(tb testing.TB, x *Index) map[string]string {
	tb.Helper()
	out := make(map[string]string)
	one := func(question string, m Message, err error) {
		out[question] = fmt.Sprintf("%s %v", m.Bytes(), err)
	}
	list := func(question string, messages iter.Seq[Message], err error) {
		var text strings.Builder
		if err == nil {
			for m := range messages {
				fmt.Fprintf(&text, "%q\n", m.Bytes())
			}
		}
		out[question] = fmt.Sprintf("%s%v", text.String(), err)
	}
	list("packages", x.Packages(), x.CheckLists())
	list("bundles", x.Bundles(), nil)
	for s := range x.Summaries() {
		out["summary "+s.Package] = fmt.Sprintf("%+v", s)
		m, err := x.Package(s.Package)
		one("package "+s.Package, m, err)
		graph, err := x.Graph(s.Package)
		out["graph "+s.Package] = fmt.Sprintf("%+v %v", graph, err)
		if err != nil {
			continue
		}
		for _, ch := range graph.Channels {
			m, err := x.ChannelHead(s.Package, ch.Name)
			one("head "+s.Package+"/"+ch.Name, m, err)
			for _, e := range ch.Entries {
				m, err := x.Bundle(s.Package, ch.Name, e.Name)
				one("bundle "+s.Package+"/"+ch.Name+"/"+e.Name, m, err)
				m, err = x.Replacement(e.Replaces, s.Package, ch.Name)
				one("replacement of "+e.Replaces+" in "+ch.Name, m, err)
				messages, err := x.EntriesThatReplace(e.Replaces)
				list("replace "+e.Replaces, messages, err)
			}
		}
		for _, gvk := range s.APIs {
			messages, err := x.EntriesThatProvide(gvk)
			list("provide "+gvk.String(), messages, err)
			messages, err = x.LatestEntriesThatProvide(gvk)
			list("latest "+gvk.String(), messages, err)
			m, err := x.DefaultProvider(gvk)
			one("default "+gvk.String(), m, err)
		}
		messages, err := x.Custom("example.notes", s.Package)
		list("custom "+s.Package, messages, err)
	}
	messages, err := x.Custom("example.notes", "")
	list("custom", messages, err)
	for key, m := range x.BundlesFrom("", nil) {
		out["from "+key] = string(m.Bytes())
	}
	return out
}

func TestFileAnswersAsMemoryDoes(t *testing.T) {
	root := fstest.MapFS{"p.yaml": {Data: []byte(sample)}, "a.yaml": {Data: []byte(more)}}
	catalog, err := fbc.Load(t.Context(), root, fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(t.Context(), catalog)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(create(t))
	if err != nil {
		t.Fatal(err)
	}
	temporary, err := CreateTemp(t.Context(), t.TempDir(), open(t, root), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := answers(t, built)
	for name, x := range map[string]*Index{"file": opened, "temporary file": temporary} {
		if diff := cmp.Diff(want, answers(t, x)); diff != "" {
			t.Errorf("%s: -memory +file:\n%s", name, diff)
		}
		if diff := cmp.Diff(built.Info(), x.Info()); diff != "" {
			t.Errorf("%s: -memory +file:\n%s", name, diff)
		}
	}
}

func TestSameContentSameFile(t *testing.T) {
	objects := strings.Split(sample+"---"+more, "---")
	split := fstest.MapFS{}
	for i, object := range objects {
		split[fmt.Sprintf("d/%02d.yaml", i)] = &fstest.MapFile{Data: []byte(object)}
	}
	name := filepath.Join(t.TempDir(), "split.index")
	if _, err := Create(t.Context(), name, open(t, split), Options{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, create(t)), read(t, name)) {
		t.Error("the file depends on how the catalog is cut into files")
	}
}

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	out, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// writeChanged writes a changed copy of a file and returns its name.
func writeChanged(tb testing.TB, file []byte, change func([]byte) []byte) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "changed.index")
	if err := os.WriteFile(name, change(bytes.Clone(file)), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

func TestOpenRefuses(t *testing.T) {
	file := read(t, create(t))
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 0x10; return b }
	}
	cases := map[string]struct {
		reason string
		change func([]byte) []byte
	}{
		"Empty":     {"an empty file is nothing", func([]byte) []byte { return nil }},
		"Other":     {"another tool's file is not ours", func(b []byte) []byte { return bytes.Repeat([]byte("{}\n"), len(b)/3) }},
		"Header":    {"a header has a checksum", flip(40)},
		"Version":   {"another version is another format", flip(8)},
		"Size":      {"a size is part of the header", flip(16)},
		"Cut":       {"the end is missing", func(b []byte) []byte { return b[:len(b)-1] }},
		"CutEarly":  {"most is missing", func(b []byte) []byte { return b[:headerSize+1] }},
		"CutHeader": {"the header is cut", func(b []byte) []byte { return b[:headerSize-1] }},
		"Longer":    {"something follows", func(b []byte) []byte { return append(b, 0) }},
		"Unwritten": {"the header comes last", func(b []byte) []byte { clear(b[:headerSize]); return b }},
		"SectionBehind": {"a section begins behind the end", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[sectionsAt:], uint64(len(b)+1))
			return seal(b)
		}},
		"SectionTooLong": {"a section ends behind the end", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[sectionsAt+8:], uint64(len(b)))
			return seal(b)
		}},
		"DataTooLong": {"a message ends behind the data, but in the file", func(b []byte) []byte {
			at := binary.LittleEndian.Uint64(b[sectionsAt+int(sectionPackages)*sectionSize:])
			reply := b[at+packageReply:]
			rest := binary.LittleEndian.Uint64(b[24:]) - binary.LittleEndian.Uint64(reply)
			binary.LittleEndian.PutUint32(reply[8:], uint32(rest)+1)
			return seal(b)
		}},
	}
	for id := range sectionCount {
		at := binary.LittleEndian.Uint64(file[sectionsAt+int(id)*sectionSize:])
		if binary.LittleEndian.Uint64(file[sectionsAt+int(id)*sectionSize+8:]) > 0 {
			cases[fmt.Sprintf("Section%d", id)] = struct {
				reason string
				change func([]byte) []byte
			}{"each section has a checksum", flip(int(at))}
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(writeChanged(t, file, tc.change)); !errors.Is(err, ErrNotIndex) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory is no index")
	}
}

// seal updates the checksums of a changed file.
func seal(b []byte) []byte {
	for id := range sectionCount {
		entry := b[sectionsAt+int(id)*sectionSize:]
		from, length := binary.LittleEndian.Uint64(entry), binary.LittleEndian.Uint64(entry[8:])
		if size := uint64(len(b)); from <= size && length <= size-from {
			binary.LittleEndian.PutUint32(entry[16:], crc32.Checksum(b[from:from+length], castagnoli))
		}
	}
	clear(b[12:16])
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:headerSize], castagnoli))
	return b
}

// TestTruncatedFile truncates the file of a mapped index and reads the index.
func TestTruncatedFile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// read is set if everything has been read and found intact before.
		read bool
		call func(*Index) error
		want error
	}{
		"Size":  {reason: "the file is shorter", call: func(x *Index) error { return FileOf(x).CheckSize() }, want: ErrTruncated},
		"Check": {reason: "checksums are of what is missing", call: (*Index).Check, want: ErrTruncated},
		"Lists": {reason: "tables are missing", call: func(x *Index) error { return Guard(x.CheckLists) }, want: ErrDamaged},
		"Lookup": {reason: "names are missing", read: true, call: func(x *Index) error {
			return Guard(func() error { _, err := x.Package("p"); return err })
		}, want: ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			file := create(t)
			x := openWithoutCopy(t, file)
			if err := FileOf(x).CheckSize(); err != nil {
				t.Fatal(err)
			}
			if tc.read {
				if err := x.Check(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(file, 0); err != nil {
				t.Fatal(err)
			}
			if err := tc.call(x); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// TestGuardPassesOtherPanics checks that Guard does not hide other panics.
func TestGuardPassesOtherPanics(t *testing.T) {
	for name, read := range map[string]func() error{
		"Nil":   func() error { var x *Index; _ = x.Stats(); return nil },
		"Other": func() error { panic("other") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if cause := recover(); cause == nil || isFault(cause) {
					t.Errorf("recovered %v", cause)
				}
			}()
			t.Errorf("no panic, but %v", Guard(read))
		})
	}
}

// TestFaultIn checks that a read of one index is not attributed to another.
func TestFaultIn(t *testing.T) {
	name := create(t)
	x, other := openWithoutCopy(t, name), openWithoutCopy(t, create(t))
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cause := recover()
		if !FaultIn(x, cause) || FaultIn(other, cause) {
			t.Errorf("%v is taken for a read of another index", cause)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	_, err := x.Package("p")
	t.Errorf("no panic, but %v", err)
}

// TestSmallFileIsCopied truncates a small file.
func TestSmallFileIsCopied(t *testing.T) {
	name := create(t)
	x, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	want := answers(t, openWithoutCopy(t, create(t)))
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	if FileOf(x) != nil || FileOf(x).CheckSize() != nil {
		t.Error("the index depends on its file")
	}
	if diff := cmp.Diff(want, answers(t, x)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDamagedDataIsNeverAnswered(t *testing.T) {
	file := read(t, create(t))
	x, err := Open(writeChanged(t, file, func(b []byte) []byte { b[headerSize+3] ^= 1; return b }))
	if err != nil {
		t.Fatalf("the data is looked at when it is needed: %v", err)
	}
	_, packageErr := x.Package("p")
	_, bundleErr := x.Bundle("p", "stable", "p.v2")
	_, providerErr := x.EntriesThatProvide(gvkV1)
	_, customErr := x.Custom("example.notes", "a")
	_, graphErr := x.Graph("p")
	for what, err := range map[string]error{
		"Check": x.Check(), "CheckLists": x.CheckLists(), "Package": packageErr, "Bundle": bundleErr,
		"EntriesThatProvide": providerErr, "Custom": customErr, "Graph": graphErr,
	} {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for range x.Bundles() {
		t.Error("a damaged message was listed")
	}
}

// FuzzOpen generates indexes with valid checksums.
func FuzzOpen(f *testing.F) {
	file := read(f, create(f))
	for id := range sectionCount {
		f.Add(uint8(id), uint32(0), uint32(1<<31))
		f.Add(uint8(id), uint32(8), uint32(0xffffffff))
	}
	f.Fuzz(func(t *testing.T, section uint8, at, value uint32) {
		b := bytes.Clone(file)
		entry := b[sectionsAt+int(section)%int(sectionCount)*sectionSize:]
		rows := b[binary.LittleEndian.Uint64(entry):][:binary.LittleEndian.Uint64(entry[8:])]
		if len(rows) < 4 {
			return
		}
		binary.LittleEndian.PutUint32(rows[int(at)%(len(rows)-3):], value)
		binary.LittleEndian.PutUint32(entry[16:], crc32.Checksum(rows, castagnoli))
		clear(b[12:16])
		binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:headerSize], castagnoli))
		x, err := newIndex(newMapping(b))
		if err != nil {
			if !errors.Is(err, ErrNotIndex) {
				t.Error(err)
			}
			return
		}
		answers(t, x)
	})
}

func TestCreateWritesAllOrNothing(t *testing.T) {
	name := create(t)
	before := read(t, name)
	broken := fstest.MapFS{"p.yaml": {Data: []byte(sample)}, "q.yaml": {Data: []byte("{schema: olm.package, name: q}")}}
	_, err := Create(t.Context(), name, open(t, broken), Options{})
	if problems := (bundles.Problems{}); !errors.As(err, &problems) || problems[0].Package != "q" {
		t.Errorf("got %v, want what is wrong with package q", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Create(cancelled, name, open(t, fstest.MapFS{"p.yaml": {Data: []byte(sample)}}), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 1 || !bytes.Equal(before, read(t, name)) {
		t.Errorf("the old file is not all that is there: %v, %v", entries, err)
	}
	left := filepath.Join(filepath.Dir(name), ".c.index.chandlery-tmp-123")
	young := filepath.Join(filepath.Dir(name), ".c.index.chandlery-tmp-456")
	foreign := filepath.Join(filepath.Dir(name), ".c.index-production")
	for _, file := range []string{left, young, foreign} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.Open(young)
	if err != nil || !hold(written) {
		t.Fatalf("cannot hold a file: %v", err)
	}
	defer written.Close()
	if _, err := Create(t.Context(), name, open(t, fstest.MapFS{"p.yaml": {Data: []byte(sample)}}), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed process left stays for ever: %v", err)
	}
	for _, file := range []string{young, foreign} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("what another process is writing, or somebody else's, is gone: %v", err)
		}
	}
}

// slowSource returns the packages of another source at times in reverse order.
type slowSource struct {
	Source

	last chan struct{}
}

func (s slowSource) Package(ctx context.Context, name string) (*bundles.Catalog, error) {
	if name == s.Packages()[0] {
		<-s.last
	} else {
		defer close(s.last)
	}
	return s.Source.Package(ctx, name)
}

func TestOrderOfPackages(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	two, _, _ := strings.Cut(more, "{schema: example.notes")
	root := fstest.MapFS{"p.yaml": {Data: []byte(sample)}, "a.yaml": {Data: []byte(strings.TrimSuffix(two, "---\n"))}}
	var done []int
	x, err := CreateInMemory(t.Context(), slowSource{open(t, root), make(chan struct{})}, Options{
		Progress: func(n, all int) { done = append(done, n*10+all) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for s := range x.Summaries() {
		names = append(names, s.Package)
	}
	if diff := cmp.Diff([]string{"a", "p"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int{12, 22}, done); diff != "" {
		t.Errorf("progress: -want +got:\n%s", diff)
	}
}

// mapped reports whether this process has mapped a file.
func mapped(t *testing.T, name string) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil && runtime.GOOS != "linux" {
		t.Skipf("%s does not tell what is mapped: %v", runtime.GOOS, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(maps, []byte(name))
}

// openWithoutCopy maps the index in a file, whatever its size.
func openWithoutCopy(t *testing.T, name string) *Index {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	x, err := openMapped(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestMappingEndsWithItsLastUser(t *testing.T) {
	name := create(t)
	x := openWithoutCopy(t, name)
	message, err := x.Bundle("p", "stable", "p.v2")
	if err != nil {
		t.Fatal(err)
	}
	owner, want := message.Owner(), string(message.Bytes())
	runtime.GC()
	runtime.GC()
	if !mapped(t, name) {
		t.Fatal("unmapped while a message refers to it")
	}
	if got := string(message.Bytes()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	runtime.GC()
	if !mapped(t, name) {
		t.Fatal("unmapped while the owner of a message is referred to")
	}
	runtime.KeepAlive(owner)
	for deadline := time.Now().Add(10 * time.Second); mapped(t, name); runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("still mapped though nobody refers to it")
		}
	}
}

func TestSources(t *testing.T) {
	want := []SourceFile{{Name: "a.yaml", Size: 7, ModTime: -1, Sum: 1 << 63}, {Name: "b", Size: 1 << 40, ModTime: 1 << 60}}
	x, err := CreateInMemory(t.Context(), newCatalogSource(&bundles.Catalog{}), Options{Sources: want, Digest: [32]byte{0xab}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, x.Sources()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := x.Info().SourceDigest; got != "ab"+strings.Repeat("0", 62) {
		t.Errorf("the digest of the source is %s", got)
	}
}

func TestSummary(t *testing.T) {
	x, err := Open(create(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Summary("a")
	want := Summary{
		Package: "a", DefaultChannel: "c", Head: "a.v1", Version: "1.0.0", DisplayName: "A", Provider: "Acme",
		Keywords: []string{"light"}, Categories: []string{"x", "y"}, APIs: []bundles.GVK{gvkV1}, Channels: []string{"c"}, Bundles: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := x.Summary("none"); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("got %v", err)
	}
}

func TestBundlesFrom(t *testing.T) {
	x, err := Open(create(t))
	if err != nil {
		t.Fatal(err)
	}
	keys := func(after string, packages ...string) (out []string) {
		for key := range x.BundlesFrom(after, packages) {
			out = append(out, strings.ReplaceAll(key, keySeparator, "/"))
		}
		return out
	}
	all := []string{"a/c/a.v1", "p/candidate/p.v1", "p/candidate/p.v2", "p/stable/p.v1", "p/stable/p.v2"}
	if diff := cmp.Diff(all, keys("")); diff != "" {
		t.Errorf("all: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(all[1:], keys("", "p")); diff != "" {
		t.Errorf("one package: -want +got:\n%s", diff)
	}
	after := strings.ReplaceAll(all[2], "/", keySeparator)
	if diff := cmp.Diff(all[3:], keys(after)); diff != "" {
		t.Errorf("after a key: -want +got:\n%s", diff)
	}
}

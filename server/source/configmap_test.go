package source

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles"
)

// mounted is a directory where the kubelet has mounted a ConfigMap.
type mounted struct {
	t   *testing.T
	dir string
}

// update switches to another version of the ConfigMap, as the kubelet does.
func (m mounted) update(version string, keys map[string]string) {
	m.t.Helper()
	dir := filepath.Join(m.dir, "..version_"+version)
	if err := os.Mkdir(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	for key, text := range keys {
		write(m.t, filepath.Join(dir, key), text)
		if err := os.Symlink(filepath.Join("..data", key), filepath.Join(m.dir, key)); err != nil && !os.IsExist(err) {
			m.t.Fatal(err)
		}
	}
	next := filepath.Join(m.dir, "..data_tmp")
	if err := os.Symlink(filepath.Base(dir), next); err != nil {
		m.t.Fatal(err)
	}
	old, _ := os.Readlink(filepath.Join(m.dir, "..data"))
	if err := os.Rename(next, filepath.Join(m.dir, "..data")); err != nil {
		m.t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(m.dir, old)); err != nil {
			m.t.Fatal(err)
		}
	}
}

func keysOf(version string) map[string]string {
	return map[string]string{
		"customResourceDefinitions": "- {kind: CustomResourceDefinition, metadata: {name: as.x.io}, " +
			"spec: {group: x.io, version: v1, names: {kind: A, plural: as}}}",
		"clusterServiceVersions": "- metadata: {name: b}\n  spec: {version: " + version +
			", customresourcedefinitions: {owned: [{name: as.x.io, version: v1, kind: A}]}}\n",
		"packages": "- {packageName: p, channels: [{name: a, currentCSV: b}]}",
	}
}

func TestConfigMap(t *testing.T) {
	m := mounted{t, t.TempDir()}
	m.update("1", keysOf("1.0.0"))
	if !IsConfigMap(m.dir) {
		t.Error("a mounted ConfigMap is not recognised")
	}
	c := ConfigMap{Path: m.dir}
	before, err := c.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	x, err := c.Load(t.Context())
	if err != nil || versionOf(t, x) != "1.0.0" {
		t.Fatalf("got %v", err)
	}
	if _, err := x.EntriesThatProvide(bundles.GVK{Group: "x.io", Version: "v1", Kind: "A"}); err != nil {
		t.Error(err)
	}
	message, err := x.Bundle("p", "a", "b")
	if err != nil || !strings.Contains(string(message.Bytes()), "CustomResourceDefinition") {
		t.Errorf("the definition is not in the bundle: %v", err)
	}
	if now, err := c.Fingerprint(); err != nil || now != before {
		t.Errorf("the fingerprint changes by itself: %v", err)
	}
	m.update("2", keysOf("2.0.0"))
	if now, err := c.Fingerprint(); err != nil || now == before {
		t.Errorf("another version is not noticed: %v", err)
	}
	if x, err = c.Load(t.Context()); err != nil || versionOf(t, x) != "2.0.0" {
		t.Errorf("got %v", err)
	}
	// All keys belong to the version that the link points to.
	link := filepath.Join(m.dir, "packages")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	write(t, link, "[]")
	if x, err = c.Load(t.Context()); err != nil || versionOf(t, x) != "2.0.0" {
		t.Errorf("got %v", err)
	}
	name := filepath.Join(t.TempDir(), "index")
	if info, err := c.Create(t.Context(), name); err != nil || info.Bundles != 1 {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestIsConfigMap(t *testing.T) {
	for what, keys := range map[string][]string{
		"Other": {"customResourceDefinitions", "clusterServiceVersions", "packages", "c.json"},
		"Less":  {"customResourceDefinitions", "packages"},
		"None":  {},
	} {
		dir := t.TempDir()
		for _, key := range keys {
			write(t, filepath.Join(dir, key), "[]")
		}
		if IsConfigMap(dir) {
			t.Errorf("%s: taken for a ConfigMap", what)
		}
	}
	if IsConfigMap("/none") {
		t.Error("what is not there is taken for a ConfigMap")
	}
}

// TestConfigMapWithWarnings checks that problems that OLM accepts do not prevent serving.
func TestConfigMapWithWarnings(t *testing.T) {
	for what, tt := range map[string]struct {
		keys map[string]string
		want string
	}{
		"version": {map[string]string{"clusterServiceVersions": "- metadata: {name: b}\n  spec: {version: one}\n"}, `bundle "b": version "one" is not a semantic version`},
		"empty":   {map[string]string{"packages": "[]", "clusterServiceVersions": "[]"}, "packages: the ConfigMap contains no packages"},
	} {
		t.Run(what, func(t *testing.T) {
			dir, keys, logged := t.TempDir(), keysOf("1.0.0"), &strings.Builder{}
			maps.Copy(keys, tt.keys)
			for key, text := range keys {
				write(t, filepath.Join(dir, key), text)
			}
			c := ConfigMap{Path: dir, Filter: Filter{Logger: slog.New(slog.NewTextHandler(logged, nil))}}
			if _, err := c.Load(t.Context()); err != nil {
				t.Error(err)
			}
			if warnings, err := c.Warnings(); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].String(), tt.want) {
				t.Errorf("warnings %q, %v, want %q", warnings, err, tt.want)
			}
			if !strings.Contains(logged.String(), "Catalog has a problem") {
				t.Errorf("logged %q", logged)
			}
		})
	}
}

func TestBadConfigMap(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(t *testing.T, dir string, keys map[string]string)
		want   string
	}{
		"NoKey": {
			reason: "keys are named", change: func(_ *testing.T, _ string, keys map[string]string) { delete(keys, "packages") },
			want: "packages: the ConfigMap has no such key",
		},
		"Cycle": {
			reason: "it is validated by OLM's rules",
			change: func(_ *testing.T, _ string, keys map[string]string) {
				keys["clusterServiceVersions"] = "- metadata: {name: b}\n  spec: {version: 1.0.0, replaces: b}\n"
			},
			want: `package "p", channel "a": detected cycle`,
		},
		"Large": {
			reason: "sizes are bounded",
			change: func(_ *testing.T, _ string, keys map[string]string) {
				keys["packages"] = strings.Repeat(" ", maxKeyBytes+1)
			},
			want: "DIR/packages: is larger than a ConfigMap can be",
		},
		"Directory": {
			reason: "keys are files",
			change: func(t *testing.T, dir string, keys map[string]string) {
				t.Helper()
				delete(keys, "packages")
				if err := os.Mkdir(filepath.Join(dir, "packages"), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			want: "DIR/packages: reading a key",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, keys := t.TempDir(), keysOf("1.0.0")
			tc.change(t, dir, keys)
			for key, text := range keys {
				write(t, filepath.Join(dir, key), text)
			}
			_, err := ConfigMap{Path: dir}.Load(t.Context())
			problems := bundles.AsProblems(err)
			if len(problems) == 0 || !strings.Contains(strings.ReplaceAll(problems[0].String(), dir, "DIR"), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := (ConfigMap{Path: "/none"}).Load(t.Context()); err == nil {
		t.Error("a missing directory is served")
	}
}

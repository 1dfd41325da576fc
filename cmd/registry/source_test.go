package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/server/source"
)

// flagsOf parses arguments and returns the source flags.
func flagsOf(t *testing.T, args ...string) *sourceFlags {
	t.Helper()
	var o sourceFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, key := range []string{"customResourceDefinitions", "clusterServiceVersions", "packages"} {
		if err := os.WriteFile(filepath.Join(dir, key), []byte("[]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "packages")
	empty := t.TempDir()
	cases := map[string]struct {
		reason, argument string
		want             any
	}{
		"Directory": {"a directory of any kind", empty, source.Dir{}},
		"ConfigMap": {"one that holds the keys", dir, source.ConfigMap{}},
		"Named":     {"one that is said to", configMapPrefix + empty, source.ConfigMap{}},
		"File":      {"a file is an index", file, source.File{}},
		"Missing":   {"what is not there yet may become a directory", filepath.Join(empty, "none"), source.Dir{}},
		"Image":     {"an image", "oci:registry.example/team/catalog:v1", &source.Image{}},
		"Digest":    {"an image", "oci:registry.example/c@sha256:" + strings.Repeat("a", 64), &source.Image{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := flagsOf(t).open(tc.argument, slog.New(slog.DiscardHandler))
			if err != nil || fmt.Sprintf("%T", got) != fmt.Sprintf("%T", tc.want) {
				t.Errorf("%s: got %T, %v, want %T", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestOpenFlags(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	from, err := flagsOf(t, "--poll=1h", "--cache-dir=/cache", "--allow-empty", "--cache-enforce-integrity").open("oci:a.example/b", logger)
	got, ok := from.(*source.Image)
	if err != nil || !ok || got.Poll != time.Hour || got.CacheDir != "/cache" || !got.AllowEmpty || !got.Suspicious {
		t.Errorf("got %+v, %v", from, err)
	}
	from, err = flagsOf(t, "--cache-dir=/cache", "--cache-enforce-integrity").open(t.TempDir(), logger)
	dir, ok := from.(source.Dir)
	if err != nil || !ok || dir.Cache.Dir != "/cache" || !dir.Cache.Suspicious {
		t.Errorf("got %+v, %v", from, err)
	}
	for _, tc := range []struct{ flag, want string }{
		{"--poll=-1s", "--poll must not be negative, found -1s"},
		{"--pull-timeout=0", "--pull-timeout must be above zero, found 0s"},
		{"--platform=linux", "the platform must be os/architecture"},
		{"--registry-ca=/none", "reading the settings for image registries: /none: no such file or directory"},
	} {
		if _, err := flagsOf(t, tc.flag).open("oci:a.example/b", logger); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", tc.flag, err)
		}
	}
	_, err = flagsOf(t).open("quay.example/team/catalog:v1", logger)
	if err == nil || !strings.Contains(err.Error(), "to read an image write oci:quay.example/team/catalog:v1") {
		t.Errorf("an image without a prefix: %v", err)
	}
}

func TestCacheOnly(t *testing.T) {
	dir, out := writeCatalog(t, catalog), t.TempDir()
	file, indexFile, cache := filepath.Join(out, "file"), filepath.Join(out, "c.index"), filepath.Join(out, "cache")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, failed := run(t.Context(), "build", dir, "-o", indexFile); failed {
		t.Fatal(output)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		failed bool
		want   string
	}{
		"NoDirectory": {"scripts check content with it, as with opm", []string{dir}, false, "The content is valid"},
		"Invalid":     {"invalid content fails also without a directory", []string{file}, true, ""},
		"IndexFile":   {"it is an index already", []string{indexFile, "--cache-dir", cache}, true, "an index file needs none"},
		"ConfigMap":   {"none is kept", []string{configMapPrefix + dir, "--cache-dir", cache}, true, "only a directory or an image has a cache"},
		"Unwritable":  {"the reason is named", []string{dir, "--cache-dir", filepath.Join(file, "cache")}, true, "could not be stored in --cache-dir " + filepath.Join(file, "cache") + ": open "},
		"Inside":      {"a cache is no part of the catalog", []string{dir, "--cache-dir", filepath.Join(dir, "cache")}, true, "see the warnings"},
		"Filled":      {"that is what it is for", []string{dir, "--cache-dir", cache}, false, "Filled the cache"},
		"Again":       {"or is already", []string{dir, "--cache-dir", cache}, false, "Filled the cache"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"serve", "--cache-only", "--pprof-addr=0", "--termination-log="}, tc.args...)
			output, failed := run(t.Context(), args...)
			if failed != tc.failed || !strings.Contains(output, tc.want) {
				t.Errorf("%s: failed is %v, output:\n%s", tc.reason, failed, output)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(cache, source.IndexFile)); err != nil {
		t.Error(err)
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/cmd/internal/exitcode"
)

const bundlesDir = "../../examples/bundles"

// run runs the program and returns what it prints and its exit code.
func run(ctx context.Context, args ...string) (output string, code int) {
	var out bytes.Buffer
	cmd := newCommand() //nolint:contextcheck // the context is given to ExecuteContext
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.ExecuteContext(ctx); err != nil {
		printError(&out, err)
		code = exitcode.Of(err)
	}
	return out.String(), code
}

func succeed(t *testing.T, args ...string) string {
	t.Helper()
	output, code := run(t.Context(), args...)
	if code != 0 {
		t.Fatalf("catalog %s ends with %d:\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

// lantern creates a catalog with one version of the package lantern.
func lantern(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	succeed(t, "init", "lantern", "--catalog", dir)
	succeed(t, "add", bundlesDir+"/lantern/1.0.0", "--catalog", dir, "--channel", "stable")
	return dir
}

func TestRefusals(t *testing.T) {
	dir := lantern(t)
	before, err := os.ReadFile(filepath.Join(dir, "lantern", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Again":       {"the package is there", []string{"init", "lantern", "--catalog", dir}, 1, "lantern/catalog.yaml: package \"lantern\": the catalog has the package already"},
		"BadName":     {"the name cannot be that of a package", []string{"init", "Lantern!"}, 1, "is not the name of a package"},
		"BadFormat":   {"there is no such format", []string{"init", "a", "-o", "xml"}, 1, "--output must be json or yaml, found \"xml\""},
		"NoChannel":   {"a bundle goes to a channel", []string{"add", bundlesDir + "/lantern/1.1.0", "--catalog", dir}, 1, "--channel"},
		"Mistyped":    {"the channel does not exist", []string{"add", bundlesDir + "/lantern/1.1.0", "--catalog", dir, "-c", "stabel"}, 1, "catalog.yaml:2: package \"lantern\", channel \"stabel\", bundle \"lantern.v1.1.0\": there is no such channel; the package has stable"},
		"NoPackage":   {"the package does not exist", []string{"add", bundlesDir + "/compass/2.0.0", "--catalog", dir, "-c", "stable"}, 1, "catalog init compass"},
		"NoCatalog":   {"there is no such directory", []string{"add", bundlesDir + "/lantern/1.1.0", "--catalog", dir + "x", "-c", "stable"}, 1, "there is no such directory or file"},
		"TwoPackages": {"edges are those of one package", []string{"add", bundlesDir + "/lantern/1.1.0", bundlesDir + "/compass/2.0.0", "--catalog", dir, "-c", "stable"}, 1, "one package at a time"},
		"Unknown":     {"the package has no such bundle", []string{"deprecate", "lantern", "--catalog", dir, "-b", "lantern.v9", "-m", "x"}, 1, "the package does not have it"},
		"Silent":      {"a deprecation says why", []string{"deprecate", "lantern", "--catalog", dir}, 1, "say with --message why"},
		"Validate":    {"it cannot be read", []string{"validate", dir + "/nowhere"}, 2, "no such file or directory"},
		"Images":      {"the mirror cannot be asked", []string{"images", dir, "--check", "127.0.0.1:1", "--use-http"}, 2, "could not be checked"},
		"Prune":       {"there is no such package", []string{"prune", dir, "--package", "nope"}, 1, "nope"},
		"PruneFormat": {"flags are checked before the catalog is read", []string{"prune", dir + "/nowhere", "-o", "xml"}, 1, "--output must be json or yaml, found \"xml\""},
		"ImagesForm":  {"so is the form of a list", []string{"images", dir + "/nowhere", "-o", "foo"}, 2, "there is no such form; the forms are list, "},
		"Mapping":     {"and that a mapping has a target", []string{"images", dir + "/nowhere", "-o", "mapping"}, 2, "name it with --mirror"},
		"TwoMirrors":  {"a registry has one mirror", []string{"images", dir + "/nowhere", "--check", "a.example", "--check", "b.example"}, 2, "--check \"b.example\" is the second mirror of a registry"},
		"Reference":   {"and where an image goes", []string{"push", dir + "/nowhere", "UPPER/x"}, 1, "the image must be named as HOST/PATH:TAG, in lower case, found \"UPPER/x\""},
		"Dockerfile":  {"scratch cannot create an index", []string{"dockerfile", "catalog"}, 1, "--base or --builder"},
		"Platform":    {"the platform is incomplete", []string{"push", dir, "example.com/a:b", "--platform", "linux"}, 1, "os/architecture"},
		"Label":       {"the label has no value", []string{"push", dir, "example.com/a:b", "--label", "x"}, 1, "NAME=VALUE"},
		"Template":    {"there is no such file", []string{"template", "nowhere.yaml"}, 1, "nowhere.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := run(t.Context(), tt.args...)
			if code != tt.code || !strings.Contains(output, tt.want) {
				t.Errorf("%s: exit code %d, output:\n%s", tt.reason, code, output)
			}
		})
	}
	after, err := os.ReadFile(filepath.Join(dir, "lantern", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the catalog has changed:\n%s", diff)
	}
}

// TestFilesOfProblems has catalogs with problems. Messages name files relative to the working
// directory of the program.
func TestFilesOfProblems(t *testing.T) {
	whole := lantern(t)
	text, err := os.ReadFile(filepath.Join(whole, "lantern", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := filepath.Abs(bundlesDir + "/lantern/1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for dir, content := range map[string]string{
		"unreadable": string(text) + "---\nfoo: [bar\n",
		"invalid":    strings.Replace(string(text), "defaultChannel: stable", "defaultChannel: nope", 1),
		"mistyped":   strings.Replace(string(text), "- name: lantern.v1.0.0", "- name: 5", 1),
	} {
		if err := os.MkdirAll(filepath.Join(dir, "p"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "p", "catalog.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{
		"Validate": {"validate"}, "Diff": {"diff", whole}, "Render": {"render"}, "Convert": {"convert"}, "Images": {"images"},
		"Prune": {"prune", "--heads"}, "Merge": {"merge", whole}, "Push": {"push", "example.com/catalog:v1", "--layout", "image"},
		"Add": {"add", bundle, "--channel", "stable", "--catalog"},
	} {
		for _, dir := range []string{"unreadable", "invalid", "mistyped"} {
			t.Run(name+"/"+dir, func(t *testing.T) {
				place := len(args)
				if name == "Push" {
					place = 1
				}
				output, code := run(t.Context(), slices.Insert(slices.Clone(args), place, dir)...)
				if dir == "invalid" && (code == 0 || name == "Merge") {
					return // the command handles objects one by one
				}
				line := strings.TrimPrefix(output, "catalog: ")
				if code == 0 || !strings.HasPrefix(line, dir+"/p/catalog.yaml:") {
					t.Errorf("exit code %d:\n%s", code, output)
				}
			})
		}
	}
}

// TestImagesOutOfReach has a registry that refuses access, and one without TLS. Messages name the
// registry, its answer, the credentials without their value, and a remedy.
func TestImagesOutOfReach(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	host := server.Listener.Addr().String()
	secret := filepath.Join(t.TempDir(), "config.json")
	const password = "hidden-word"
	config := fmt.Sprintf(`{"auths":{%q:{"username":"u","password":%q}}}`, host, password)
	if err := os.WriteFile(secret, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	catalog := lantern(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	named := []string{"403 Forbidden; tried the credentials in " + secret + " for " + host, "--pull-secret"}
	for name, tt := range map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Render":    {"the image is read", []string{"render", host + "/a:v1", "--use-http", "--pull-secret", secret}, named},
		"Push":      {"the image is written", []string{"push", catalog, host + "/a:v1", "--use-http", "--pull-secret", secret}, named},
		"Base":      {"the base is read", []string{"push", catalog, host + "/a:v1", "--base", host + "/b:v1", "--use-http", "--pull-secret", secret}, named},
		"Check":     {"the mirror is asked", []string{"images", catalog, "--check", host, "--use-http", "--pull-secret", secret}, named},
		"Anonymous": {"there are no credentials", []string{"push", catalog, host + "/a:v1", "--use-http"}, []string{"401 Unauthorized; tried no credentials", "--pull-secret"}},
		"NoTLS":     {"plain HTTP is not allowed", []string{"render", host + "/a:v1"}, []string{host, "--use-http"}},
		"CheckTLS":  {"plain HTTP is not allowed", []string{"images", catalog, "--check", host}, []string{host, "--use-http"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := run(t.Context(), tt.args...)
			if code == 0 || strings.Contains(output, password) {
				t.Errorf("%s: exit code %d:\n%s", tt.reason, code, output)
			}
			for _, want := range tt.want {
				if !strings.Contains(output, want) {
					t.Errorf("%s: no %q in:\n%s", tt.reason, want, output)
				}
			}
		})
	}
}

// TestLayout writes an image to a folder, which must not exist.
func TestLayout(t *testing.T) {
	catalog, dir := lantern(t), filepath.Join(t.TempDir(), "image")
	succeed(t, "push", catalog, "example.com/a:v1", "--layout", dir)
	if output, code := run(t.Context(), "push", catalog, "example.com/a:v1", "--layout", dir); code != 1 || !strings.Contains(output, dir) {
		t.Errorf("a folder with files is written to: exit code %d:\n%s", code, output)
	}
}

// TestConcurrentAdd adds many bundles to one catalog at once and checks that no entry is lost.
func TestConcurrentAdd(t *testing.T) {
	dir := lantern(t)
	const channels = 8
	var group errgroup.Group
	for i := range channels {
		group.Go(func() error {
			output, code := run(t.Context(), "add", bundlesDir+"/lantern/1.1.0", "--catalog", dir, "-c", fmt.Sprintf("channel-%d", i), "--create-channels")
			if code != 0 {
				return fmt.Errorf("exit code %d: %s", code, output)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if output := succeed(t, "validate", dir); !strings.Contains(output, fmt.Sprintf("1 package, %d channels, 2 bundles, no problems", channels+1)) {
		t.Errorf("got %s", output)
	}
}

func TestDryRun(t *testing.T) {
	dir := lantern(t)
	output := succeed(t, "add", bundlesDir+"/lantern/1.1.0", "--catalog", dir, "-c", "stable", "--dry-run")
	if !strings.Contains(output, "+- name: lantern.v1.1.0\n+  replaces: lantern.v1.0.0\n") {
		t.Errorf("got %s", output)
	}
	if output := succeed(t, "validate", dir); !strings.Contains(output, "1 bundle") {
		t.Errorf("the catalog has changed: %s", output)
	}
}

// TestEnvironment sets a flag by its variable.
func TestEnvironment(t *testing.T) {
	dir := lantern(t)
	t.Setenv("CATALOG_OUTPUT", "yaml")
	if output := succeed(t, "render", dir); !strings.HasPrefix(output, "---\n") {
		t.Errorf("got %.100s", output)
	}
}

// TestPush pushes a catalog twice and reads the image.
func TestPush(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var lacking atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lacking.Load() && r.Method == http.MethodHead && strings.Contains(r.URL.Path, "/blobs/") {
			http.NotFound(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := server.Listener.Addr().String()
	dir := lantern(t)
	first := succeed(t, "push", dir, host+"/catalog:v1", "--use-http", "--label", "a=b")
	second := succeed(t, "push", dir, host+"/catalog:v1", "--use-http", "--label", "a=b")
	if first != second || !strings.Contains(first, "1 package, 1 bundle, 2 platforms") {
		t.Errorf("the same catalog gives another image:\n%s%s", first, second)
	}
	if output, code := run(t.Context(), "diff", dir, host+"/catalog:v1", "--use-http"); code != 0 || output != "no differences\n" {
		t.Errorf("the image differs from the directory: exit code %d:\n%s", code, output)
	}
	want := succeed(t, "render", dir)
	if diff := cmp.Diff(want, succeed(t, "render", host+"/catalog:v1", "--use-http")); diff != "" {
		t.Errorf("-directory +image:\n%s", diff)
	}
	if output := succeed(t, "images", host+"/catalog:v1", "--use-http"); !strings.Contains(output, host+"/catalog:v1\n") {
		t.Errorf("the image of the catalog is missing:\n%s", output)
	}
	if output, code := run(t.Context(), "images", dir, "--check", host, "--use-http"); code != exitcode.Found || !strings.Contains(output, "is missing") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	lacking.Store(true)
	if output, code := run(t.Context(), "images", host+"/catalog:v1", "--check", host, "--use-http"); code != exitcode.Found ||
		!strings.Contains(output, host+"/catalog:v1 is incomplete: manifest sha256:") || !strings.Contains(output, "3 of its 3 blobs are missing") {
		t.Errorf("a mirror without layers: exit code %d:\n%s", code, output)
	}
	lacking.Store(false)
	output, code := run(t.Context(), "render", host+"/nowhere:v1", "--use-http")
	if code != 1 || !strings.Contains(output, host+"/nowhere:v1") || !strings.Contains(output, "404") {
		t.Errorf("an image that is not there: exit code %d:\n%s", code, output)
	}
}

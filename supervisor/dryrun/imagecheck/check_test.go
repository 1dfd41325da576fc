package imagecheck_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/imagecheck"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/images"
)

// mirror returns the address of a registry.
func mirror(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// rules returns the rules of a registries.conf.
func rules(t *testing.T, text string) image.Router {
	t.Helper()
	name := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return sources.NewFiles(sources.Paths{RegistriesConf: name})
}

const csv = `{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "lamp.v1"}, "spec": {
	"relatedImages": [{"name": "lens", "image": "source.test/op/lens:1"}],
	"install": {"spec": {"deployments": [{"spec": {"template": {"spec": {"containers": [{"image": "source.test/op/lamp:1"}]}}}}]}}}}`

// push pushes a bundle with a ClusterServiceVersion, and images without content.
func push(t *testing.T, bundle string, others ...string) {
	t.Helper()
	made, err := images.Bundle(fstest.MapFS{
		"manifests/csv.json":        {Data: []byte(csv)},
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: lamp}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Push(t.Context(), bundle, made); err != nil {
		t.Fatal(err)
	}
	for _, other := range others {
		if _, err := images.Push(t.Context(), other, empty.Image); err != nil {
			t.Fatal(err)
		}
	}
}

// catalogs names images of bundles.
type catalogs map[string]dryrun.BundleImages

func (c catalogs) Images(_ context.Context, _ resolution.CatalogKey, bundles []dryrun.BundleKey) ([]dryrun.BundleImages, error) {
	var out []dryrun.BundleImages
	for _, b := range bundles {
		out = append(out, c[b.Name])
	}
	return out, nil
}

func step(bundle, reference string) dryrun.Step {
	return dryrun.Step{Change: dryrun.Change{Catalog: "olm/wares", Package: "lamp", Channel: "stable", Bundle: bundle, Image: reference}}
}

var digests = regexp.MustCompile("@sha256:[0-9a-f]{64}")

// shown returns one line for each image.
func shown(found []dryrun.Image) []string {
	var out []string
	for _, i := range found {
		text := &strings.Builder{}
		fmt.Fprintf(text, "%s %s", i.Reference, strings.Join(i.Bundles, ","))
		for _, kind := range i.Kinds {
			fmt.Fprintf(text, " %s", kind)
		}
		if c := i.Check; c != nil {
			fmt.Fprintf(text, ": %s%s", c.Source, c.Reason)
			for _, tried := range c.Tried {
				fmt.Fprintf(text, ", %s %s", tried.Place, tried.Reason)
			}
			for _, skipped := range c.NotAsked {
				fmt.Fprintf(text, ", not %s", skipped.Place)
			}
		}
		out = append(out, digests.ReplaceAllString(text.String(), "@DIGEST"))
	}
	return out
}

func TestList(t *testing.T) {
	named := catalogs{
		"lamp.v1": {OfDeployments: []string{"source.test/op/lamp:1"}, Related: []string{"source.test/op/bundle:1", "source.test/op/lens:1"}},
		"lamp.v2": {Related: []string{"source.test/op/lens:1"}},
	}
	found, err := imagecheck.List(t.Context(), named, []dryrun.Step{step("lamp.v1", "source.test/op/bundle:1"), step("lamp.v2", "")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"source.test/op/bundle:1 lamp.v1 bundle",
		"source.test/op/lamp:1 lamp.v1 operator",
		"source.test/op/lens:1 lamp.v1,lamp.v2 related",
	}
	if diff := cmp.Diff(want, shown(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCheck checks images whose source is blocked, and whose mirror has a part of them.
func TestCheck(t *testing.T) {
	at := mirror(t)
	router := rules(t, `
[[registry]]
location = "source.test"
blocked = true
[[registry.mirror]]
location = "`+at+`"
insecure = true
`)
	push(t, at+"/op/bundle:1", at+"/op/lamp:1")
	wanted, err := imagecheck.List(t.Context(), catalogs{}, []dryrun.Step{
		step("lamp.v1", "source.test/op/bundle:1"), step("lamp.v2", "source.test/op/bundle:2"), step("lamp.v3", "not an image"),
		step("lamp.v4", "source.test/op/lamp:1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	pull := func(_ context.Context, catalog resolution.CatalogKey, _ string) (image.Options, error) {
		asked++
		if catalog.String() != "olm/wares" {
			t.Errorf("asked for catalog %s", catalog)
		}
		return image.Options{Sources: image.Sources{Router: router}, Attempts: 1}, nil
	}
	found, err := imagecheck.Check(t.Context(), serialized(pull), unverified, wanted)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"not an image lamp.v3 bundle: BadReference",
		"source.test/op/bundle:1 lamp.v1 bundle: " + at + "/op/bundle:1",
		"source.test/op/bundle:2 lamp.v2 bundle: NotFound, " + at + "/op/bundle:2 NotFound, not source.test/op/bundle:2",
		// It is no bundle.
		"source.test/op/lamp:1 lamp.v1,lamp.v4 bundle operator: NoSuchDirectory, " + at + "/op/lamp@DIGEST NoSuchDirectory, not source.test/op/lamp@DIGEST",
		"source.test/op/lens:1 lamp.v1 related: NotFound, " + at + "/op/lens:1 NotFound, not source.test/op/lens:1",
	}
	if diff := cmp.Diff(want, shown(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked != 5 {
		t.Errorf("asked %d times for 5 images", asked)
	}
	if rule := found[2].Check.Tried[0].Rule; !strings.Contains(rule, "registries.conf") {
		t.Errorf("the rule is %q", rule)
	}
}

// TestCheckIncomplete checks an image of which a mirror has the manifest and half of the blobs. Then the next one is asked.
func TestCheckIncomplete(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var lacked atomic.Pointer[map[string]bool]
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lacks := lacked.Load(); lacks != nil && (*lacks)[path.Base(r.URL.Path)] {
			http.NotFound(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(half.Close)
	first, second := half.Listener.Addr().String(), mirror(t)
	lamp, err := random.Image(64, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Push(t.Context(), first+"/op/lamp:1", lamp); err != nil {
		t.Fatal(err)
	}
	m, err := lamp.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	lacked.Store(&map[string]bool{m.Layers[0].Digest.String(): true, m.Layers[2].Digest.String(): true})

	wanted := []dryrun.Image{{Reference: "source.test/op/lamp:1", Catalog: "olm/wares", Kinds: []dryrun.ImageKind{dryrun.OperatorImage}, Bundles: []string{"lamp.v1"}}}
	router := rules(t, fmt.Sprintf(`
[[registry]]
location = "source.test"
blocked = true
[[registry.mirror]]
location = %q
insecure = true
[[registry.mirror]]
location = %q
insecure = true
`, first, second))
	check := func() []dryrun.Image {
		found, err := imagecheck.Check(t.Context(), func(context.Context, resolution.CatalogKey, string) (image.Options, error) {
			return image.Options{Sources: image.Sources{Router: router}, Attempts: 1}, nil
		}, unverified, wanted)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := check()
	want := []string{"source.test/op/lamp:1 lamp.v1 operator: NotFound, " + first + "/op/lamp@DIGEST NotFound, " + second + "/op/lamp@DIGEST NotFound, not source.test/op/lamp@DIGEST"}
	if diff := cmp.Diff(want, shown(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if message := found[0].Check.Tried[0].Message; !strings.Contains(message, "2 of its 4 blobs are missing, first "+m.Layers[0].Digest.String()) {
		t.Errorf("the answer of the first mirror is %q", message)
	}
	if _, err := images.Push(t.Context(), second+"/op/lamp:1", lamp); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"source.test/op/lamp:1 lamp.v1 operator: " + second + "/op/lamp:1"}, shown(check())); diff != "" {
		t.Errorf("with a complete mirror (-want +got):\n%s", diff)
	}
}

// TestRemedies checks the remedies for images for which the reason is too general.
func TestRemedies(t *testing.T) {
	answers := func(kind, text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, text)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	page, other, old := answers("text/html; charset=utf-8", "<html>sign in</html>"), answers("application/json", `{"status": "ok"}`), answers("", `{"schemaVersion": 1}`)
	const digest = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	blocked := "[[registry]]\nlocation = \"source.test\"\nblocked = true\n"
	mirrorOf := func(at, more string) string {
		return blocked + "[[registry.mirror]]\ninsecure = true\nlocation = \"" + at + "\"\n" + more
	}
	for name, tt := range map[string]struct{ rules, reference, want string }{
		"blocked":                  {blocked, "source.test/op/lamp:1", "add a mirror for it to registries.conf, or remove the rule that blocks it"},
		"a mirror for digests":     {mirrorOf(page, `pull-from-mirror = "digest-only"`), "source.test/op/lamp:1", "name the image by digest, or allow tags at "},
		"a mirror for tags":        {mirrorOf(page, `pull-from-mirror = "tag-only"`), "source.test/op/lamp" + digest, "allow digests at "},
		"a page":                   {mirrorOf(page, ""), "source.test/op/lamp:1", "check that " + page + " is the address of a registry"},
		"a page for a digest":      {mirrorOf(page, ""), "source.test/op/lamp" + digest, "check that " + page + " is the address of a registry"},
		"another document":         {mirrorOf(other, ""), "source.test/op/lamp:1", "check that " + other + " is the address of a registry"},
		"a page without any rules": {"", page + "/op/lamp:1", "check that " + page + " is the address of a registry"},
		"an old image":             {mirrorOf(old, ""), "source.test/op/lamp:1", "copy or build the image again"},
	} {
		t.Run(name, func(t *testing.T) {
			router := rules(t, tt.rules)
			found, err := imagecheck.Check(t.Context(), func(context.Context, resolution.CatalogKey, string) (image.Options, error) {
				return image.Options{Sources: image.Sources{Router: router}, PlainHTTP: true, Attempts: 1}, nil
			}, unverified, []dryrun.Image{{Reference: tt.reference, Catalog: "olm/wares", Kinds: []dryrun.ImageKind{dryrun.OperatorImage}, Bundles: []string{"lamp.v1"}}})
			if err != nil {
				t.Fatal(err)
			}
			if check := found[0].Check; check.Available || !strings.HasPrefix(check.Remedy, tt.want) {
				t.Errorf("got %+v, want the remedy %q", check, tt.want)
			}
		})
	}
}

// unverified requires no signatures.
func unverified(context.Context, *image.Client, resolution.CatalogKey, string) error { return nil }

// serialized returns a Pull without concurrent calls.
func serialized(pull imagecheck.Pull) imagecheck.Pull {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context, catalog resolution.CatalogKey, reference string) (image.Options, error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		return pull(ctx, catalog, reference)
	}
}

// TestCheckFails checks which failures are no answers.
func TestCheckFails(t *testing.T) {
	wanted := []dryrun.Image{{Reference: "source.test/a:1", Catalog: "olm/wares", Kinds: []dryrun.ImageKind{dryrun.RelatedImage}, Bundles: []string{"lamp.v1"}}}
	broken := errors.New("secrets are forbidden")
	_, err := imagecheck.Check(t.Context(), func(context.Context, resolution.CatalogKey, string) (image.Options, error) {
		return image.Options{}, broken
	}, unverified, wanted)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "source.test/a:1") {
		t.Errorf("error %v", err)
	}
	found, err := imagecheck.Check(t.Context(), func(context.Context, resolution.CatalogKey, string) (image.Options, error) {
		return image.Options{}, &image.Error{Reference: "source.test/a:1", Reason: image.ReasonConfiguration, Err: broken}
	}, unverified, wanted)
	if err != nil || found[0].Check.Available || found[0].Check.Message != broken.Error() || found[0].Check.Remedy != "correct the image settings" {
		t.Errorf("%+v, error %v", found, err)
	}
	if wanted[0].Check != nil {
		t.Error("the given images have changed")
	}
}

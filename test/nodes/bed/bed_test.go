package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/daemon"
)

func TestRunRefusesUnknownCommands(t *testing.T) {
	for _, args := range [][]string{nil, {"sideways"}, {"up", "down"}, {"lost"}, {"push", "image"}} {
		err := run(t.Context(), args)
		if err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
			t.Errorf("run(%q): want how to use it, got %v", args, err)
		}
	}
}

func TestWithoutABed(t *testing.T) {
	t.Setenv(buildcache.RootVariable, t.TempDir())

	for _, args := range [][]string{{"status"}, {"lost", "1"}, {"back", "1"}, {"push", "image", "name:tag"}} {
		err := run(t.Context(), args)
		if !errors.Is(err, daemon.ErrNotRunning) || !strings.Contains(err.Error(), "make nodes-up") {
			t.Errorf("run(%q): want %q and the remedy, got %v", args, daemon.ErrNotRunning, err)
		}
	}

	b, err := newBed()
	if err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer

	err = b.Down(t.Context(), &out)
	if err != nil || out.String() != "no bed is running\n" {
		t.Errorf("down: want that none is running, got %q, %v", out.String(), err)
	}
}

func TestNodesHaveNumbers(t *testing.T) {
	err := run(t.Context(), []string{"lost", "node-1"})
	if err == nil || !strings.Contains(err.Error(), `node "node-1": want a number`) {
		t.Errorf("lost node-1: want that it is no number, got %v", err)
	}
}

func TestOpenLayout(t *testing.T) {
	image, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}

	platforms := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})

	cases := map[string]struct {
		reason string
		add    func(layout.Path) error
		want   func() (v1.Hash, error)
	}{
		"Image":  {"The only image is what is pushed.", func(p layout.Path) error { return p.AppendImage(image) }, image.Digest},
		"Index":  {"An image for several platforms is pushed as it is.", func(p layout.Path) error { return p.AppendIndex(platforms) }, platforms.Digest},
		"Images": {"Several images become an index of them.", func(p layout.Path) error { return errors.Join(p.AppendImage(image), p.AppendIndex(platforms)) }, nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "layout")

			written, err := layout.Write(dir, empty.Index)
			if err == nil {
				err = tc.add(written)
			}

			if err != nil {
				t.Fatal(err)
			}

			content, err := open(dir)
			if err != nil {
				t.Fatalf("%s\nopen(...): %v", tc.reason, err)
			}

			if tc.want == nil {
				tc.want = wholeLayout(t, dir)
			}

			want, err := tc.want()
			if err != nil {
				t.Fatal(err)
			}

			if got := digest(t, content); got != want {
				t.Errorf("%s\nopen(...): want %s, got %s", tc.reason, want, got)
			}
		})
	}
}

// wholeLayout returns the digest of the index of a layout.
func wholeLayout(t *testing.T, dir string) func() (v1.Hash, error) {
	t.Helper()

	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}

	return index.Digest
}

func digest(t *testing.T, content remote.Taggable) v1.Hash {
	t.Helper()

	described, ok := content.(interface{ Digest() (v1.Hash, error) })
	if !ok {
		t.Fatalf("%T has no digest", content)
	}

	got, err := described.Digest()
	if err != nil {
		t.Fatal(err)
	}

	return got
}

func TestOpenNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")

	_, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}

	_, err = open(dir)
	if err == nil || !strings.Contains(err.Error(), "holds no image") {
		t.Errorf("open an empty layout: want that it holds no image, got %v", err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestBuildSelection builds indexes of parts of a catalog.
func TestBuildSelection(t *testing.T) {
	dir, out := writeCatalog(t, sampleCatalog+catalog), t.TempDir()
	images := filepath.Join(out, "images.yaml")
	text := "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  operators:\n" +
		"  - {catalog: other.example/c, full: true}\n  - {catalog: " + dir + ", packages: [{name: lamp, channels: [{name: stable}]}]}\n"
	if err := os.WriteFile(images, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(out, "whole.index")
	if output, failed := run(t.Context(), "build", dir, "-o", whole); failed {
		t.Fatal(output)
	}
	for name, test := range map[string]struct {
		reason string
		source string
		args   []string
		failed bool
		want   string
	}{
		"Package":   {reason: "one of two", args: []string{"--package", "lamp"}, want: ": 1 package, 2 channels, 2 bundles"},
		"Range":     {reason: "a channel is left out", args: []string{"--package", "lamp@>=2.0.0"}, want: ": 1 package, 1 channel, 1 bundle"},
		"Heads":     {reason: "of each channel", args: []string{"--heads", "--package=lamp,p"}, want: ": 2 packages, 3 channels, 3 bundles"},
		"ImageSet":  {reason: "the entry for this catalog", args: []string{"--selection", images}, want: ": 1 package, 1 channel, 1 bundle"},
		"Inline":    {reason: "as text", args: []string{"--selection", `{"packages":[{"name":"p"}]}`}, want: ": 1 package, 1 channel, 1 bundle"},
		"NoPackage": {reason: "named with a remedy", args: []string{"--package", "lamb"}, failed: true, want: `package "lamb": the selection: the catalog has no such package; correct the name`},
		"Index":     {reason: "it is made already", source: whole, args: []string{"--heads"}, failed: true, want: "is an index file, which does not support selection"},
	} {
		t.Run(name, func(t *testing.T) {
			source := dir
			if test.source != "" {
				source = test.source
			}
			args := append([]string{"build", source, "-o", filepath.Join(t.TempDir(), "index")}, test.args...)
			output, failed := run(t.Context(), args...)
			if failed != test.failed || !strings.Contains(output, test.want) {
				t.Errorf("%s: failed is %v, output:\n%s", test.reason, failed, output)
			}
		})
	}
}

// TestSelectionFromEnvironment sets a flag by its variable.
func TestSelectionFromEnvironment(t *testing.T) {
	t.Setenv("REGISTRY_PACKAGE", "lamp@>=2.0.0,p")
	output, failed := run(t.Context(), "build", writeCatalog(t, sampleCatalog+catalog), "-o", filepath.Join(t.TempDir(), "index"))
	if failed || !strings.Contains(output, ": 2 packages, 2 channels, 2 bundles") {
		t.Errorf("failed is %v, output:\n%s", failed, output)
	}
}

func TestCompleteSelection(t *testing.T) {
	dir := writeCatalog(t, sampleCatalog+catalog)
	for name, test := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Packages": {"of the catalog that is named", []string{"serve", dir, "--package", ""}, "lamp\t"},
		"Channels": {"begin with the package", []string{"build", dir, "--channel", ""}, "lamp\t"},
		"NoSource": {"it is not known yet", []string{"build", "--package", ""}, ":4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			output, failed := run(t.Context(), append([]string{cobra.ShellCompRequestCmd}, test.args...)...)
			if failed || !strings.Contains(output, test.want) {
				t.Errorf("%s: %s", test.reason, output)
			}
		})
	}
}

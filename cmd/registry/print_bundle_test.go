package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles/image/bundlelog"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
)

// printed runs print-bundle in an image with one file.
func printed(t *testing.T, file string, text []byte) (string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out := newPrintBundleCommand(), &bytes.Buffer{}
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(out)
	cmd.SetArgs([]string{"--root=" + dir})
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestPrintBundle(t *testing.T) {
	out, err := printed(t, "manifests/csv.yaml", bytes.Repeat([]byte("spec: {}\n"), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if archive, err := bundlelog.Read(strings.NewReader(out)); err != nil || len(archive) == 0 {
		t.Errorf("%d bytes were printed: %v", len(out), err)
	}
}

func TestPrintBundleRefusesLargeManifests(t *testing.T) {
	noise, source := make([]byte, bundlelog.MaxBytes+1), rand.NewPCG(1, 2)
	for i := range noise {
		noise[i] = byte(source.Uint64())
	}
	out, err := printed(t, "manifests/csv.yaml", noise)
	if exitcode.Of(err) != bundlelog.ExitTooLarge || out != "" || !strings.Contains(err.Error(), "more than 6291456 bytes when compressed") {
		t.Errorf("%d bytes, exit code %d, %v", len(out), exitcode.Of(err), err)
	}
}

package soak

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/proto/api"
)

// numPackages is the number of packages with one bundle each. The content exceeds what HTTP/2 lets
// a server send at once, so streams are in progress when the content changes.
const (
	numPackages = 300
	padding     = 1500
)

// Every bundle has the generation of its content in its skipRange.
const catalog = `{"schema":"olm.package","name":"p%[1]d","defaultChannel":"a"}
{"schema":"olm.channel","package":"p%[1]d","name":"a","entries":[{"name":"b%[1]d","skipRange":"<%[2]d.0.0"}]}
{"schema":"olm.bundle","package":"p%[1]d","name":"b%[1]d","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"p%[1]d","version":"1.0.0"}},{"type":"pad","value":"%[3]s"}]}
`

func request(i int) *api.GetBundleRequest {
	return &api.GetBundleRequest{PkgName: fmt.Sprintf("p%d", i), ChannelName: "a", CsvName: fmt.Sprintf("b%d", i)}
}

// write replaces the content in one step.
func write(t *testing.T, dir string, generation int) {
	t.Helper()
	var text strings.Builder
	pad := strings.Repeat("x", padding)
	for i := range numPackages {
		fmt.Fprintf(&text, catalog, i, generation, pad)
	}
	replace(t, dir, text.String())
}

func replace(t *testing.T, dir, text string) {
	t.Helper()
	temporary := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, "catalog.json")); err != nil {
		t.Fatal(err)
	}
}

var errForeign = errors.New("the bundle is of no content that was ever there")

// generationOf returns the generation of a bundle's content.
func generationOf(b *api.Bundle) (int, error) {
	text := strings.TrimSuffix(strings.TrimPrefix(b.GetSkipRange(), "<"), ".0.0")
	generation, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: skipRange %q", errForeign, b.GetSkipRange())
	}
	return generation, nil
}

package release

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"google.golang.org/protobuf/encoding/protojson"
)

func TestUnsigned(t *testing.T) {
	all := []stored{
		{repository: supervisorImage, tag: "1", digest: digest("a"), members: []v1.Hash{digest("b")}},
		{repository: registryImage, tag: "1", digest: digest("c")},
		{digest: digest("d"), subject: &v1.Descriptor{Digest: digest("b")}}, // a list of components
	}
	about := func(letter, predicate string) stored {
		return stored{digest: digest("e"), subject: &v1.Descriptor{Digest: digest(letter)}, predicate: predicate}
	}
	complete := []stored{about("a", signatureType), about("a", predicateType), about("c", predicateType), about("c", signatureType)}
	for name, tt := range map[string]struct {
		signatures []stored
		want       []string
	}{
		"Complete":     {signatures: complete},
		"None":         {want: []string{registryImage, supervisorImage}},
		"NoProvenance": {signatures: complete[2:], want: []string{supervisorImage}},
		"NoSignature":  {signatures: complete[:3], want: []string{registryImage}},
		"NoSubject":    {signatures: append([]stored{{predicate: signatureType}}, complete[:3]...), want: []string{registryImage}},
	} {
		if diff := cmp.Diff(tt.want, unsigned(all, tt.signatures)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPushRefuses pushes releases whose making failed after the provenance was written. The host does not exist.
func TestPushRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		folder string
		signed bool // reports whether the layout of the signatures exists
		want   error
	}{
		"Incomplete":      {folder: "1.2.0.incomplete", signed: true, want: errIncomplete},
		"IncompleteSlash": {folder: "1.2.0.incomplete/", signed: true, want: errIncomplete},
		"EmptySignatures": {folder: "1.2.0", signed: true, want: errUnsigned},
		"NoSignatures":    {folder: "1.2.0", want: errUnsigned},
	} {
		dir := t.TempDir() + "/" + tt.folder
		writeProvenance(t, dir)
		all, err := layout.Write(filepath.Join(dir, imagesDir), empty.Index)
		if err == nil {
			err = all.AppendImage(empty.Image, layout.WithAnnotations(map[string]string{refName: supervisorImage + ":1.2.0"}))
		}
		if err == nil && tt.signed {
			_, err = layout.Write(filepath.Join(dir, signaturesDir), empty.Index)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Push(t.Context(), dir); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// writeProvenance writes the provenance of a release for the registry example.invalid, without a signature.
func writeProvenance(t *testing.T, dir string) {
	t.Helper()
	o := Options{
		Source:  Source{Commit: strings.Repeat("c", 40), Created: epoch, Go: "go1.26.3"},
		Version: version(t, "1.2.0"), Images: "example.invalid", Builder: "https://example.com/builder",
	}
	statement, err := o.statement(sums{installFile: strings.Repeat("a", 64)}, nil, epoch, epoch)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := protojson.Marshal(statement)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := json.Marshal(map[string]any{"dsseEnvelope": map[string]any{"payload": payload}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, provenanceFile), bundle, 0o600)); err != nil {
		t.Fatal(err)
	}
}

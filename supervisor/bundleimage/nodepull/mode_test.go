package nodepull

import (
	"errors"
	"fmt"
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
)

// of returns an error of an image.
func of(reason image.Reason) error {
	return &image.Error{Reference: "source.test/lamp", Reason: reason, Err: errors.New("cause")}
}

// ofSources returns the error of an image that several sources lack, and of which a rule may block a source.
func ofSources(blocked bool, reasons ...image.Reason) error {
	all := &image.SourcesError{Skipped: []image.Skipped{{Place: "mirror.test/lamp", Why: "it is for digests only"}, {Place: "source.test/lamp", Blocked: blocked}}}
	reason := image.ReasonBlocked
	for _, one := range reasons {
		reason = one
		all.Attempts = append(all.Attempts, image.Attempt{Reason: one, Err: errors.New("cause")})
	}
	return &image.Error{Reference: "source.test/lamp", Reason: reason, Err: fmt.Errorf("finding it: %w", all)}
}

func TestByNode(t *testing.T) {
	for _, c := range []struct {
		why  string
		err  error
		auto bool
	}{
		{"the supervisor has not tried", nil, false},
		{"no access", of(image.ReasonUnauthorized), true},
		{"no image", of(image.ReasonNotFound), true},
		{"no trust", of(image.ReasonUntrusted), true},
		{"no connection", of(image.ReasonUnreachable), true},
		{"all sources without access or connection", ofSources(false, image.ReasonNotFound, image.ReasonUnreachable), true},
		{"a source that a rule blocks, and a mirror without the image", ofSources(true, image.ReasonNotFound), false},
		{"only a source that a rule blocks", ofSources(true), false},
		{"a source with a damaged image", ofSources(false, image.ReasonUnreachable, image.ReasonInvalid), false},
		{"blocked", of(image.ReasonBlocked), false},
		{"invalid settings", of(image.ReasonConfiguration), false},
		{"unusable credentials", of(image.ReasonCredentials), false},
		{"plain HTTP", of(image.ReasonPlainHTTP), false},
		{"no bundle", of(image.ReasonNoTree), false},
		{"too large", of(image.ReasonTooLarge), false},
		{"no space", of(image.ReasonLocal), false},
		{"no reference", of(image.ReasonReference), false},
		{"an error of the API server", errors.New("timeout"), false},
	} {
		for mode, want := range map[Mode]bool{"": c.auto, Auto: c.auto, Supervisor: false, Node: c.err == nil} {
			if got := mode.ByNode(c.err); got != want {
				t.Errorf("mode %q, %s: %v, want %v", mode, c.why, got, want)
			}
		}
	}
}

// TestFor checks in which mode catalogs with the annotation are pulled.
func TestFor(t *testing.T) {
	for _, c := range []struct {
		flag       Mode
		annotation string
		want       Mode
	}{
		{"", "", ""},
		{Auto, "", Auto},
		{Node, "", Node},
		{"", "node", Node},
		{Auto, "node", Node},
		{Auto, "supervisor", Supervisor},
		{Auto, "auto", Auto},
		{Node, "supervisor", Node},
		{Node, "auto", Node},
		{Supervisor, "node", Supervisor},
		{Supervisor, "auto", Supervisor},
	} {
		if got, err := c.flag.For(c.annotation); err != nil || got != c.want {
			t.Errorf("--image-pull=%s, annotation %q: %q, %v, want %q", c.flag, c.annotation, got, err, c.want)
		}
	}
	const want = `annotation chandlery.dev/image-pull of the CatalogSource is "nodes"; write auto, supervisor or node`
	for _, flag := range []Mode{Auto, Supervisor, Node} {
		if _, err := flag.For("nodes"); err == nil || err.Error() != want {
			t.Errorf("--image-pull=%s: %v, want %q", flag, err, want)
		}
	}
}

func TestModeIsAFlag(t *testing.T) {
	var m Mode
	if m.String() != "auto" {
		t.Errorf("the default is %q", m.String())
	}
	for _, text := range []string{"auto", "supervisor", "node"} {
		if err := m.Set(text); err != nil || m.String() != text {
			t.Errorf("%s: %q, %v", text, m, err)
		}
	}
	if err := m.Set("nodes"); err == nil || m != Node {
		t.Errorf("nodes: %q, %v", m, err)
	}
}

package search

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// found returns what a server that supports search finds.
func found(matches ...catalogquery.Match) catalogquery.Found {
	return catalogquery.Found{Matches: matches}
}

// TestReport merges the answers of several catalogs, of which one cannot be read.
func TestReport(t *testing.T) {
	t.Parallel()
	answers := []answer{
		{Catalog: types.NamespacedName{Namespace: "olm", Name: "b"}, Value: found(
			catalogquery.Match{Package: "torch", Version: "1.0.0"}, catalogquery.Match{Package: "lamp", Deprecation: "use torch"},
		)},
		{Catalog: types.NamespacedName{Namespace: "olm", Name: "a"}, Value: found(catalogquery.Match{Package: "lamp", DisplayName: "Lamp", Provider: "Example"})},
		{Catalog: types.NamespacedName{Namespace: "olm", Name: "c"}, Err: errors.New("catalog olm/c: no replica")},
	}
	r := newReport(answers)
	want := report{
		Packages: []catalogquery.Match{
			{Catalog: "olm/b", Package: "lamp", Deprecation: "use torch"},
			{Catalog: "olm/a", Package: "lamp", DisplayName: "Lamp", Provider: "Example"},
			{Catalog: "olm/b", Package: "torch", Version: "1.0.0"},
		},
		Unreadable: []string{"catalog olm/c: no replica"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for form, lines := range map[string][]string{
		console.Human: {"PACKAGE CATALOG CHANNEL VERSION DISPLAY NAME", "lamp olm/b (deprecated)", "lamp olm/a Lamp", "torch olm/b 1.0.0", "not read: catalog olm/c: no replica"},
		console.Wide:  {"PACKAGE CATALOG CHANNEL VERSION DISPLAY NAME PROVIDER DEPRECATED", "lamp olm/b use torch", "lamp olm/a Lamp Example", "torch olm/b 1.0.0", "not read: catalog olm/c: no replica"},
	} {
		o := options{output: console.Output{Form: form}}
		var got []string
		for line := range strings.Lines(o.text(&strings.Builder{}, &r)) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
}

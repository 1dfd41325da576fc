package catalogquery_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestForeignServer asks a server without the extension API.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	server := fakecatalog.Start(t, fakecatalog.Simple("oil-lamp", fakecatalog.Entry{Name: "oil-lamp.v1"}), fakecatalog.Simple("torch", fakecatalog.Entry{Name: "torch.v1"}))
	conn, err := grpc.NewClient(server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, tt := range map[string]struct {
		words []string
		want  []catalogquery.Match
	}{
		"All":     {want: []catalogquery.Match{{Package: "oil-lamp"}, {Package: "torch"}}},
		"Words":   {words: []string{"LAMP", "oil"}, want: []catalogquery.Match{{Package: "oil-lamp"}}},
		"Nothing": {words: []string{"lamp", "torch"}, want: []catalogquery.Match{}},
	} {
		got, err := catalogquery.Search(t.Context(), conn, tt.words)
		if diff := cmp.Diff(catalogquery.Found{Matches: tt.want, NamesOnly: true}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	server.Stop()
	if _, err := catalogquery.Search(t.Context(), conn, nil); err == nil {
		t.Error("a server that is gone answers")
	}
}

// TestSelect selects catalogs by name.
func TestSelect(t *testing.T) {
	t.Parallel()
	sources := []*operatorsv1alpha1.CatalogSource{fixtures.ServedCatalog("olm", "a", "x:1"), fixtures.ServedCatalog("shop", "a", "x:1"), fixtures.ServedCatalog("olm", "b", "x:1")}
	for name, want := range map[string]int{"": 3, "a": 2, "shop/a": 1, "c": 0} {
		if got := catalogquery.Select(sources, name); len(got) != want {
			t.Errorf("%q selects %d, want %d", name, len(got), want)
		}
	}
}

// TestCheckWords covers the limits of a search.
func TestCheckWords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		words []string
		want  string
	}{
		"None":    {},
		"Longest": {words: []string{strings.Repeat("a", 127), strings.Repeat("a", 128)}},
		"Long":    {words: []string{strings.Repeat("a", 300)}, want: "the words have 300 bytes together, and a search allows 256; use fewer or shorter words"},
		"Most":    {words: slices.Repeat([]string{"a"}, 16)},
		"Many":    {words: slices.Repeat([]string{"a b"}, 9), want: "there are 18 words, and a search allows 16; use fewer words"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := ""
			if err := catalogquery.CheckWords(tt.words); err != nil {
				text = err.Error()
			}
			if text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

package warnings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/apply/warnings"
)

func TestCollector(t *testing.T) {
	var c warnings.Collector
	ctx, handler := c.In(t.Context()), warnings.Handler{}
	for _, text := range []string{"a", "b", "a", ""} {
		handler.HandleWarningHeaderWithContext(ctx, 299, "", text)
	}
	handler.HandleWarningHeaderWithContext(ctx, 199, "", "of another code")
	handler.HandleWarningHeaderWithContext(t.Context(), 299, "", "of another request")
	if diff := cmp.Diff([]string{"a", "b"}, c.Texts()); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}

func TestNote(t *testing.T) {
	for name, tt := range map[string]struct {
		version string
		texts   []string
		count   int
		want    string
	}{
		"one":            {"lamp.v1", []string{"a"}, 1, `1 warning(s) generated during installation of operator "lamp.v1" (Role "dims"): a`},
		"without owner":  {"", []string{"a", "b"}, 2, `2 warning(s) generated during operator installation (Role "dims"): a, b`},
		"more than ten":  {"", strings.Split("abcdefghijkl", ""), 12, `12 warning(s) generated during operator installation (Role "dims"): a, b, c, d, e, f, g, h, i, j, and 2 more`},
		"more than told": {"", []string{"a"}, 3, `3 warning(s) generated during operator installation (Role "dims"): a, and 2 more`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := warnings.Note(tt.version, "Role", "dims", tt.texts, tt.count); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

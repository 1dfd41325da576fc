package manifests

import (
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles/internal/values"
)

func TestCheckSize(t *testing.T) {
	t.Parallel()
	most := "[" + strings.Repeat("0,", values.Max-1) + "0]"
	for name, c := range map[string]struct {
		texts []string
		want  string
	}{
		"usual":           {texts: []string{`{"kind":"ConfigMap"}`, `{"kind":"Secret"}`}},
		"most values":     {texts: []string{most, most, most, most}},
		"long":            {texts: []string{"{}", strings.Repeat(" ", maxInlineBytes+1)}, want: "is too large: manifest 2 of 2 has 16777217 bytes, at most 16777216 are allowed"},
		"many values":     {texts: []string{"[0," + most[1:]}, want: "is too large: manifest 1 of 1 may hold 400001 values, at most 400000 are allowed"},
		"many in several": {texts: []string{most, most, most, most, "[]"}, want: "is too large: the first 5 of 5 manifests may hold 1600001 values, at most 1600000 are allowed"},
	} {
		got := ""
		if err := CheckSize(c.texts...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestOperatorPullSecrets(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("s%d", i))
	}
	for name, tt := range map[string]struct {
		value string
		want  []string
		fails string
	}{
		"empty":           {},
		"one":             {value: "mirror", want: []string{"mirror"}},
		"several":         {value: " b, a.example ,,b", want: []string{"b", "a.example"}},
		"as many as fit":  {value: strings.Join(many[:16], ","), want: many[:16]},
		"too many":        {value: strings.Join(many, ","), fails: "names more than 16 Secrets"},
		"of a namespace":  {value: "mirror,other/mirror", fails: `has "other/mirror", which is no name of a Secret; write names of Secrets, separated by commas`},
		"in upper case":   {value: "Mirror", fails: `has "Mirror"`},
		"another divider": {value: "a b", fails: `has "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := api.OperatorPullSecrets(map[string]string{api.AnnotationOperatorPullSecrets: tt.value})
			if (tt.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Fatalf("error %v, want %q", err, tt.fails)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

package document

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInsert(t *testing.T) {
	cases := map[string]struct {
		reason, page, want string
		fails              bool
	}{
		"Replaces": {
			reason: "only what is between the markers of this benchmark changes",
			page:   "a\n<!-- x: begin -->\nkept\n<!-- x: end -->\n<!-- y: begin -->\nold\n<!-- y: end -->\nb\n",
			want:   "a\n<!-- x: begin -->\nkept\n<!-- x: end -->\n<!-- y: begin -->\n<!-- measured at abc: ./cmd/x ./bench/y -->\n\nnew\n<!-- y: end -->\nb\n",
		},
		"NoMarkers": {reason: "a document without markers stays as it is", page: "a\n", want: "a\n", fails: true},
		"NoEnd":     {reason: "a report without an end stays as it is", page: "<!-- y: begin -->\nold\n", want: "<!-- y: begin -->\nold\n", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(path, []byte(tc.page), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Insert(path, "y", "\nnew\n", Origin{Commit: "abc", Programs: []string{"./cmd/x", "./bench/y"}}); (err != nil) != tc.fails {
				t.Errorf("%s: Insert() = %v, want an error: %t", tc.reason, err, tc.fails)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != tc.want {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

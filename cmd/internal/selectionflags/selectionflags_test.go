package selectionflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles/selection"
)

func TestSelection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "selection.yaml")
	if err := os.WriteFile(file, []byte("packages: [{name: lamp}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lamp := &selection.Selection{Packages: []selection.Package{{Name: "lamp"}}}
	for name, test := range map[string]struct {
		reason  string
		args    []string
		want    *selection.Selection
		wantErr string
	}{
		"None": {reason: "the whole catalog"},
		"Terms": {
			reason: "what one says of a package comes together",
			args:   []string{"--package", "lamp@>=1.0.0,oil", "--channel", "wick/stable", "--heads", "--from=oil@1.0.0", "--dependencies"},
			want: &selection.Selection{Heads: true, Dependencies: true, Packages: []selection.Package{
				{Name: "lamp", Versions: ">=1.0.0"}, {Name: "oil", From: []string{"1.0.0"}}, {Name: "wick", Channels: []selection.Channel{{Name: "stable"}}},
			}},
		},
		"File":     {reason: "as it is written there", args: []string{"--selection", file}, want: lamp},
		"Inline":   {reason: "a value that begins with a brace", args: []string{"--selection", ` {"packages":[{"name":"lamp"}]}`}, want: lamp},
		"Both":     {reason: "it is not known which", args: []string{"--selection", file, "--heads"}, wantErr: "--selection replaces --package,"},
		"NoFile":   {reason: "the flag is named", args: []string{"--selection", file + ".gone"}, wantErr: "--selection: open "},
		"BadFile":  {reason: "flag and field are named", args: []string{"--selection", `{"package":"lamp"}`}, wantErr: `--selection {…}: reading the selection: json: unknown field "package"`},
		"BadTerm":  {reason: "the value is named", args: []string{"--channel", "lamp"}, wantErr: `reading the flags of the selection: "lamp" is not of the form PACKAGE/CHANNEL`},
		"OnlyAdds": {reason: "all of it has all it can have", args: []string{"--dependencies"}, wantErr: "dependencies add to what is selected"},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			f.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			got, err := f.Selection("")
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

package program

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// glow is a flag value whose type lists its values.
type glow struct{}

func (*glow) String() string   { return "dim" }
func (*glow) Set(string) error { return nil }
func (*glow) Type() string     { return "dim|bright" }

// TestReference checks that the reference has what users need to know of each command, and no value
// of this machine.
func TestReference(t *testing.T) {
	t.Setenv("HOME", "/somebody/home")
	t.Setenv("XDG_CACHE_HOME", "/somebody/home/cache")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p := Program{Name: "kubectl-lamp", Called: "kubectl lamp", Short: "Light the way", EnvPrefix: "LAMP"}
	light := &cobra.Command{
		Use: "light WICK", Short: "Light a wick", Example: "  kubectl lamp light one",
		Long: "Light a wick:\n\n  one | two\n\nExit codes:\n  0  it burns\n  2  there is\n     no wick\n  130  it is windy\n\nIt burns.", RunE: func(*cobra.Command, []string) error { return nil },
	}
	flags := light.Flags()
	flags.StringP("name", "n", host, "name, or a|b [$LAMP_NAME]")
	flags.String("dir", "/somebody/home/cache/lamp", "folder")
	flags.String("config", "/somebody/home/.lamp", "file")
	flags.Duration("time", time.Minute, "how long")
	flags.Bool("secret", false, "unseen")
	flags.Var(new(glow), "glow", "how brightly")
	if err := flags.MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	group := &cobra.Command{Use: "wicks", Short: "Wicks"}
	group.PersistentFlags().Int("count", 3, "how many")
	group.AddCommand(&cobra.Command{Use: "cut", Short: "Cut wicks", Long: "Cut wicks.\n\nExit codes: 0 when it is cut, 1 when it is\nnot, or too long; 4 when the API server cannot be reached.", RunE: func(*cobra.Command, []string) error { return nil }})
	root := p.Command(append(DescribedOn("commands-torch.md", "torch", []*cobra.Command{{
		Use: "snuff", Short: "Snuff a wick", RunE: func(*cobra.Command, []string) error { return nil },
	}}), light, group)...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"reference"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for reason, want := range map[string]string{
		"programs are called as people call them": "## kubectl lamp\n",
		"commands of another page are linked":     "- [`kubectl lamp snuff`](commands-torch.md#torch-snuff)\n",
		"what is indented stays as it is":         "```text\n  one | two\n```\n\nIt burns.",
		"examples are for the shell":              "```sh\nkubectl lamp light one\n```",
		"hosts have a name":                       "- `-n`, `--name` (`HOSTNAME`): name, or a|b\n",
		"so have caches":                          "`~/.cache/lamp`",
		"and homes":                               "`~/.lamp`",
		"defaults of times are shown":             "- `--time` (`1m0s`): how long\n",
		"so are those of other types":             "- `--glow` (`dim`): how brightly\n",
		"exit codes are listed":                   "- 0: it burns\n- 2: there is no wick\n- 130: it is windy\n",
		"so they are from sentences":              "- 0: it is cut\n- 1: it is not, or too long\n",
		"commands below others have their flags":  "### kubectl lamp wicks cut\n\n```text\nkubectl lamp wicks cut\n```\n\nCut wicks.\n\n- `--count` (`3`): how many\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q is missing in\n%s", reason, want, text)
		}
	}
	for _, unwanted := range []string{"somebody", "secret", "completion", "- 4:", "### kubectl lamp reference", "### kubectl lamp snuff"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, text)
		}
	}
}

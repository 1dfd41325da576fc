package program

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/flaggroup"
)

// TestSharedFlags checks that the reference lists a flag once that two commands have alike, and
// that the section of each of these commands names it. A paragraph of two commands is printed once, too.
func TestSharedFlags(t *testing.T) {
	var commands []*cobra.Command
	for _, name := range []string{"bright", "dim", "off"} {
		cmd := &cobra.Command{Use: name, Short: "Set it " + name, RunE: func(*cobra.Command, []string) error { return nil }}
		if name != "off" {
			cmd.Long = "Set it " + name + ".\n\nA WICK burns.\n\nIt is " + name + "."
		}
		flags := cmd.Flags()
		flags.StringP("wick", "w", "", "wick of the lamp")
		if name == "off" {
			flags.Int("count", 1, "how many")
		} else {
			flags.Bool("slow", false, "take time")
			flags.String("note", "", "note about "+name)
		}
		commands = append(commands, cmd)
	}
	root := Program{Name: "lamp", Short: "Light the way", EnvPrefix: "LAMP"}.Command(commands...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"reference"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for reason, want := range map[string]string{
		"other flags stay in the list": "\n- `--note`: note about bright\n\n[Shared flags]",
		"each command names it":        "\n\n[Shared flags](#flags-that-several-commands-have): `--slow`, `--wick`\n\n### lamp dim\n",
		"the usage has no flags":       "```text\nlamp off\n```",
		"it is listed at the end":      "\n\n## Flags that several commands have\n\n- `--slow`: take time\n- `-w`, `--wick`: wick of the lamp\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q is missing in\n%s", reason, want, text)
		}
	}
	if want := "Light the way.\n\nA WICK burns.\n\n### lamp bright\n"; !strings.Contains(text, want) {
		t.Errorf("a paragraph of two commands is not at the beginning: %q is missing in\n%s", want, text)
	}
	for part, want := range map[string]int{"A WICK burns.": 1, "It is dim.": 1, "[Shared flags]": 3, ": wick of the lamp\n": 1, ": take time\n": 1, ": how many\n": 1} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q is there %d times, want %d, in\n%s", part, got, want, text)
		}
	}
}

// TestFlagGroups checks that the reference lists a group of flags once, and that the sections of commands link it,
// also if another page lists it.
func TestFlagGroups(t *testing.T) {
	for page, want := range map[string][]string{
		"": {
			"[Shared flags](#flags-that-several-commands-have): `--slow`, [oil](#oil-flags)\n\n### lamp dim\n",
			"\n\n## Flags that several commands have\n\n- `--slow`: take time\n\n### Oil flags\n\n- `--fill`: fill it\n- `--oil`: kind of oil\n",
		},
		"commands-stove.md": {
			"[Shared flags](#flags-that-several-commands-have): `--slow`, [oil](commands-stove.md#oil-flags)\n\n### lamp dim\n",
			"\n\n## Flags that several commands have\n\n- `--slow`: take time\n",
		},
	} {
		var commands []*cobra.Command
		for _, name := range []string{"bright", "dim"} {
			cmd := &cobra.Command{Use: name, Short: "Set it " + name, RunE: func(*cobra.Command, []string) error { return nil }}
			cmd.Flags().Bool("slow", false, "take time")
			flaggroup.Add(cmd.Flags(), "oil flags", func(flags *pflag.FlagSet) {
				flags.String("oil", "", "kind of oil")
				flags.Bool("fill", false, "fill it")
			})
			commands = append(commands, cmd)
		}
		root := Program{Name: "lamp", Short: "Light the way", EnvPrefix: "LAMP", FlagGroupsOn: map[string]string{"oil flags": page}}.Command(commands...)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"reference"})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("groups on page %q: %q is missing in\n%s", page, part, out.String())
			}
		}
		if listed := strings.Contains(out.String(), ": kind of oil\n"); listed != (page == "") {
			t.Errorf("groups on page %q: the page lists the group: %t", page, listed)
		}
	}
}

// TestFlagGroupOfOneCommand checks that the reference links a group of flags on another page even for one command.
func TestFlagGroupOfOneCommand(t *testing.T) {
	t.Parallel()
	p := &page{groupsOn: map[string]string{"oil flags": "commands-stove.md"}}
	row := flagRow{name: "oil", text: "a", group: "oil flags"}
	own, names := p.split([]flagRow{row}, p.sharedRows([]section{{rows: []flagRow{row}}}))
	if len(own) > 0 || !slices.Equal(names, []string{"[oil](commands-stove.md#oil-flags)"}) {
		t.Errorf("got rows %v and names %q, want only the link of the group", own, names)
	}
}

func TestSharedRows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		// texts are the rows of one flag, each of another command.
		texts []string
		want  string
	}{
		"One":       {reason: "one command is too few", texts: []string{"a"}},
		"Two":       {reason: "two commands are enough", texts: []string{"a", "a"}, want: "a"},
		"Different": {reason: "a row with another meaning is not the same", texts: []string{"a", "b"}},
		"Most":      {reason: "most commands decide", texts: []string{"a", "a", "a", "b", "b", "b", "b"}, want: "b"},
		"Equal":     {reason: "the first of equals decides", texts: []string{"a", "b", "a", "b", "a", "b"}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sections []section
			for _, text := range tt.texts {
				sections = append(sections, section{rows: []flagRow{{name: "wick", text: text}}})
			}
			if got := (&page{}).sharedRows(sections)["wick"].text; got != tt.want {
				t.Errorf("%s: the row is %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

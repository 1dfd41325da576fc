package program

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// exitAnnotation begins the annotations of a command that say how it may end.
const exitAnnotation = "exit code "

// Exits notes in a command what the codes mean with which it may end, for the
// reference. A command that notes nothing ends with 0 when its work is done and with
// 1 when it failed.
func Exits(cmd *cobra.Command, codes map[int]string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	for code, meaning := range codes {
		cmd.Annotations[exitAnnotation+strconv.Itoa(code)] = meaning
	}
}

// reference is the hidden command from whose output docs/reference/commands.md is
// made.
func (p Program) reference() *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print all commands and flags as Markdown",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			page := &page{out: cmd.OutOrStdout(), prefix: p.EnvPrefix, machine: thisMachine()}
			page.program(cmd.Root())
			if page.err != nil {
				return fmt.Errorf("printing the reference: %w", page.err)
			}
			return nil
		},
	}
}

// page writes the reference of a program.
type page struct {
	out     io.Writer
	prefix  string
	machine []replacement
	err     error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// program writes a section for the program and one for each of its commands.
func (p *page) program(root *cobra.Command) {
	p.printf("## %s\n\n%s.\n\n", root.DisplayName(), root.Short)
	for _, cmd := range runnable(root) {
		p.printf("- [`%s`](#%s): %s\n", cmd.CommandPath(), anchor(cmd), lowerFirst(cmd.Short))
	}
	for _, cmd := range runnable(root) {
		p.command(cmd)
	}
}

func (p *page) command(cmd *cobra.Command) {
	p.printf("\n### %s\n\n```text\n%s\n```\n\n%s\n", cmd.CommandPath(), cmd.UseLine(), description(cmd))
	if cmd.Example != "" {
		p.printf("\n```sh\n%s\n```\n", dedent(cmd.Example))
	}
	if rows := p.flags(cmd); len(rows) > 0 {
		p.printf("\n| Flag | Value | Default | Variable | Meaning |\n|---|---|---|---|---|\n%s", strings.Join(rows, ""))
	}
	p.printf("\n| Exit code | Meaning |\n|---|---|\n")
	codes := exits(cmd)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		p.printf("| %d | %s |\n", code, cell(codes[code]))
	}
}

// flags gives a row of the table for each flag that is not hidden.
func (p *page) flags(cmd *cobra.Command) []string {
	var rows []string
	cmd.InheritedFlags() // adds to Flags what commands above give to all below
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		variable := flagenv.Name(p.prefix, f.Name)
		usage := strings.TrimSuffix(f.Usage, " [$"+variable+"]")
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %#q | %s |\n",
			name, unit(f.Value.Type()), p.standard(f), variable, cell(usage)))
	})
	return rows
}

// standard is the default of a flag, without what only holds on this machine.
func (p *page) standard(f *pflag.Flag) string {
	value := f.DefValue
	for _, r := range p.machine {
		if value == r.found || r.within && strings.HasPrefix(value, r.found) {
			value = r.name + strings.TrimPrefix(value, r.found)
			break
		}
	}
	if value == "" || value == "[]" {
		return "none"
	}
	return "`" + cell(value) + "`"
}

// replacement is a name for what differs between machines.
type replacement struct {
	found, name string
	// within says that what is below the path differs with it.
	within bool
}

// thisMachine lists what this machine lends to defaults, the longest paths first.
func thisMachine() []replacement {
	var found []replacement
	add := func(value string, err error, name string, within bool) {
		if err == nil && value != "" {
			found = append(found, replacement{found: value, name: name, within: within})
		}
	}
	host, err := os.Hostname()
	add(host, err, "HOSTNAME", false)
	cache, err := os.UserCacheDir()
	add(cache, err, "~/.cache", true)
	home, err := os.UserHomeDir()
	add(home, err, "~", true)
	add(os.TempDir(), nil, "$TMPDIR", true)
	slices.SortStableFunc(found, func(a, b replacement) int { return cmp.Compare(len(b.found), len(a.found)) })
	return found
}

// runnable are the commands below one that have none below themselves, in the order of
// their names.
func runnable(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, cmd := range root.Commands() {
		switch below := runnable(cmd); {
		case cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion":
		case len(below) == 0:
			all = append(all, cmd)
		default:
			all = append(all, below...)
		}
	}
	return all
}

// unit says how the value of a flag is written.
func unit(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "duration":
		return "time, as `1m30s`"
	case "stringSlice", "stringArray":
		return "list"
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		return "whole number"
	case "float64", "float32":
		return "number"
	case "string":
		return "text"
	default:
		return kind
	}
}

// exits are the codes with which a command may end.
func exits(cmd *cobra.Command) map[int]string {
	codes := map[int]string{}
	for key, meaning := range cmd.Annotations {
		text, ok := strings.CutPrefix(key, exitAnnotation)
		if code, err := strconv.Atoi(text); ok && err == nil {
			codes[code] = meaning
		}
	}
	if len(codes) == 0 {
		codes[0], codes[1] = "done", "failed; stderr says why"
	}
	return codes
}

// description is what a command says of itself.
func description(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short + "."
	}
	return strings.TrimSpace(asMarkdown(cmd.Long))
}

// asMarkdown fences what a help text sets off by spaces.
func asMarkdown(text string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != fenced && line != "" {
			fenced = indented
			b.WriteString(fence(indented))
		}
		b.WriteString(line + "\n")
	}
	if fenced {
		b.WriteString(fence(false))
	}
	return b.String()
}

// fence begins or ends what stands as it is.
func fence(begin bool) string {
	if begin {
		return "```text\n"
	}
	return "```\n"
}

// anchor is what code hosts make of the heading of a command.
func anchor(cmd *cobra.Command) string {
	return strings.ReplaceAll(strings.ToLower(cmd.CommandPath()), " ", "-")
}

// cell makes a text fit for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(strings.TrimSpace(text))
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// dedent takes away the spaces before each line.
func dedent(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return strings.Join(lines, "\n")
}

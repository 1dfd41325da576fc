package program

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/flaggroup"
)

// reference returns the hidden command whose output is a page docs/reference/commands-*.md.
func (p Program) reference() *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print all commands and flags as Markdown",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			page := &page{out: cmd.OutOrStdout(), prefix: p.EnvPrefix, groupsOn: p.FlagGroupsOn, machine: thisMachine()}
			page.program(cmd.Root())
			if page.err != nil {
				return fmt.Errorf("printing the reference: %w", page.err)
			}
			return nil
		},
	}
}

// describedOn is the annotation of a command with the link to its description in the reference.
const describedOn = "chandlery-described-on"

// DescribedOn makes the reference of a program link to the same commands in the reference of another program,
// which users call by a name. page is the file name of that reference.
func DescribedOn(page, called string, commands []*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		described(page, called, cmd)
	}
	return commands
}

// described adds the link of a command and of its sub-commands.
func described(page, called string, cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	called += " " + cmd.Name()
	cmd.Annotations[describedOn] = page + "#" + anchor(called)
	for _, below := range cmd.Commands() {
		described(page, called, below)
	}
}

// page writes the reference of a program.
type page struct {
	out    io.Writer
	prefix string
	// groupsOn maps a group of flags to the file name of the page that lists it; this page lists others.
	groupsOn map[string]string
	machine  []replacement
	err      error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// program writes a section for the program, with the paragraphs that several commands have, one for each command,
// and one for the flags that several commands have. It only links to commands that the reference of another program describes.
func (p *page) program(root *cobra.Command) {
	p.printf("## %s\n\n%s.\n", root.DisplayName(), root.Short)
	var sections []section
	before := "\n" // an empty line before the list of links
	for _, cmd := range runnable(root) {
		if link := cmd.Annotations[describedOn]; link != "" {
			p.printf("%s- [`%s`](%s)\n", before, cmd.CommandPath(), link)
			before = ""
			continue
		}
		use := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		sections = append(sections, section{cmd: cmd, use: use, rows: p.flags(cmd)})
	}
	shared, common := p.sharedRows(sections), sharedParagraphs(sections)
	for _, paragraph := range common {
		p.printf("\n%s\n", paragraph)
	}
	for _, s := range sections {
		p.command(s, shared, common)
	}
	p.sharedFlags(shared)
}

// section is the content of a command's section, besides its texts.
type section struct {
	cmd *cobra.Command
	// use is the usage line.
	use string
	// rows are the rows of the flags.
	rows []flagRow
}

// command writes the section of a command, without the paragraphs that several commands have. It has lists of the flags that are not shared, of the names
// of the shared ones, and of exit codes.
func (p *page) command(s section, shared map[string]flagRow, common []string) {
	cmd := s.cmd
	text := strings.Join(slices.DeleteFunc(paragraphs(cmd), func(text string) bool { return slices.Contains(common, text) }), "\n\n")
	p.printf("\n### %s\n\n```text\n%s\n```\n\n%s\n", cmd.CommandPath(), s.use, text)
	if cmd.Example != "" {
		p.printf("\n```sh\n%s\n```\n", dedent(cmd.Example))
	}
	own, names := p.split(s.rows, shared)
	p.flagList(own)
	if len(names) > 0 {
		p.printf("\n[Shared flags](#%s): %s\n", sharedAnchor, strings.Join(names, ", "))
	}
	codes := exits(cmd)
	if len(codes) > 0 {
		p.printf("\nExit codes:\n\n")
	}
	for _, code := range slices.SortedFunc(maps.Keys(codes), byNumber) {
		p.printf("- %s: %s\n", code, codes[code])
	}
}

// flags returns an item for each flag that is not hidden, sorted by name.
func (p *page) flags(cmd *cobra.Command) []flagRow {
	var rows []flagRow
	cmd.InheritedFlags() // adds the persistent flags of parent commands to Flags
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Value.Type() == "bool" && (f.Name == "help" || f.Name == "version") {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		variable := flagenv.Name(p.prefix, f.Name)
		usage := strings.TrimSuffix(f.Usage, " [$"+variable+"]")
		text := fmt.Sprintf("- %s%s: %s\n", name, p.standard(f), usage)
		rows = append(rows, flagRow{name: f.Name, text: text, group: flaggroup.Of(f)})
	})
	return rows
}

// standard returns the default of a flag in parentheses; empty for none and false. It replaces values that
// depend on this machine.
func (p *page) standard(f *pflag.Flag) string {
	value := f.DefValue
	for _, r := range p.machine {
		if value == r.found || r.within && strings.HasPrefix(value, r.found) {
			value = r.name + strings.TrimPrefix(value, r.found)
			break
		}
	}
	if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
		value = value[1 : len(value)-1] // a list
	}
	if value == "" || value == "false" {
		return ""
	}
	return " (`" + value + "`)"
}

// replacement is a name for a value that differs between machines.
type replacement struct {
	found, name string
	// within is set if paths below the value are replaced as well.
	within bool
}

// thisMachine returns the values of this machine that may occur in defaults, the longest paths first.
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
	// In a pod, the default namespace is the pod's own. Replace it by the default elsewhere.
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	add(strings.TrimSpace(string(namespace)), err, "default", false)
	slices.SortStableFunc(found, func(a, b replacement) int { return cmp.Compare(len(b.found), len(a.found)) })
	return found
}

// runnable returns the commands below a command that have no sub-commands, sorted by name.
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

// exitCodes begins the paragraph of a help text about exit codes.
const exitCodes = "Exit codes:"

// code matches the beginning of an exit code's description: on its own line or after the previous one.
var code = regexp.MustCompile(`(?:^|[,;.]?\s)(\d+)\s+`)

// exits returns the exit codes that the help text of a command lists, without those of [common].
func exits(cmd *cobra.Command) map[string]string {
	_, after, ok := strings.Cut(cmd.Long, exitCodes)
	if !ok {
		return nil
	}
	paragraph, _, _ := strings.Cut(after, "\n\n")
	codes := map[string]string{}
	found := code.FindAllStringSubmatchIndex(paragraph, -1)
	for i, at := range found {
		end := len(paragraph)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		meaning := strings.Join(strings.Fields(paragraph[at[1]:end]), " ")
		meaning = strings.TrimSuffix(strings.TrimPrefix(meaning, "when "), ".")
		if number := paragraph[at[2]:at[3]]; !slices.Contains(common[number], meaning) {
			codes[number] = meaning
		}
	}
	return codes
}

// byNumber compares two exit codes.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// common holds the meanings of exit codes that docs/reference/commands.md states for all commands.
var common = map[string][]string{
	"0": {"the command succeeded"}, "1": {"the command failed", "the command failed, or you did not confirm"},
	"3": {"a permission is missing"}, "4": {"the API server cannot be reached"},
	"130": {"you interrupted the command"},
}

// paragraphs returns the paragraphs of a command's description.
func paragraphs(cmd *cobra.Command) []string { return strings.Split(description(cmd), "\n\n") }

// description returns the description of a command without its exit codes.
func description(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short + "."
	}
	before, after, _ := strings.Cut(cmd.Long, exitCodes)
	_, after, _ = strings.Cut(after, "\n\n")
	return asMarkdown(strings.TrimSpace(before) + "\n\n" + after)
}

// asMarkdown puts indented paragraphs of a help text into code fences.
func asMarkdown(text string) string {
	var lines []string
	fenced := false
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		indented := strings.HasPrefix(paragraph, "  ")
		switch {
		case indented && !fenced:
			paragraph = "```text\n" + paragraph
		case !indented && fenced:
			lines[len(lines)-1] += "\n```"
		}
		fenced = indented
		lines = append(lines, paragraph)
	}
	if fenced {
		lines[len(lines)-1] += "\n```"
	}
	return strings.Join(lines, "\n\n")
}

// anchor returns the anchor that code hosts create for the heading of a command with a path.
func anchor(path string) string { return strings.ReplaceAll(strings.ToLower(path), " ", "-") }

// dedent removes the spaces before each line.
func dedent(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return strings.Join(lines, "\n")
}

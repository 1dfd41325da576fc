package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMakeTargets checks that every named target exists.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(text), -1) {
		targets[match[1]] = true
	}
	named := regexp.MustCompile(`(?:^|[\s;&])make ((?:[a-z][a-z0-9-]*\s*)+)`)
	for _, page := range pages(t) {
		for _, code := range page.allCode() {
			for _, match := range named.FindAllStringSubmatch(code.Text, -1) {
				for target := range strings.FieldsSeq(match[1]) {
					if !targets[target] {
						t.Errorf("%s:%d: the Makefile has no target %s", page.Path, code.Line, target)
					}
				}
			}
		}
	}
}

// allCode returns the spans and lines of code of a page, without comments.
func (p *Page) allCode() []Span {
	all := slices.Clone(p.Code)
	for _, fence := range p.Fences {
		for _, line := range fence.Content {
			line.Text, _, _ = strings.Cut(line.Text, " #")
			all = append(all, line)
		}
	}
	return all
}

// TestCommandLines checks the command and the flags of every line that runs one of our programs.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	all := pages(t)
	commands := documented(all)
	if len(commands["registry serve"]) < 20 || len(commands["supervisor run"]) < 20 {
		t.Fatalf("the reference has the commands %v", commands)
	}
	checked := 0
	for _, page := range all {
		for _, line := range commandLines(&page) {
			if why := commands.misuse(line.Text); why != "" {
				t.Errorf("%s:%d: %s: %s", page.Path, line.Line, line.Text, why)
			}
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("only %d command lines were found; is the pattern wrong?", checked)
	}
}

// commandSet maps commands to their flags.
type commandSet map[string][]string

// documented returns the commands on the generated pages.
func documented(all map[string]Page) commandSet {
	commands := commandSet{}
	for name, page := range all {
		if !strings.HasPrefix(name, "docs/reference/commands-") {
			continue
		}
		for _, fence := range page.Fences {
			usage := fence.Content[0].Text
			words := strings.Fields(usage)
			if fence.Language != "text" || len(words) < 2 || !page.anchors[Anchor(commandOf(words))] {
				continue
			}
			line := fence.Content[0].Line
			commands[commandOf(words)] = slices.Concat([]string{"--help", "-h"}, slices.Concat(page.listedFlags(line)...), sharedAfter(all, &page, line))
		}
	}
	for name, page := range all {
		if strings.HasPrefix(name, "docs/reference/commands-") {
			commands.link(&page)
		}
	}
	return commands
}

// link adds the commands that a page only names, with a link to the page that describes them.
func (c commandSet) link(page *Page) {
	for _, link := range page.Links {
		_, target, ok := strings.Cut(link.Text, "#")
		if !ok || !strings.HasPrefix(link.Text, "commands-") {
			continue
		}
		for _, code := range page.Code {
			for described, flags := range c {
				if code.Line == link.Line && Anchor(described) == target {
					c[code.Text] = flags
				}
			}
		}
	}
}

// commandOf returns the words of a line before the first argument.
func commandOf(words []string) string {
	end := slices.IndexFunc(words, func(word string) bool { return !plainWord.MatchString(word) })
	if end < 0 {
		end = len(words)
	}
	return strings.Join(words[:end], " ")
}

var plainWord = regexp.MustCompile(`^[a-z][a-z-]*$`)

// sectionEnd returns the line of the next heading below a line, or the line after the page.
func (p *Page) sectionEnd(line int) int {
	for _, heading := range p.Headings {
		if heading.Line > line {
			return heading.Line
		}
	}
	return p.Lines + 1
}

// listedFlags returns the forms of each flag in the list between a line and the next heading.
func (p *Page) listedFlags(line int) [][]string {
	var flags [][]string
	end, last := p.sectionEnd(line), 0
	for _, code := range p.Code {
		links := slices.ContainsFunc(p.Links, func(link Span) bool { return link.Line == code.Line })
		if code.Line <= line || code.Line >= end || links || !strings.HasPrefix(code.Text, "-") {
			continue
		}
		if code.Line != last {
			flags, last = append(flags, nil), code.Line
		}
		flags[len(flags)-1] = append(flags[len(flags)-1], code.Text)
	}
	return flags
}

// sharedSection is the heading of the flags that several commands of a program share.
const sharedSection = "Flags that several commands have"

// sharedAfter returns the flags in the line of shared flags below a line, unless another command
// begins before it. It includes the flags of the groups that the line links, on any page. Each flag is returned in all its forms.
func sharedAfter(all map[string]Page, page *Page, line int) []string {
	end := page.sectionEnd(line)
	link := slices.IndexFunc(page.Links, func(l Span) bool {
		return l.Text == "#"+Anchor(sharedSection) && l.Line > line && l.Line < end
	})
	if link < 0 {
		return nil
	}
	var flags []string
	for _, code := range page.Code {
		if code.Line == page.Links[link].Line {
			flags = append(flags, formsOf(page, code.Text)...)
		}
	}
	for _, group := range page.Links[link+1:] {
		if group.Line == page.Links[link].Line {
			flags = append(flags, groupOf(all, page, group.Text)...)
		}
	}
	return flags
}

// groupOf returns the flags below the heading that a link of a page names.
func groupOf(all map[string]Page, page *Page, link string) []string {
	name, anchor, _ := strings.Cut(link, "#")
	on := *page
	if name != "" {
		on = all[path.Join(path.Dir(page.Path), name)]
	}
	for _, heading := range on.Headings {
		if Anchor(heading.Text) == anchor {
			return slices.Concat(on.listedFlags(heading.Line)...)
		}
	}
	return nil
}

// formsOf returns the long and the short form of a shared flag; nothing for an unknown one.
func formsOf(page *Page, flag string) []string {
	for _, heading := range page.Headings {
		if heading.Text != sharedSection {
			continue
		}
		for _, forms := range page.listedFlags(heading.Line) {
			if slices.Contains(forms, flag) {
				return forms
			}
		}
	}
	return nil
}

func TestDocumented(t *testing.T) {
	t.Parallel()
	page := Parse("docs/reference/commands-lamp.md", `## lamp

### lamp light

`+"```text\nlamp light WICK\n```"+`

- `+"`--slow` (`1s`)"+`: take time

[Shared flags](#flags-that-several-commands-have): `+"`--quiet`"+`

Exit codes:

- 0: done

### lamp cut

`+"```text\nlamp cut\n```"+`

[Shared flags](#flags-that-several-commands-have): `+"`--quiet`, `--wick`"+`, [oil](#oil-flags), [air](commands-stove.md#air-flags)

### lamp snuff

`+"```text\nlamp snuff\n```"+`

### lamp version

`+"```text\nlamp version\n```"+`

## Flags that several commands have

- `+"`-q`, `--quiet`"+`: no progress
- `+"`--wick`"+`: wick

### Oil flags

- `+"`--oil` (`1`)"+`: oil
`)
	stove := Parse("docs/reference/commands-stove.md", "## Flags that several commands have\n\n### Air flags\n\n- `-a`, `--air`: air\n")
	got := documented(map[string]Page{page.Path: page, stove.Path: stove})
	want := commandSet{
		"lamp light":   {"--help", "-h", "--slow", "-q", "--quiet"},
		"lamp cut":     {"--help", "-h", "-q", "--quiet", "--wick", "--oil", "-a", "--air"},
		"lamp snuff":   {"--help", "-h"},
		"lamp version": {"--help", "-h"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

var (
	begin     = regexp.MustCompile(`(?:^|[|&;(]\s*|\$\s+|=\S*\s+)(?:\S*/)?(registry|catalog|supervisor|kubectl chandlery|kubectl-chandlery) ([a-z].*)$`)
	separator = regexp.MustCompile(`\s(?:\||&&|>|<|&|;)(?:\s|$)|\s#`)
)

// commandLines returns the lines and spans of code that run one of our programs.
func commandLines(page *Page) []Span {
	var all []Span
	for _, code := range page.shell() {
		for part := range strings.SplitSeq(code.Text, " | ") {
			match := begin.FindStringSubmatch(strings.TrimSpace(part))
			if match == nil {
				continue
			}
			rest := match[2]
			if end := separator.FindStringIndex(rest); end != nil {
				rest = rest[:end[0]]
			}
			all = append(all, Span{strings.Replace(match[1], "kubectl-", "kubectl ", 1) + " " + rest, code.Line})
		}
	}
	return all
}

// shell returns the spans of code and the lines of shell, with continuation lines joined.
func (p *Page) shell() []Span {
	all := slices.Clone(p.Code)
	for _, fence := range p.Fences {
		if fence.Language != "sh" && fence.Language != "console" {
			continue
		}
		going := ""
		for _, line := range fence.Content {
			text, more := strings.CutSuffix(going+line.Text, `\`)
			if going = ""; more {
				going = text
				continue
			}
			all = append(all, Span{text, line.Line})
		}
	}
	return all
}

// misuse returns the error in a line; empty for none.
func (c commandSet) misuse(line string) string {
	words := strings.Fields(line)
	if slices.Contains(words, "completion") { // every program has it, with a sub-command for each shell
		return ""
	}
	name, flags := "", []string(nil)
	for n := len(words); n > 1; n-- {
		if known, ok := c[strings.Join(words[:n], " ")]; ok {
			name, flags = strings.Join(words[:n], " "), known
			break
		}
	}
	if name == "" {
		for known := range c {
			if strings.HasPrefix(known, line+" ") { // a command with sub-commands
				return ""
			}
		}
		return "there is no such command"
	}
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if len(flag) > 1 && flag[0] == '-' && !slices.Contains(flags, flag) {
			return name + " has no flag " + flag
		}
	}
	return ""
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	commands := commandSet{"registry serve": {"--port", "-p"}, "registry list bundles": nil}
	for name, tc := range map[string]struct {
		reason string
		line   string
		wrong  bool
	}{
		"Fine":      {reason: "a command with arguments", line: "registry serve ./catalog"},
		"Flag":      {reason: "a flag with a value", line: "registry serve ./catalog --port=1"},
		"Short":     {reason: "a short flag", line: "registry serve ./catalog -p 1"},
		"NoFlag":    {reason: "a flag that is not there", line: "registry serve ./catalog --prot 1", wrong: true},
		"NoCommand": {reason: "a command that is not there", line: "registry server ./catalog", wrong: true},
		"Above":     {reason: "a command that has others below it", line: "registry list"},
		"Below":     {reason: "one of these", line: "registry list bundles ./catalog"},
		"NotBelow":  {reason: "none of these", line: "registry list fruit ./catalog", wrong: true},
		"Stdin":     {reason: "a dash is no flag", line: "registry serve -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := commands.misuse(tc.line); (got != "") != tc.wrong {
				t.Errorf("%s: %s: %q", tc.reason, tc.line, got)
			}
		})
	}
}

// TestFlags checks that every flag that occurs alone exists in our programs.
func TestFlags(t *testing.T) {
	t.Parallel()
	all := pages(t)
	known := slices.Clone(foreignFlags)
	for _, flags := range documented(all) {
		known = append(known, flags...)
	}
	for _, page := range all {
		for _, code := range page.Code {
			flag, _, _ := strings.Cut(strings.Fields(code.Text + " x")[0], "=")
			if strings.HasPrefix(flag, "--") && strings.ToLower(flag) == flag && !slices.Contains(known, flag) {
				t.Errorf("%s:%d: none of our commands has the flag %s", page.Path, code.Line, flag)
			}
		}
	}
}

// foreignFlags are flags of other programs that occur alone.
var foreignFlags = []string{"--set"}

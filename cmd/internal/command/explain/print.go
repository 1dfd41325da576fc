package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// saysLeast is the minimum number of characters printed of an object's own message. The wide form
// prints all of it.
const saysLeast = 24

// generic is the name of the program in the commands of findings.
const generic = "kubectl chandlery "

func (o *options) print(cmd *cobra.Command, a *answer) error {
	out := cmd.OutOrStdout()
	if o.output.ForMachines() {
		return o.output.Document(out, a) //nolint:wrapcheck // the error states what failed
	}
	p := printer{paint: o.output.Paint(out), wide: o.output.Form == console.Wide, narrow: terminal.IsTerminal(out), program: o.program}
	p.answer(a)
	if _, err := io.WriteString(out, p.text.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// Text returns the explanations of all Subscriptions with problems, in the wide form of the command.
func Text(o *explain.ClusterState) string {
	a := answer{everywhere: true}
	for _, subject := range append(terminatingNamespaces(o), subscriptionsOf(o, "", true)...) {
		a.Explanations = append(a.Explanations, explain.Object(o, subject))
	}
	a.recordUnlisted(o)
	p := printer{wide: true, program: strings.TrimSpace(generic)}
	p.answer(&a)
	return p.text.String()
}

// printer writes the human-readable form.
type printer struct {
	text  strings.Builder
	paint console.Paint
	wide  bool
	// narrow wraps the cause as well. If the output is not a terminal, the cause is the first line
	// and is not wrapped, so programs can search it.
	narrow bool
	// program is how the user calls the program.
	program string
}

func (p *printer) linef(format string, args ...any) {
	fmt.Fprintf(&p.text, format+"\n", args...)
}

// answer writes a whole answer.
func (p *printer) answer(a *answer) {
	for i, e := range a.notable() {
		if i > 0 {
			p.linef("")
		}
		p.explanation(e)
	}
	if rest := a.remainder(); rest != "" {
		if p.text.Len() > 0 {
			p.linef("")
		}
		p.linef("%s", rest)
	}
	p.unreadable(a.hidden())
}

// hidden returns what could not be read and may matter, each once.
func (a *answer) hidden() []explain.Unreadable {
	var hidden []explain.Unreadable
	add := func(u explain.Unreadable) {
		same := func(other explain.Unreadable) bool {
			return other.Resource == u.Resource && other.Namespace == u.Namespace
		}
		if i := slices.IndexFunc(hidden, same); i < 0 {
			hidden = append(hidden, u)
		} else {
			hidden[i].Minor = hidden[i].Minor && u.Minor
		}
	}
	for _, u := range a.Unreadable {
		if u.Reason != explain.UnreadableNotInstalled {
			add(u)
		}
	}
	for _, e := range a.Explanations {
		for _, u := range e.Unreadable {
			add(u)
		}
	}
	return hidden
}

// explanation writes an explanation. The cause must come first.
func (p *printer) explanation(e explain.Explanation) {
	subject, state := e.Subject.String(), strings.ToLower(string(e.State))
	line := p.sentence("", "  ", subject+": "+state+": "+e.Summary)
	line = strings.Replace(line, subject+": "+state, p.paint.Bold(subject)+": "+p.state(e.State), 1)
	p.text.WriteString(line)
	for i := range e.Findings {
		f := &e.Findings[i]
		if i > 0 {
			p.linef("")
			word := strings.ToLower(string(f.Severity))
			p.text.WriteString(strings.Replace(p.sentence("", "  ", "Also: "+word+": "+f.Cause), word, p.severity(f.Severity), 1))
		}
		p.chain(f)
		p.remedy(f)
	}
}

func (p *printer) state(state explain.State) string {
	word := strings.ToLower(string(state))
	switch state {
	case explain.Healthy:
		return p.paint.Good(word)
	case explain.Broken, explain.Missing:
		return p.paint.Bad(word)
	default:
		return p.paint.Waiting(word)
	}
}

func (p *printer) severity(severity explain.Severity) string {
	word := strings.ToLower(string(severity))
	switch severity {
	case explain.Wrong:
		return p.paint.Bad(word)
	case explain.Waiting:
		return p.paint.Waiting(word)
	default:
		return p.paint.Faint(word)
	}
}

// chain draws the path from the subject to the cause.
func (p *printer) chain(f *explain.Finding) {
	if len(f.Chain) == 0 {
		return
	}
	p.linef("")
	for i, link := range f.Chain {
		arrow := "  "
		if i > 0 {
			arrow = strings.Repeat("   ", i-1) + "  └> "
		}
		text := link.Object.String()
		if link.State != "" {
			text += "  " + link.State
		}
		if link.Message != "" {
			room := console.Width - utf8.RuneCountInString(arrow+text) - 2
			text += p.paint.Faint("  " + p.clip(link.Message, max(room, saysLeast)))
		}
		p.linef("%s%s", arrow, text)
	}
}

// clip shortens an object's own message and makes it one line.
func (p *printer) clip(text string, room int) string {
	text = bundles.OneLine(text)
	if p.wide || utf8.RuneCountInString(text) <= room {
		return text
	}
	return string([]rune(text)[:room-1]) + "…"
}

// sentence returns a text, wrapped if the output is a terminal. A line end in text from the cluster
// begins no line.
func (p *printer) sentence(first, rest, text string) string {
	if !p.narrow || p.wide {
		return first + bundles.OneLine(text) + "\n"
	}
	return console.Wrap(first, rest, text)
}

func (p *printer) remedy(f *explain.Finding) {
	if p.wide {
		p.linef("")
		p.linef("  code %s", f.Code)
	}
	if f.Remedy == "" || f.Code == explain.CodeInProgress {
		return
	}
	p.linef("")
	const todo = "To do:"
	advice := todo + " " + f.Remedy
	if p.wide {
		p.linef("  %s", strings.Replace(bundles.OneLine(advice), todo, p.paint.Bold(todo), 1))
	} else {
		p.text.WriteString(strings.Replace(console.Wrap("  ", strings.Repeat(" ", len("  To do: ")), advice), todo, p.paint.Bold(todo), 1))
	}
	for _, command := range f.Commands {
		if rest, own := strings.CutPrefix(command, generic); own {
			command = p.program + " " + rest
		}
		for line := range strings.SplitSeq(command, "\n") {
			p.linef("    %s", line)
		}
	}
}

// minor lists what could not be read and is not needed.
func (p *printer) minor(hidden []explain.Unreadable) {
	var names []string
	for _, u := range hidden {
		if u.Minor && !slices.Contains(names, u.Resource) {
			names = append(names, u.Resource)
		}
	}
	if len(names) > 0 {
		p.linef("")
		p.linef("%s", p.paint.Faint("You lack permission to read "+strings.Join(names, ", ")+"; this relies on statuses."))
	}
}

// unreadable lists what could not be read, and the missing permissions.
func (p *printer) unreadable(hidden []explain.Unreadable) {
	p.minor(hidden)
	hidden = slices.DeleteFunc(slices.Clone(hidden), func(u explain.Unreadable) bool { return u.Minor })
	if len(hidden) == 0 {
		return
	}
	p.linef("")
	p.linef("%s", p.paint.Bold("Could not be read, and may contain a cause:"))
	for _, u := range hidden {
		where, role := "", "clusterrole"
		if u.Namespace != "" {
			where, role = " in namespace "+u.Namespace, "-n "+u.Namespace+" create role"
		}
		if u.Reason != explain.UnreadableForbidden {
			p.linef("  %s%s: %s", u.Resource, where, bundles.OneLine(u.Message))
			continue
		}
		if role == "clusterrole" {
			role = "create clusterrole"
		}
		rule := u.Rule()
		p.linef("  %s%s: you lack permission to read them; this role grants it when it is bound to you:", u.Resource, where)
		p.linef("    kubectl %s read-%s --verb=%s --resource=%s", role, rule.Resources[0], strings.Join(rule.Verbs, ","), u.Resource)
	}
}

package takeover

import (
	"fmt"
	"io"
	"strings"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/migration"
)

// show prints a plan.
func (o *options) show(out io.Writer, p *migration.Plan, d direction) error {
	if o.output.ForMachines() {
		return o.output.Document(out, p) //nolint:wrapcheck // says what it was about
	}
	paint := o.output.Paint(out)
	var b strings.Builder
	switch p.Verdict {
	case migration.Nothing:
		b.WriteString(console.Wrap("", "", d.nothing))
	case migration.Done:
		b.WriteString(paint.Good(d.done) + "\n")
	case migration.Blocked:
		section(&b, paint.Bad("Obstacles:"), p.Blockers)
	case migration.Possible:
	}
	section(&b, paint.Bold("The other lifecycle manager:"), p.Managers)
	steps := make([]string, 0, len(p.Steps))
	for _, step := range p.Steps {
		steps = append(steps, step.Text)
	}
	section(&b, paint.Bold("Steps, in this order:"), steps)
	if o.output.Form == console.Wide {
		operations(&b, paint.Bold("Objects:"), p.Operations)
	}
	if p.Verdict == migration.Possible || p.Verdict == migration.Blocked {
		section(&b, paint.Bold("Managed by the supervisors, without changes:"), p.Adopted)
		section(&b, paint.Bold("Changes:"), p.Changes)
		section(&b, paint.Bold("Left unchanged:"), p.Left)
	}
	section(&b, paint.Waiting("Notes:"), p.Risks)
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// operations prints a line for each object that is restored.
func operations(b *strings.Builder, heading string, all []migration.Operation) {
	if len(all) == 0 {
		return
	}
	var table console.Table
	for _, op := range all {
		table.Add(strings.ToLower(string(op.Verb)), op.Kind, strings.TrimPrefix(op.Namespace+"/"+op.Name, "/"))
	}
	b.WriteString(heading + "\n" + table.Text("  ", 0))
}

// section prints a heading with lines below it, if there are any.
func section(b *strings.Builder, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString(heading + "\n")
	for _, line := range lines {
		b.WriteString(console.Wrap("  - ", "    ", capital(line)))
	}
}

// capital capitalizes the first letter.
func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

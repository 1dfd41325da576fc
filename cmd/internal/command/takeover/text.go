package takeover

import (
	"fmt"
	"io"
	"maps"
	"slices"
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
	section(&b, paint.Bold("Steps, in this order; Deployments are scaled at the same time:"), steps)
	o.objects(&b, paint, p, d)
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

// objects writes the objects that are deleted, or those of each step of a handback in the wide form.
func (o *options) objects(b *strings.Builder, paint console.Paint, p *migration.Plan, d direction) {
	if d.deletes {
		section(b, paint.Bold("Objects that are deleted, by kind:"), names(p.Operations))
		return
	}
	if o.output.Form != console.Wide {
		return
	}
	for _, s := range stages() {
		operations(b, paint.Bold(s.heading), p.Operations, s.step)
	}
}

// stage is a step of a handback that changes objects.
type stage struct {
	step    migration.Action
	heading string
}

// stages returns the steps of a handback that change objects, in their order.
func stages() []stage {
	return []stage{
		{migration.RestoreObjects, "Changes to objects before OLM starts:"},
		{migration.RemoveLabels, "Changes to objects while OLM starts:"},
		{migration.DeleteReplicas, "Changes to objects when OLM's pods of catalogs are ready:"},
	}
}

// operations prints a line for each change of a step.
func operations(b *strings.Builder, heading string, all []migration.Operation, step migration.Action) {
	var table console.Table
	lines := 0
	for _, op := range all {
		if op.Step() == step {
			table.Add(op.Verb.Text(), op.Kind, objectName(op))
			lines++
		}
	}
	if lines > 0 {
		b.WriteString(heading + "\n" + table.Text("  ", 0))
	}
}

// names returns the names of objects: a line for each kind, with their number.
func names(all []migration.Operation) []string {
	byKind := map[string][]string{}
	for _, op := range all {
		byKind[op.Kind] = append(byKind[op.Kind], objectName(op))
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		slices.Sort(byKind[kind])
		lines = append(lines, fmt.Sprintf("%s (%d): %s", kind, len(byKind[kind]), strings.Join(byKind[kind], ", ")))
	}
	return lines
}

// objectName returns NAMESPACE/NAME, or NAME for a cluster-scoped object.
func objectName(op migration.Operation) string {
	return strings.TrimPrefix(op.Namespace+"/"+op.Name, "/")
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

package approve

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/plansummary"
)

// printer prints what InstallPlans change, and which were approved.
type printer struct {
	output    console.Output
	out       io.Writer
	namespace string
	// notes name the requested Subscriptions for which nothing waits.
	notes []string
}

// show prints the requested InstallPlans and what they would change. The machine-readable forms
// print everything at the end.
func (p printer) show(results []result) error {
	if p.output.ForMachines() {
		return nil
	}
	paint := p.output.Paint(p.out)
	var b strings.Builder
	for _, note := range p.notes {
		b.WriteString(console.Wrap("", "  ", note))
	}
	if len(results) == 0 && len(p.notes) == 0 {
		fmt.Fprintf(&b, "No InstallPlan of namespace %s waits for approval.\n", p.namespace)
	}
	for i := range results {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(describe(&results[i], paint, p.output.Form == console.Wide))
	}
	return p.write(b.String())
}

// maxRules is the number of rules shown in the normal form. The wide form shows all.
const maxRules = 12

// describe returns the text about what an InstallPlan would change.
func describe(r *result, paint console.Paint, wide bool) string {
	var b strings.Builder
	title := paint.Bold("InstallPlan " + r.Namespace + "/" + r.InstallPlan)
	if r.Why != "" {
		return title + " " + r.Why + "\n"
	}
	if len(r.Subscriptions) > 0 {
		title += ", for " + strings.Join(r.Subscriptions, ", ")
	}
	b.WriteString(title + "\n")
	for _, v := range r.Versions {
		b.WriteString("  " + change(v) + "\n")
	}
	for _, d := range r.Definitions {
		news := "updates"
		if d.New {
			news = "creates"
		}
		fmt.Fprintf(&b, "  %s CustomResourceDefinition %s\n", news, d.Name)
	}
	if len(r.ClusterRules) > 0 {
		b.WriteString("  " + paint.Waiting("new cluster-wide permissions:") + "\n")
		for i, rule := range r.ClusterRules {
			if i == maxRules && !wide {
				fmt.Fprintf(&b, "    and %d more; -o wide lists them\n", len(r.ClusterRules)-i)
				break
			}
			b.WriteString(console.Wrap("    ", "      ", rule))
		}
	}
	b.WriteString(warned(r, paint, wide))
	b.WriteString(notAllowed(r, paint))
	b.WriteString(console.Wrap("  ", "  ", count(r)))
	return b.String()
}

// count returns the text about the number of objects and the number of unchecked ones.
func count(r *result) string {
	text := fmt.Sprintf("%d objects in total", r.Objects)
	switch r.Objects {
	case 0:
		text = "objects not known yet; phase of the plan: " + cmp.Or(r.Phase, "none yet")
	case 1:
		text = "1 object in total"
	}
	if r.Unread > 0 {
		text += fmt.Sprintf("; %d of them too large for the plan, and not checked", r.Unread)
	}
	if r.Unchecked > 0 {
		text += fmt.Sprintf("; %d of them not checked for unknown fields: the API server refused the dry run, for example because you lack permission to create them, or their kind is not served", r.Unchecked)
	}
	return text
}

// warned returns the text of the API server's warnings.
func warned(r *result, paint console.Paint, wide bool) string {
	if len(r.Warnings) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  " + paint.Waiting("the API server warns:") + "\n")
	for _, w := range r.Warnings {
		b.WriteString(console.Wrap("    ", "      ", warningText(w, wide)))
	}
	return b.String()
}

// notAllowed returns the text about objects that make the plan fail.
func notAllowed(r *result, paint console.Paint) string {
	if len(r.Refused) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  " + paint.Waiting("kinds that bundles cannot contain; the plan fails:") + "\n")
	for _, o := range r.Refused {
		text := o.Kind + " " + o.Name
		if o.Argument != "" {
			text += "; allowed if the supervisor runs with " + o.Argument + ": then add it to this command"
		}
		b.WriteString(console.Wrap("    ", "      ", text))
	}
	return b.String()
}

// maxTexts is the number of warnings about one object in the normal form. The wide form shows all.
const maxTexts = 10

// warningText returns the text of the warnings about one object.
func warningText(w warning, wide bool) string {
	texts := w.Texts
	if len(texts) > maxTexts && !wide {
		texts = append(slices.Clone(texts[:maxTexts]), fmt.Sprintf("and %d more; -o wide lists them", len(w.Texts)-maxTexts))
	}
	return w.Kind + " " + w.Name + ": " + strings.Join(texts, ", ")
}

// change returns the text about an installation or an update.
func change(v plansummary.Version) string {
	if v.Replaces == "" {
		return fmt.Sprintf("installs %s (%s)", v.Name, v.Version)
	}
	return fmt.Sprintf("updates %s to %s (%s → %s)", v.Replaces, v.Name, v.From, v.Version)
}

// document is the document of the command.
type document struct {
	Plans []result `json:"plans"`
	Notes []string `json:"notes"`
	// Problem is why the command failed.
	Problem string `json:"problem,omitempty"`
}

// document returns the document about the results and the error of the command, which is nil if there is none.
func (p printer) document(results []result, err error) document {
	return document{Plans: append([]result{}, results...), Notes: append([]string{}, p.notes...), Problem: console.Problem(err)}
}

// results prints which InstallPlans were approved, for people.
func (p printer) results(results []result) error {
	if p.output.ForMachines() {
		return nil
	}
	paint := p.output.Paint(p.out)
	var b strings.Builder
	for i := range results {
		name := results[i].Namespace + "/" + results[i].InstallPlan
		switch results[i].Result {
		case approved:
			b.WriteString("InstallPlan " + name + " is " + paint.Good("approved") + "\n")
		case dryRun:
			b.WriteString("InstallPlan " + name + " would be approved (dry run)\n")
		}
	}
	return p.write(b.String())
}

func (p printer) write(text string) error {
	if _, err := io.WriteString(p.out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

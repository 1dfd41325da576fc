package discovery

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what is generated in docs/discovery.md and decisions.md")

const (
	manual    = "../../docs/discovery.md"
	decisions = "decisions.md"
)

// TestManual compares the reasons in docs/discovery.md, and the diagram in decisions.md, with the machine.
func TestManual(t *testing.T) {
	for page, sections := range map[string]map[string]string{
		manual:    {"reasons": reasons()},
		decisions: {"diagram": diagram()},
	} {
		compareSections(t, page, sections)
	}
}

// compareSections compares the sections of a page with their contents, or writes them with -update.
func compareSections(t *testing.T, page string, sections map[string]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for section, content := range sections {
		got, err = withSection(got, section, content)
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(string(text), got); diff != "" {
		t.Errorf("%s is stale; renew it with: go test ./supervisor/discovery -run TestManual -update\n-have, +want:\n%s", page, diff)
	}
}

// withSection replaces the text between the marks of a section.
func withSection(text, section, content string) (string, error) {
	begin, end := "<!-- generated: "+section+" -->\n", "<!-- end of "+section+" -->\n"
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the marks of %s are missing", section)
	}
	return before + begin + content + end + after, nil
}

// reasons returns the table of the results with their reasons.
func reasons() string {
	var order []Outcome
	found := map[Outcome][]string{}
	for _, s := range append([]situation{{want: Verdict{Skipped, ReasonDisabled}}}, situations...) {
		reason := "`" + string(s.want.Reason) + "`"
		if !slices.Contains(order, s.want.Outcome) {
			order = append(order, s.want.Outcome)
		}
		if !slices.Contains(found[s.want.Outcome], reason) {
			found[s.want.Outcome] = append(found[s.want.Outcome], reason)
		}
	}
	var out strings.Builder
	out.WriteString("| Result | Reasons |\n|---|---|\n")
	for _, outcome := range order {
		_, _ = fmt.Fprintf(&out, "| %s | %s |\n", outcome, strings.Join(found[outcome], ", "))
	}
	return out.String()
}

// An edge of the diagram connects a probe with the next one, or with an outcome.
type edge struct{ from, to string }

// drawing holds the answers that lead along each edge, by the previous answer.
type drawing struct {
	order  []edge
	labels map[edge]map[string][]string
}

func (d *drawing) add(from, to, before, label string) {
	e := edge{from, to}
	if d.labels[e] == nil {
		d.order = append(d.order, e)
		d.labels[e] = map[string][]string{}
	}
	if !slices.Contains(d.labels[e][before], label) {
		d.labels[e][before] = append(d.labels[e][before], label)
	}
}

// label returns the answers of an edge. It includes the previous answer where the answers depend on it.
func (d *drawing) label(e edge) string {
	before := map[string][]string{}
	for _, b := range slices.Sorted(maps.Keys(d.labels[e])) {
		answers := strings.Join(d.labels[e][b], ", ")
		before[answers] = append(before[answers], b)
	}
	everywhere := map[string]bool{}
	for other, labels := range d.labels {
		for b := range labels {
			everywhere[b] = everywhere[b] || (other.from == e.from && b != "")
		}
	}
	var seen []string
	for _, answers := range slices.Sorted(maps.Keys(before)) {
		always := true
		for b, here := range everywhere {
			always = always && (!here || slices.Contains(before[answers], b) || slices.Contains(before[answers], ""))
		}
		if always {
			seen = append(seen, answers)
			continue
		}
		seen = append(seen, "after "+strings.Join(before[answers], ", ")+" – "+answers)
	}
	return strings.Join(seen, "<br/>")
}

// diagram draws the machine by walking it with every combination of answers.
func diagram() string {
	d := &drawing{labels: map[edge]map[string][]string{}}
	d.add("[*]", string(Skipped), "", "disabled")
	for _, c := range combinations() {
		d.walk(c)
	}
	var out strings.Builder
	out.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, e := range d.order {
		line := "    " + e.from + " --> " + e.to
		if label := d.label(e); label != "" {
			line += ": " + label
		}
		out.WriteString(line + "\n")
	}
	out.WriteString("```\n")
	return out.String()
}

// walk adds the edges of one path through the machine.
func (d *drawing) walk(c combination) {
	f := Facts{Incomplete: c.incomplete, WithOperator: c.withOperator}
	from, before, label := "[*]", "", "resource known"
	if c.incomplete {
		label = "resource unknown"
	}
	for {
		step := Next(Auto, f)
		if step.Probe == ProbeNone {
			d.add(from, string(step.Verdict.Outcome), before, label)
			return
		}
		to := "probe_" + string(step.Probe)
		d.add(from, to, before, label)
		from, before = to, ""
		switch step.Probe {
		case ProbeResource:
			f.Resource, label = c.resource, string(c.resource)
			switch {
			case c.resource == OK:
			case c.incomplete:
				before = "looking up"
			default:
				before = "nothing"
			}
		case ProbeDiscovery:
			f.Discovery, label = c.discovery, string(c.discovery)
			before = cmp.Or(string(f.Resource), "nothing")
		case ProbeBackend:
			f.Backend, label = c.backend, string(c.backend)
		case ProbeOperator:
			f.Operator, label = c.operator, string(c.operator)
		case ProbeUser:
			f.UserProbed, label = true, ""
		case ProbeNone:
		}
	}
}

package timeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
)

// none stands for an empty phase.
const none = "-"

// Table returns the human-readable form, with times in the zone.
func (t *Timeline) Table(zone *time.Location) string {
	var b strings.Builder
	b.WriteString(t.headline() + "\n")
	switch {
	case t.Problem != "":
		b.WriteString(console.Wrap("  ", "  ", "no history: "+t.Problem))
	case len(t.Transitions) == 0:
		b.WriteString(console.Wrap("  ", "  ", t.emptyReason()))
	default:
		b.WriteByte('\n')
		t.rows(&b, zone)
	}
	b.WriteString("\nNOW\n")
	b.WriteString(console.Wrap("  ", "  ", t.stateLine()))
	for _, c := range t.activeConditions() {
		b.WriteString(console.Wrap("  ", "      ", c.text(t.now)))
	}
	for _, step := range t.Next {
		b.WriteString("  > " + bundles.OneLine(step) + "\n")
	}
	return b.String()
}

func (t *Timeline) headline() string {
	text := fmt.Sprintf("Subscription %s/%s: package %s", t.Namespace, t.Subscription, t.Package)
	if t.Channel != "" {
		text += ", channel " + t.Channel
	}
	return bundles.OneLine(text + ", catalog " + t.Catalog)
}

// emptyReason returns why there are no transitions.
func (t *Timeline) emptyReason() string {
	if t.InstallPlan == "" {
		return "no history yet: it has no InstallPlan"
	}
	return fmt.Sprintf("no history yet: it refers to InstallPlan %s, but no supervisor has recorded its transitions (annotation %s)", t.InstallPlan, api.AnnotationTransitions)
}

// stateLine returns the state with the installed and the next version.
func (t *Timeline) stateLine() string {
	state := t.State
	if state == "" {
		state = "no state"
	}
	switch {
	case t.InstalledCSV == "" && t.CurrentCSV == "":
		return state + ": nothing is installed"
	case t.InstalledCSV == "":
		return fmt.Sprintf("%s: %s is pending", state, t.CurrentCSV)
	case t.CurrentCSV == "" || t.CurrentCSV == t.InstalledCSV:
		return fmt.Sprintf("%s: %s is installed", state, t.InstalledCSV)
	default:
		return fmt.Sprintf("%s: %s is installed, %s is pending", state, t.InstalledCSV, t.CurrentCSV)
	}
}

// activeConditions returns the conditions that are not False. False means that nothing is wrong.
func (t *Timeline) activeConditions() []Condition {
	return slices.DeleteFunc(slices.Clone(t.Conditions), func(c Condition) bool { return c.Status == string(corev1.ConditionFalse) })
}

// text returns a condition as one line.
func (c *Condition) text(now time.Time) string {
	text := c.Type + "=" + c.Status
	if c.Reason != "" {
		text += " " + c.Reason
	}
	if c.Since != nil {
		text += ", for " + span(now.Sub(c.Since.Time))
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// rows writes the transitions in columns, below the name of their InstallPlan.
func (t *Timeline) rows(b *strings.Builder, zone *time.Location) {
	rows := [][]string{head(zone, t.now)}
	for i := range t.Transitions {
		one := &t.Transitions[i]
		lasted := "?"
		switch {
		case one.Lasted != nil:
			lasted = span(one.Lasted.Duration)
		case i == len(t.Transitions)-1:
			lasted = "so far " + span(t.now.Sub(one.Time.Time))
		}
		rows = append(rows, one.cells(zone, t.now, lasted))
	}
	plan := ""
	for i, line := range aligned(rows) {
		if i > 0 {
			one := &t.Transitions[i-1]
			if one.Lost > 0 {
				b.WriteString("  " + one.gapLine(i == 1) + "\n")
			}
			if string(one.UID) != plan {
				plan = string(one.UID)
				b.WriteString(console.Wrap("", "    ", one.plan()))
			}
		}
		b.WriteString(line + "\n")
	}
}

func head(zone *time.Location, now time.Time) []string {
	name, _ := now.In(zone).Zone()
	return []string{"  #", "TIME (" + name + ")", "AGO", "PHASE", "REASON", "LASTED", "SEEN"}
}

// cells returns a transition as the cells of a row.
func (t *Transition) cells(zone *time.Location, now time.Time, lasted string) []string {
	phase, reason := t.Phase, t.Reason
	if phase == "" {
		phase = none
	}
	if reason == phase {
		reason = ""
	}
	return []string{
		"  " + strconv.FormatInt(t.Sequence, 10), t.Time.In(zone).Format(time.DateTime), span(now.Sub(t.Time.Time)),
		phase, reason, lasted, string(t.Observed),
	}
}

// gapLine returns a line about missing transitions.
func (t *Transition) gapLine(first bool) string {
	if first {
		return fmt.Sprintf("… earlier transitions, no longer stored: %d", t.Lost)
	}
	return fmt.Sprintf("… missing transitions, because the annotation %s was edited: %d", api.AnnotationTransitions, t.Lost)
}

// plan returns the name of the InstallPlan and what it installs.
func (t *Transition) plan() string {
	if t.Versions == nil {
		return "InstallPlan " + t.Plan
	}
	return fmt.Sprintf("InstallPlan %s: %s", t.Plan, strings.Join(t.Versions, ", "))
}

// span returns a duration in kubectl's format, at least "<1s". Clocks of different machines differ,
// so durations may be negative.
func span(d time.Duration) string {
	if d < time.Second {
		return "<1s"
	}
	return duration.HumanDuration(d)
}

// aligned returns rows as lines with aligned columns.
func aligned(rows [][]string) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = bundles.OneLine(row[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	// Writing to a strings.Builder does not fail.
	_ = w.Flush()
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
}

package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bundles"
)

// Widths of the columns of changes. Every phase and reason fits, because the lines are printed one by
// one and must align.
const (
	widthPhase  = 16
	widthReason = 29
)

// After returns the transitions after a sequence number. If the log's last number is smaller, the
// log was recreated, and After returns all transitions.
func (t *Timeline) After(sequence int64) []Transition {
	if t.Last() < sequence {
		sequence = 0
	}
	i := slices.IndexFunc(t.Transitions, func(one Transition) bool { return one.Sequence > sequence })
	if i < 0 {
		return nil
	}
	newer := slices.Clone(t.Transitions[i:])
	newer[0].Lost = newer[0].Sequence - sequence - 1
	return newer
}

// Last returns the sequence number of the newest transition; 0 if there is none.
func (t *Timeline) Last() int64 {
	if len(t.Transitions) == 0 {
		return 0
	}
	return t.Transitions[len(t.Transitions)-1].Sequence
}

// Changes returns what has changed since before: transitions, then the state and the conditions. Each
// line begins with the Subscription's name. It is empty if nothing has changed.
func (t *Timeline) Changes(before *Timeline, zone *time.Location) string {
	lines := t.progress(before, zone)
	if now, was := t.stateLine(), before.stateLine(); now != was {
		lines = append(lines, now)
	}
	lines = append(lines, t.conditions(before)...)
	if !slices.Equal(t.Next, before.Next) {
		for _, step := range t.Next {
			lines = append(lines, "> "+step)
		}
	}
	if t.Problem != before.Problem && t.Problem != "" {
		lines = append(lines, "no history: "+t.Problem)
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight(t.Subscription+"  "+bundles.OneLine(line), " ") + "\n")
	}
	return b.String()
}

// progress returns lines about the transitions since before.
func (t *Timeline) progress(before *Timeline, zone *time.Location) []string {
	var lines []string
	previous := before.newest()
	for _, one := range t.After(before.Last()) {
		if one.Lost > 0 {
			lines = append(lines, one.gapLine(true))
		}
		if previous == nil || previous.UID != one.UID {
			lines = append(lines, one.plan())
		}
		lines = append(lines, one.line(zone, previous))
		previous = &one
	}
	return lines
}

// conditions returns lines about the conditions that appeared, changed or ended since before.
func (t *Timeline) conditions(before *Timeline) []string {
	var lines []string
	now, was := t.activeConditions(), before.activeConditions()
	for _, c := range was {
		if !slices.ContainsFunc(now, func(other Condition) bool { return other.Type == c.Type }) {
			lines = append(lines, c.Type+" is over")
		}
	}
	for _, c := range now {
		c.Since = nil
		if !slices.ContainsFunc(was, c.sameAs) {
			lines = append(lines, c.text(t.now))
		}
	}
	return lines
}

func (t *Timeline) newest() *Transition {
	if len(t.Transitions) == 0 {
		return nil
	}
	return &t.Transitions[len(t.Transitions)-1]
}

// sameAs reports whether two conditions are equal except for their times.
func (c *Condition) sameAs(other Condition) bool {
	return c.Type == other.Type && c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message
}

// line returns a transition as one line.
func (t *Transition) line(zone *time.Location, previous *Transition) string {
	cells := t.cells(zone, t.Time.Time, "")
	after := ""
	if previous != nil {
		after = "after " + span(t.Time.Sub(previous.Time.Time)) + ", "
	}
	return fmt.Sprintf("%4d  %s  %-*s  %-*s  %s%s", t.Sequence, cells[1], widthPhase, cells[3], widthReason, cells[4], after, t.Observed)
}

// Record is a transition in the machine-readable output that follows Subscriptions.
type Record struct {
	Transition

	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription"`
}

// Records returns the transitions after a sequence number.
func (t *Timeline) Records(sequence int64) []Record {
	newer := t.After(sequence)
	records := make([]Record, len(newer))
	for i, one := range newer {
		one.Lasted = nil
		records[i] = Record{Namespace: t.Namespace, Subscription: t.Subscription, Transition: one}
	}
	return records
}

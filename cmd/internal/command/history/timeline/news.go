package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bundles"
)

// Widths of the columns of news, in which every phase and reason has room: the lines
// come one by one and have to stand below each other all the same.
const (
	widthPhase  = 16
	widthReason = 29
)

// After gives the transitions that are newer than one with that number. A ledger that
// does not reach so far was begun anew: then it is all of them.
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

// Last is the number of the newest transition; 0 when there is none.
func (t *Timeline) Last() int64 {
	if len(t.Transitions) == 0 {
		return 0
	}
	return t.Transitions[len(t.Transitions)-1].Sequence
}

// News tells what has changed since an earlier look: transitions, then the state and
// the conditions, each in a line that begins with the Subscription's name. It is
// empty when nothing has.
func (t *Timeline) News(before *Timeline, zone *time.Location) string {
	lines := t.progress(before, zone)
	if now, was := t.standing(), before.standing(); now != was {
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

// progress tells of transitions since an earlier look.
func (t *Timeline) progress(before *Timeline, zone *time.Location) []string {
	var lines []string
	previous := before.newest()
	for _, one := range t.After(before.Last()) {
		if one.Lost > 0 {
			lines = append(lines, one.gap(true))
		}
		if previous == nil || previous.UID != one.UID {
			lines = append(lines, one.plan())
		}
		lines = append(lines, one.news(zone, previous))
		previous = &one
	}
	return lines
}

// conditions tells of conditions that came, changed or went since an earlier look.
func (t *Timeline) conditions(before *Timeline) []string {
	var lines []string
	now, was := t.holding(), before.holding()
	for _, c := range was {
		if !slices.ContainsFunc(now, func(other Condition) bool { return other.Type == c.Type }) {
			lines = append(lines, c.Type+" is over")
		}
	}
	for _, c := range now {
		c.Since = nil
		if !slices.ContainsFunc(was, c.says) {
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

// says tells whether another condition says the same, were it since another time.
func (c *Condition) says(other Condition) bool {
	return c.Type == other.Type && c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message
}

// news is a transition in one line.
func (t *Transition) news(zone *time.Location, previous *Transition) string {
	cells := t.cells(zone, t.Time.Time, "")
	after := ""
	if previous != nil {
		after = "after " + span(t.Time.Sub(previous.Time.Time)) + ", "
	}
	return fmt.Sprintf("%4d  %s  %-*s  %-*s  %s%s", t.Sequence, cells[1], widthPhase, cells[3], widthReason, cells[4], after, t.Observed)
}

// Record is a transition as a machine reads it that follows a Subscription.
type Record struct {
	Transition

	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription"`
}

// Records are the transitions that are newer than one with that number.
func (t *Timeline) Records(sequence int64) []Record {
	newer := t.After(sequence)
	records := make([]Record, len(newer))
	for i, one := range newer {
		one.Lasted = nil
		records[i] = Record{Namespace: t.Namespace, Subscription: t.Subscription, Transition: one}
	}
	return records
}

package transitions_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

const (
	// bound is the largest number of entries in a transition log.
	bound = 64
	// knowledge is the allowed age of the supervisor's data about an InstallPlan. No client can
	// read one object and write another atomically. On a busy machine, the events of a thousand
	// InstallPlans reach a new process late.
	knowledge = 10 * time.Second
	// acknowledgement is how long the supervisor waits at most until a stage is shown before it
	// continues. roughness is the precision of the times in watches.
	acknowledgement, roughness = 5 * time.Second, 500 * time.Millisecond
	// second is the precision of times in a transition log. behind is the delay with which this
	// test may receive events on a busy machine.
	second, behind = time.Second, 20 * time.Second
)

// verdict is the result of an audit.
type verdict struct {
	problems []string
	// transitions is the number of recorded stages. afterwards is the number of those that were not
	// recorded when they occurred. unacknowledged is the number of stages that the supervisor left
	// without their being shown, because it had waited long enough. mistaken is the number of
	// stages that it left because the status showed an earlier occurrence of the same stage.
	transitions, afterwards, unacknowledged, mistaken int
}

func (v *verdict) addf(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// audit compares what a Subscription showed and recorded with the stages of its InstallPlans. It is
// a pure function of the record.
func audit(r record) verdict {
	v := &verdict{}
	all := truth(r)
	entries := v.ledger(r)
	shown := showings(r)
	v.pairs(r)
	written := v.compare("the ledger", all, entries)
	showed := v.compare("the status", all, shown)
	for i, p := range written {
		v.entry(all[p], entries[i])
	}
	at := map[int]uint64{}
	for i, p := range showed {
		at[p] = shown[i].from
		v.told("the status", all[p], shown[i])
	}
	v.acknowledged(all, shown, at)
	v.transitions = len(entries)
	return *v
}

// ledger reads every version of the transition log and returns all entries that ever existed. A log
// grows only at its end, and loses its oldest entries when it is full.
func (v *verdict) ledger(r record) []sighting {
	var all []sighting
	for _, s := range r.subscriptions {
		if s.unread != nil {
			v.addf("revision %d: %v", s.revision, s.unread)
			continue
		}
		v.numbered(s, len(all))
		for i := range s.ledger {
			e := &s.ledger[i]
			switch known := int64(len(all)); {
			case e.Sequence == known+1:
				all = append(all, sighting{told: entryTold(e), from: s.revision, at: s.at, version: e.Version, entry: e})
			case e.Sequence < 1 || e.Sequence > known:
				v.addf("revision %d: entry %d follows upon entry %d", s.revision, e.Sequence, known)
			case !same(e, all[e.Sequence-1].entry):
				v.addf("revision %d: entry %d became %+v after it was %+v", s.revision, e.Sequence, *e, *all[e.Sequence-1].entry)
			}
		}
	}
	return all
}

// same reports whether two entries are equal in their written form.
func same(a, b *transitionlog.Transition) bool {
	return a.Time.Equal(&b.Time) && a.Version == b.Version && a.Plan == b.Plan && a.Observed == b.Observed && entryTold(a) == entryTold(b)
}

// numbered checks the sequence numbers of one version of a log. known is the number of earlier entries.
func (v *verdict) numbered(s subscriptionVersion, known int) {
	n := len(s.ledger)
	if n > bound {
		v.addf("revision %d: the ledger has %d entries, more than %d", s.revision, n, bound)
	}
	last := int64(0)
	if n > 0 {
		last = s.ledger[n-1].Sequence
	}
	if last < int64(known) {
		v.addf("revision %d: the ledger ends with entry %d and had %d before", s.revision, last, known)
	}
	if int64(n) != min(last, bound) {
		v.addf("revision %d: the ledger has %d entries though its last one is number %d", s.revision, n, last)
	}
	for i := 1; i < n; i++ {
		before, e := &s.ledger[i-1], &s.ledger[i]
		if e.Sequence != before.Sequence+1 {
			v.addf("revision %d: entry %d stands after entry %d", s.revision, e.Sequence, before.Sequence)
		}
		if e.Time.Before(&before.Time) {
			v.addf("revision %d: entry %d is of %s, before entry %d of %s", s.revision, e.Sequence, e.Time, before.Sequence, before.Time)
		}
		if entryTold(e) == entryTold(before) {
			v.addf("revision %d: entry %d says %s again", s.revision, e.Sequence, entryTold(e).stage)
		}
	}
}

// pairs checks each version of the Subscription: what it shows must have been recorded before.
func (v *verdict) pairs(r record) {
	for _, s := range r.subscriptions {
		if s.shows == nil || s.unread != nil {
			continue
		}
		if !slices.ContainsFunc(s.ledger, func(t transitionlog.Transition) bool { return entryTold(&t) == *s.shows }) {
			v.addf("revision %d: the status shows %s of %s, and the ledger has no such entry", s.revision, s.shows.stage, s.shows.plan)
		}
	}
}

// compare finds the shown or recorded stages among the actual ones and reports missing and invented
// ones. It returns the index of the actual stage for each one, up to the first error.
func (v *verdict) compare(who string, all []passage, told []sighting) []int {
	var places []int
	next := 0
	for _, s := range told {
		for next < len(all) && all[next].told != s.told && all[next].optional {
			next++
		}
		if next < len(all) && all[next].told == s.told {
			places = append(places, next)
			next++
			continue
		}
		later := slices.ContainsFunc(all[min(next, len(all)):], func(p passage) bool { return p.told == s.told })
		if later {
			v.addf("%s lost %s, and went on with %s\n%s", who, all[next].stage, s.stage, sideBySide(all, told))
		} else {
			v.addf("%s invented %s of %s as number %d\n%s", who, s.stage, s.plan, len(places)+1, sideBySide(all, told))
		}
		return places
	}
	for ; next < len(all); next++ {
		if !all[next].optional {
			v.addf("%s never came to %s\n%s", who, all[next].stage, sideBySide(all, told))
			break
		}
	}
	return places
}

// sideBySide returns the actual stages, with a star at those that the test made, above the shown or
// recorded ones. Each has its revision and the seconds since the beginning.
func sideBySide(all []passage, told []sighting) string {
	var text strings.Builder
	text.WriteString("  truth:")
	var begin time.Time
	for i, p := range all {
		if i == 0 {
			begin = p.began
		}
		fmt.Fprintf(&text, " %s@%d", p.stage, p.from)
		if p.foreign {
			text.WriteString("*")
		}
		fmt.Fprintf(&text, "+%.1fs", p.began.Sub(begin).Seconds())
	}
	text.WriteString("\n  told: ")
	for _, s := range told {
		fmt.Fprintf(&text, " %s@%d+%.1fs", s.stage, s.from, s.at.Sub(begin).Seconds())
	}
	return text.String()
}

// told checks that a stage was not shown before it occurred, and that the named version of the
// InstallPlan was at that stage.
func (v *verdict) told(who string, p passage, s sighting) {
	if s.from < p.from {
		v.addf("%s told %s at revision %d, before it was so at %d", who, p.stage, s.from, p.from)
	}
	if p.stage == missing {
		return
	}
	for _, version := range append([]string{s.version}, s.versions...) {
		if at, err := strconv.ParseUint(version, 10, 64); err != nil || at < p.from || (p.to != 0 && at >= p.to) {
			v.addf("%s names version %q of the plan, which was %s from %d to %d", who, version, p.stage, p.from, p.to)
			return
		}
	}
}

// entry compares the fields of an entry with the actual stage.
func (v *verdict) entry(p passage, s sighting) {
	e := s.entry
	v.told("entry "+strconv.FormatInt(e.Sequence, 10), p, s)
	if e.Time.Add(second).Before(p.began.Add(-behind)) || e.Time.After(s.at.Add(second)) {
		v.addf("entry %d is of %s, and it was so at %s and written by %s", e.Sequence, e.Time, p.began, s.at)
	}
	switch e.Observed {
	case transitionlog.Afterwards:
		v.afterwards++
	case transitionlog.Live:
		if p.to != 0 && p.to < s.from && s.at.Sub(p.left) > knowledge {
			v.addf("entry %d is said to have been seen live: %s ended at %s, and was written down at %s", e.Sequence, p.stage, p.left, s.at)
		}
	default:
		v.addf("entry %d was observed %q", e.Sequence, e.Observed)
	}
}

// acknowledged checks that the supervisor moved no InstallPlan to another stage before the current
// one was shown or the wait had ended.
func (v *verdict) acknowledged(all []passage, sightings []sighting, shown map[int]uint64) {
	for i := 1; i < len(all); i++ {
		p, before := all[i], all[i-1]
		if p.foreign || p.plan != before.plan || p.stage == missing {
			continue
		}
		if at, was := shown[i-1]; was && at < p.from {
			continue
		}
		if showing(sightings, p.from) == before.told {
			v.mistaken++
			continue
		}
		v.unacknowledged++
		if stood := p.began.Sub(before.began); stood < acknowledgement-roughness {
			v.addf("the product moved the plan from %s to %s at revision %d, after %s, and the status showed the former at revision %d\n%s",
				before.stage, p.stage, p.from, stood, shown[i-1], sideBySide(all, sightings))
		}
	}
}

// showing returns what was shown just before a revision.
func showing(sightings []sighting, revision uint64) told {
	var last told
	for _, s := range sightings {
		if s.from < revision {
			last = s.told
		}
	}
	return last
}

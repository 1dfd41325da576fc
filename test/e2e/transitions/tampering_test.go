package transitions_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// scribe creates records with ten revisions per second.
type scribe struct {
	record

	revision uint64
	ledger   transitionlog.Log
}

var epoch = time.Unix(1_700_000_000, 0)

func (s *scribe) next() (revision uint64, at time.Time) {
	s.revision++
	return s.revision, epoch.Add(time.Duration(s.revision) * 100 * time.Millisecond)
}

// moves sets the stage of an InstallPlan. ours is set if the test does it.
func (s *scribe) moves(plan types.UID, to stage, ours bool) {
	revision, at := s.next()
	s.plans = append(s.plans, planVersion{revision: revision, uid: plan, stage: to, foreign: ours, at: at, deleted: to == missing})
}

// writes appends the stage to the log.
func (s *scribe) writes(plan types.UID, is stage, seen transitionlog.Observed) {
	revision, at := s.next()
	version := ""
	for _, v := range s.plans {
		if v.uid == plan && v.stage == is {
			version = strconv.FormatUint(v.revision, 10)
		}
	}
	n := int64(1)
	if len(s.ledger) > 0 {
		n = s.ledger[len(s.ledger)-1].Sequence + 1
	}
	s.ledger = append(slices.Clone(s.ledger), transitionlog.Transition{
		Sequence: n, Plan: "install", UID: plan, Version: version, Phase: is.phase, Reason: is.reason,
		Time: metav1.NewTime(at.Truncate(time.Second)), Observed: seen,
	})
	s.ledger = s.ledger[max(0, len(s.ledger)-bound):]
	v := subscriptionVersion{revision: revision, ledger: s.ledger, at: at}
	if n := len(s.subscriptions); n > 0 {
		v.shows, v.version = s.subscriptions[n-1].shows, s.subscriptions[n-1].version
	}
	s.subscriptions = append(s.subscriptions, v)
}

// shows makes the status show the last entry.
func (s *scribe) shows() {
	revision, at := s.next()
	last := s.ledger[len(s.ledger)-1]
	is := entryTold(&last)
	s.subscriptions = append(s.subscriptions, subscriptionVersion{revision: revision, shows: &is, version: last.Version, ledger: s.ledger, at: at})
}

// tells sets the stages of InstallPlan a. Each is recorded and shown at once.
func (s *scribe) tells(stages ...stage) {
	for _, is := range stages {
		s.moves("a", is, false)
		s.writes("a", is, transitionlog.Live)
		s.shows()
	}
}

// honest returns the record of an ordinary installation.
func honest() *scribe {
	s := &scribe{}
	s.tells(unreconciled, asking, working, complete)
	return s
}

// withEntries changes every version of the log in the same way.
func (s *scribe) withEntries(change func(*transitionlog.Transition)) {
	for i := range s.subscriptions {
		l := slices.Clone(s.subscriptions[i].ledger)
		for j := range l {
			change(&l[j])
		}
		s.subscriptions[i].ledger = l
	}
}

// TestAuditAccepts audits correct records.
func TestAuditAccepts(t *testing.T) {
	for name, told := range map[string]func() record{
		"an installation": func() record { return honest().record },
		"what passed before anybody looked": func() record {
			s := &scribe{}
			s.tells(unreconciled, working, complete)
			quick := []stage{failed, unreconciled, broken, unreconciled, asking}
			for _, is := range quick {
				s.moves("a", is, true)
			}
			s.revision += 100
			// The versions belong to the stages in turn.
			for i, is := range quick {
				s.writes("a", is, transitionlog.Afterwards)
				s.ledger[len(s.ledger)-1].Version = strconv.FormatUint(s.plans[3+i].revision, 10)
				s.shows()
			}
			return s.record
		},
		"a process that dies between ledger and status": func() record {
			s := honest()
			s.moves("a", failed, true)
			s.writes("a", failed, transitionlog.Live)
			s.revision += 100
			s.shows()
			return s.record
		},
		"a plan that is missing": func() record {
			s := honest()
			s.installed = true
			s.tells(missing)
			return s.record
		},
		"a plan that was forgotten, and its successor": func() record {
			s := &scribe{}
			s.tells(unreconciled, asking)
			s.moves("a", missing, true)
			s.subscriptions = append(s.subscriptions, subscriptionVersion{revision: s.revision + 1, ledger: s.ledger, at: epoch})
			s.revision++
			for _, is := range []stage{unreconciled, asking} {
				s.moves("b", is, false)
				s.writes("b", is, transitionlog.Live)
				s.shows()
			}
			return s.record
		},
		"more than a ledger holds": func() record {
			s := honest()
			for range bound {
				s.tells(failed, asking)
			}
			return s.record
		},
		"a stage that was not shown in time": func() record {
			s := &scribe{}
			s.tells(unreconciled)
			s.moves("a", working, false)
			s.revision += 60
			s.moves("a", complete, false)
			for _, is := range []stage{working, complete} {
				s.writes("a", is, transitionlog.Afterwards)
				s.shows()
			}
			return s.record
		},
	} {
		if got := audit(told()); len(got.problems) > 0 {
			t.Errorf("%s: %s", name, strings.Join(got.problems, "\n"))
		}
	}
}

// tampering is a wrong record with the expected problem.
type tampering struct {
	name, want string
	tamper     func(s *scribe)
}

// TestAuditFinds audits records with one error each.
func TestAuditFinds(t *testing.T) {
	for _, c := range slices.Concat(tamperedStages(), tamperedLedgers(), tamperedDetails()) {
		s := honest()
		c.tamper(s)
		if got := strings.Join(audit(s.record).problems, "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

// tamperedStages returns records whose stages differ from the InstallPlan's.
func tamperedStages() []tampering {
	return []tampering{
		{"nothing told", "never came to /InstallPlanNotYetReconciled", func(s *scribe) { s.subscriptions = nil }},
		{"a stage lost at the end", "never came to Failed", func(s *scribe) { s.moves("a", failed, true) }},
		{"a stage lost in the middle", "lost Failed/InstallPlanFailed, and went on with RequiresApproval", func(s *scribe) {
			s.moves("a", failed, true)
			s.tells(asking)
		}},
		{"a stage lost that came twice", "never came to Failed/InstallPlanFailed", func(s *scribe) {
			s.moves("a", failed, true)
			s.moves("a", complete, true)
			s.tells(failed)
			s.moves("a", complete, true)
			s.writes("a", complete, transitionlog.Live)
			s.shows()
		}},
		{"a stage invented", "invented Failed/InstallComponentFailed", func(s *scribe) {
			s.writes("a", broken, transitionlog.Live)
			s.shows()
		}},
		{"a stage of a plan that is not there", "invented RequiresApproval of b", func(s *scribe) {
			s.writes("b", asking, transitionlog.Live)
			s.shows()
		}},
		{"told by the ledger alone", "the status never came to Failed", func(s *scribe) {
			s.moves("a", failed, true)
			s.writes("a", failed, transitionlog.Live)
		}},
		{"told by the status alone", "and the ledger has no such entry", func(s *scribe) {
			s.moves("a", failed, true)
			revision, at := s.next()
			s.subscriptions = append(s.subscriptions, subscriptionVersion{revision: revision, shows: &told{plan: "a", stage: failed}, ledger: s.ledger, at: at})
		}},
		{"told before it was so", "before it was so at", func(s *scribe) {
			s.tells(failed)
			v := &s.plans[len(s.plans)-1]
			v.revision = s.revision + 1
		}},
		{"out of order", "lost Failed/InstallPlanFailed, and went on with RequiresApproval", func(s *scribe) {
			s.moves("a", failed, true)
			s.moves("a", asking, true)
			s.writes("a", asking, transitionlog.Live)
			s.shows()
			s.writes("a", failed, transitionlog.Live)
			s.shows()
		}},
		{"a missing plan that is not told", "never came to Missing", func(s *scribe) {
			s.installed = true
			s.moves("a", missing, true)
		}},
	}
}

// tamperedLedgers returns records whose log was changed.
func tamperedLedgers() []tampering {
	return []tampering{
		{"the same entry twice", "says Complete again", func(s *scribe) {
			s.writes("a", complete, transitionlog.Live)
		}},
		{"a gap in the numbers", "entry 6 stands after entry 4", func(s *scribe) {
			s.ledger = slices.Clone(s.ledger)
			s.tells(failed)
			s.subscriptions[len(s.subscriptions)-1].ledger = append(slices.Clone(s.ledger[:4]), func() transitionlog.Transition {
				e := s.ledger[4]
				e.Sequence = 6
				return e
			}())
		}},
		{"a ledger that starts anew", "the ledger ends with entry 1 and had 4 before", func(s *scribe) {
			s.ledger = nil
			s.tells(failed)
		}},
		{"a ledger without its beginning", "the ledger has 4 entries though its last one is number 5", func(s *scribe) {
			s.tells(failed)
			v := &s.subscriptions[len(s.subscriptions)-1]
			v.ledger = v.ledger[1:]
		}},
		{"a ledger that was never bounded", "more than 64", func(s *scribe) {
			for range bound {
				s.tells(failed, asking)
			}
			v := &s.subscriptions[len(s.subscriptions)-1]
			before := s.subscriptions[len(s.subscriptions)-5].ledger
			v.ledger = append(slices.Clone(before[:1]), v.ledger...)
		}},
		{"an entry that changes", "entry 2 became", func(s *scribe) {
			v := &s.subscriptions[len(s.subscriptions)-1]
			v.ledger = slices.Clone(v.ledger)
			v.ledger[1].Observed = transitionlog.Afterwards
		}},
		{"a ledger that cannot be read", "no list", func(s *scribe) {
			s.subscriptions[2].unread = errors.New("no list")
		}},
	}
}

// tamperedDetails returns records with wrong details of a stage.
func tamperedDetails() []tampering {
	return []tampering{
		{"a time that goes back", "before entry 3", func(s *scribe) {
			s.withEntries(func(e *transitionlog.Transition) {
				if e.Sequence == 4 {
					e.Time = metav1.NewTime(e.Time.Add(-10 * time.Second))
				}
			})
		}},
		{"a time to come", "entry 4 is of", func(s *scribe) {
			s.withEntries(func(e *transitionlog.Transition) {
				if e.Sequence == 4 {
					e.Time = metav1.NewTime(e.Time.Add(10 * time.Second))
				}
			})
		}},
		{"another version of the plan", `names version "1"`, func(s *scribe) {
			s.withEntries(func(e *transitionlog.Transition) { e.Version = "1" })
		}},
		{"no version of the plan", `the status names version ""`, func(s *scribe) {
			s.subscriptions[1].version = ""
		}},
		{"seen in no known way", `was observed "later"`, func(s *scribe) {
			s.withEntries(func(e *transitionlog.Transition) { e.Observed = "later" })
		}},
		{"said to be live long afterwards", "seen live", func(s *scribe) {
			s.moves("a", failed, true)
			s.moves("a", asking, true)
			s.revision += 100
			s.writes("a", failed, transitionlog.Live)
			s.shows()
			s.writes("a", asking, transitionlog.Live)
			s.shows()
		}},
		{"a plan moved on unseen", "the product moved the plan from RequiresApproval to Installing", func(s *scribe) {
			*s = scribe{}
			s.tells(unreconciled)
			s.moves("a", asking, false)
			s.writes("a", asking, transitionlog.Live)
			s.moves("a", working, false)
			s.shows()
			s.writes("a", working, transitionlog.Live)
			s.shows()
		}},
		{"a status that contradicts itself", "invented Contradiction", func(s *scribe) {
			s.subscriptions[len(s.subscriptions)-1].shows = &told{plan: "a", stage: stage{phase: "Contradiction"}}
		}},
	}
}

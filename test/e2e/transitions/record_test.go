package transitions_test

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/history"
)

// planVersion is one version of an InstallPlan, as a watch told it.
type planVersion struct {
	revision uint64
	uid      types.UID
	stage    stage
	// deleted says that this is the plan's end.
	deleted bool
	// foreign says that the test made this version and not the product.
	foreign bool
	// at is when the watch told it.
	at time.Time
}

// subscriptionVersion is one version of a Subscription, as a watch told it.
type subscriptionVersion struct {
	revision uint64
	// shows is what its status says of its plan; nil when it refers to none.
	shows *told
	// version is the one of the plan that its status refers to.
	version string
	ledger  history.Ledger
	// unread is why the ledger cannot be read.
	unread error
	at     time.Time
}

// record is all that is known of one Subscription and of the plans that were made for
// it, in the order in which it happened.
type record struct {
	plans         []planVersion
	subscriptions []subscriptionVersion
	// installed says that a plan that was deleted had done its work: that it is
	// missing has to be told. One that had not is forgotten.
	installed bool
}

// passage is the time that a plan spent at a stage: one link of the truth.
type passage struct {
	told

	// from and to are the revisions at which it began and ended; to is zero when it
	// has not ended. began and left are when the watch told that.
	from, to    uint64
	began, left time.Time
	// foreign says that the test moved the plan to this stage.
	foreign bool
	// optional says that it need not be told.
	optional bool
}

// truth is what the plans really went through, plan by plan.
func truth(r record) []passage {
	var order []types.UID
	of := map[types.UID][]passage{}
	for _, v := range r.plans {
		own := of[v.uid]
		if own == nil {
			order = append(order, v.uid)
		}
		next := passage{told: told{plan: v.uid, stage: v.stage}, from: v.revision, began: v.at, foreign: v.foreign}
		if v.deleted {
			next.stage, next.optional = missing, !r.installed
		}
		if n := len(own); n > 0 {
			if own[n-1].stage == next.stage {
				continue
			}
			own[n-1].to, own[n-1].left = v.revision, v.at
		}
		of[v.uid] = append(own, next)
	}
	var all []passage
	for _, uid := range order {
		all = append(all, of[uid]...)
	}
	return all
}

// sighting is a link of what was told: when it was told first.
type sighting struct {
	told

	from uint64
	at   time.Time
	// version is the one of the plan that is named with it, and versions are all that
	// are named for as long as it is told.
	version  string
	versions []string
	// entry is the one of the ledger; nil where it is the status that tells.
	entry *history.Transition
}

// showings are what the status of the Subscription showed, one after the other.
func showings(r record) []sighting {
	var all []sighting
	for _, v := range r.subscriptions {
		if v.shows == nil {
			continue
		}
		if n := len(all); n == 0 || all[n-1].told != *v.shows {
			all = append(all, sighting{told: *v.shows, from: v.revision, at: v.at, version: v.version})
		}
		last := &all[len(all)-1]
		last.versions = append(last.versions, v.version)
	}
	return all
}

// entryTold is what an entry of a ledger tells.
func entryTold(t *history.Transition) told {
	return told{plan: t.UID, stage: stage{phase: t.Phase, reason: t.Reason}}
}

package transitions_test

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// planVersion is one version of an InstallPlan from a watch.
type planVersion struct {
	revision uint64
	uid      types.UID
	stage    stage
	// deleted is set if the InstallPlan was deleted.
	deleted bool
	// foreign is set if the test has written this version.
	foreign bool
	// at is the time at which the watch delivered it.
	at time.Time
}

// subscriptionVersion is one version of a Subscription from a watch.
type subscriptionVersion struct {
	revision uint64
	// shows is what the status shows about the InstallPlan; nil if it refers to none.
	shows *told
	// version is the version of the InstallPlan in the status.
	version string
	ledger  transitionlog.Log
	// unread is the error of a transition log that cannot be parsed.
	unread error
	at     time.Time
}

// record is the history of one Subscription and its InstallPlans, in order.
type record struct {
	plans         []planVersion
	subscriptions []subscriptionVersion
	// installed is set if a deleted InstallPlan was complete. Then the Subscription must show that
	// it is missing. Otherwise the InstallPlan is forgotten.
	installed bool
}

// passage is the time of an InstallPlan at a stage: one actual stage.
type passage struct {
	told

	// from and to are the revisions at which the stage began and ended; to is zero if it has not
	// ended. began and left are the times at which the watch delivered these.
	from, to    uint64
	began, left time.Time
	// foreign is set if the test has set this stage.
	foreign bool
	// optional is set if the stage need not be shown.
	optional bool
}

// truth returns the actual stages, one InstallPlan after the other.
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

// sighting is a shown or recorded stage, with the time at which it was first shown.
type sighting struct {
	told

	from uint64
	at   time.Time
	// version is the version of the InstallPlan that is named first. versions are all versions that
	// are named with it.
	version  string
	versions []string
	// entry is the entry of the log; nil for a stage in the status.
	entry *transitionlog.Transition
}

// showings returns the stages that the status of the Subscription showed, in order.
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

// entryTold returns the stage in an entry of a log.
func entryTold(t *transitionlog.Transition) told {
	return told{plan: t.UID, stage: stage{phase: t.Phase, reason: t.Reason}}
}

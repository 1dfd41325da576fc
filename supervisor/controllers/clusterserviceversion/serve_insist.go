package clusterserviceversion

import (
	"maps"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// freeTellings is the number of Switch actions in a row without a pause. An upgrade needs a
	// few.
	freeTellings = 10
	// longestRest is the longest pause between two of them.
	longestRest = 5 * time.Minute
)

// insistence counts the Switch actions of each version in a row. Another client, for example a
// policy, may revert each of them, without an end. It is safe for concurrent use; the zero value is
// ready to use.
type insistence struct {
	mu    sync.Mutex
	known map[wording]tellings
}

// wording identifies the version and its generation: another generation may have other content.
type wording struct {
	csv        types.UID
	generation int64
}

type tellings struct {
	count int
	last  time.Time
}

func wordingOf(csv *operatorsv1alpha1.ClusterServiceVersion) wording {
	return wording{csv.UID, csv.Generation}
}

// told records a Switch action.
func (i *insistence) told(w wording, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(now)
	if i.known == nil {
		i.known = map[wording]tellings{}
	}
	i.known[w] = tellings{count: i.known[w].count + 1, last: now}
}

// rest returns the pause before the next Switch action.
func (i *insistence) rest(w wording, now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(now)
	t := i.known[w]
	if t.count < freeTellings {
		return 0
	}
	// Each pause is twice the one before; the limit bounds the shift.
	rest := min(time.Second<<min(t.count-freeTellings, 10), longestRest)
	return max(0, rest-now.Sub(t.last))
}

// forget drops the counts of versions without recent actions.
func (i *insistence) forget(now time.Time) {
	maps.DeleteFunc(i.known, func(_ wording, t tellings) bool { return now.Sub(t.last) > 2*longestRest })
}

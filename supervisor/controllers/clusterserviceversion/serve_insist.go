package clusterserviceversion

import (
	"maps"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// freeTellings is how often in a row the API server is told without a rest. An upgrade
	// takes a few.
	freeTellings = 10
	// longestRest is the longest rest between two times.
	longestRest = 5 * time.Minute
)

// insistence remembers how often in a row the API server has been told of a version. Where
// somebody else, a policy for one, changes back what it is told, neither side would ever
// end. Its methods may be called from any goroutine; the zero value is ready.
type insistence struct {
	mu    sync.Mutex
	known map[wording]tellings
}

// wording is what is told: another generation of a version may be another thing.
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

// told notes that the API server has just been told.
func (i *insistence) told(w wording, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(now)
	if i.known == nil {
		i.known = map[wording]tellings{}
	}
	i.known[w] = tellings{count: i.known[w].count + 1, last: now}
}

// rest says how long to wait before it is told again.
func (i *insistence) rest(w wording, now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(now)
	t := i.known[w]
	if t.count < freeTellings {
		return 0
	}
	// Each rest is twice the one before; the limit keeps the shift small.
	rest := min(time.Second<<min(t.count-freeTellings, 10), longestRest)
	return max(0, rest-now.Sub(t.last))
}

// forget ends the rows of those that have been left in peace.
func (i *insistence) forget(now time.Time) {
	maps.DeleteFunc(i.known, func(_ wording, t tellings) bool { return now.Sub(t.last) > 2*longestRest })
}

package webhook

import (
	"maps"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// freeSwitches is the number of Switch actions in a row without a pause. An upgrade needs a few.
	freeSwitches = 10
	// longestPause is the longest pause between two of them.
	longestPause = 5 * time.Minute
)

// switches counts the Switch actions of each version in a row. Another client, for example a
// policy, may revert each of them, without an end. It is safe for concurrent use; the zero value is
// ready to use.
type switches struct {
	mu    sync.Mutex
	known map[generation]row
}

// generation is a version and its generation: another generation may have other content.
type generation struct {
	csv        types.UID
	generation int64
}

// row is a number of Switch actions in a row, and the time of the last.
type row struct {
	count int
	last  time.Time
}

func generationOf(csv *operatorsv1alpha1.ClusterServiceVersion) generation {
	return generation{csv.UID, csv.Generation}
}

// record records a Switch action.
func (s *switches) record(g generation, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld(now)
	if s.known == nil {
		s.known = map[generation]row{}
	}
	s.known[g] = row{count: s.known[g].count + 1, last: now}
}

// pause returns the pause before the next Switch action.
func (s *switches) pause(g generation, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld(now)
	r := s.known[g]
	if r.count < freeSwitches {
		return 0
	}
	// Each pause is twice the one before; the limit bounds the shift.
	pause := min(time.Second<<min(r.count-freeSwitches, 10), longestPause)
	return max(0, pause-now.Sub(r.last))
}

// dropOld drops the counts of versions without recent actions.
func (s *switches) dropOld(now time.Time) {
	maps.DeleteFunc(s.known, func(_ generation, r row) bool { return now.Sub(r.last) > 2*longestPause })
}

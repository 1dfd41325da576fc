package webhook

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// switchesWithoutPause is the number of Switch actions in a row without a pause between them. An upgrade needs a few.
	switchesWithoutPause = 10
	// longestPause is the longest pause between two of them.
	longestPause = 5 * time.Minute
)

// switchCounter counts the Switch actions of each version in a row. Another client, for example a
// policy, may revert each of them, without an end.
type switchCounter = apply.Retries[generation, struct{}]

func newSwitchCounter() *switchCounter {
	return &switchCounter{Backoff: apply.Backoff{First: time.Second, Max: longestPause}, Free: switchesWithoutPause - 1}
}

// generation is a version and its generation: another generation may have other content.
type generation struct {
	csv        types.UID
	generation int64
}

func generationOf(csv *operatorsv1alpha1.ClusterServiceVersion) generation {
	return generation{csv.UID, csv.Generation}
}

package digest

import (
	"fmt"
	"hash/fnv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// minInterval is the shortest interval between queries of the registry for one catalog.
const minInterval = 5 * time.Second

// PollInterval returns how often to query the registry for a new digest; 0 for never. problem
// describes an invalid setting in the CatalogSource.
func PollInterval(source *operatorsv1alpha1.CatalogSource) (interval time.Duration, problem string) {
	if !source.Poll() {
		return 0, ""
	}
	poll := source.Spec.UpdateStrategy.RegistryPoll
	if poll.ParsingError != "" {
		return operatorsv1alpha1.DefaultRegistryPollDuration, poll.ParsingError
	}
	if poll.Interval == nil {
		return operatorsv1alpha1.DefaultRegistryPollDuration, olmtext.IntervalEmpty
	}
	if poll.Interval.Duration <= 0 {
		return operatorsv1alpha1.DefaultRegistryPollDuration, olmtext.IntervalInvalid(
			fmt.Errorf("%q is not above zero", poll.RawInterval))
	}
	if poll.Interval.Duration < minInterval {
		return minInterval, fmt.Sprintf("spec.updateStrategy.registryPoll.interval is %s, and %s is used instead; set it to %s or more",
			poll.Interval.Duration, minInterval, minInterval)
	}
	return poll.Interval.Duration, ""
}

// nextPoll returns when to query the registry again; zero for never. Jitter by UID spreads catalogs
// that were created together. A recorded poll in the future comes from another clock and is
// ignored.
func nextPoll(source *operatorsv1alpha1.CatalogSource, last *result, now time.Time) time.Time {
	interval, _ := PollInterval(source)
	if interval == 0 || image.IsDigest(source.Spec.Image) {
		return time.Time{}
	}
	previous := source.CreationTimestamp.Time
	if polled := source.Status.LatestImageRegistryPoll; polled != nil && polled.After(previous) && !polled.After(now) {
		previous = polled.Time
	}
	if last != nil && last.time.After(previous) {
		previous = last.time
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(source.UID))
	const parts = 1000
	jitter := interval / 10 * time.Duration(sum.Sum32()%parts) / parts
	return previous.Add(interval + jitter)
}

// times are the times that determine whether a query is due.
type times struct {
	now time.Time
	// retry is when to repeat a failed query.
	retry time.Time
	// unpulled is since when a node has been unable to pull the running image; zero if none is.
	unpulled time.Time
	// policy is the version of the policy for signatures.
	policy string
}

// isDue reports whether to query the registry now. Otherwise, next is when to query it; zero for
// at the next change.
func isDue(source *operatorsv1alpha1.CatalogSource, running *Image, last *result, t times) (due bool, next time.Time) {
	if last != nil && last.image.Spec != source.Spec.Image {
		last = nil
	}
	from := func(at time.Time) (bool, time.Time) {
		return !at.IsZero() && !t.now.Before(at), at
	}
	switch {
	case last != nil && last.err != nil && (last.generation != source.Generation || last.policy != t.policy):
		// The change may have fixed the error.
		return true, time.Time{}
	case last != nil && last.err != nil:
		return from(t.retry)
	case last == nil && !isFixedAt(running, source.Spec.Image):
		return true, time.Time{}
	default:
		return from(earlier(nextPoll(source, last, t.now), nextAfterPullFailure(source, last, t.unpulled)))
	}
}

// nextAfterPullFailure returns when to query the registry because a node cannot pull the resolved
// digest. The tag may have moved and the old content may have been deleted. The pauses double.
func nextAfterPullFailure(source *operatorsv1alpha1.CatalogSource, last *result, unpulled time.Time) time.Time {
	switch {
	case unpulled.IsZero(), image.IsDigest(source.Spec.Image):
		return time.Time{}
	case last == nil:
		return unpulled
	default:
		return last.time.Add(min(max(last.time.Sub(unpulled), backoff.First), backoff.Max))
	}
}

// earlier returns the earlier of two times, ignoring zero times.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// isFixedAt reports whether the wanted image runs by its digest.
func isFixedAt(running *Image, wanted string) bool {
	return running != nil && running.Spec == wanted && running.IsFixed()
}

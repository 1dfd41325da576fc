package catalogsource

import (
	"fmt"
	"hash/fnv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/bundles/image"
)

// minInterval is the shortest interval between requests to the registry for one catalog.
const minInterval = 5 * time.Second

// pollInterval returns how often to check the registry for a new image; 0 for never. problem
// describes an invalid setting in the CatalogSource.
func pollInterval(source *operatorsv1alpha1.CatalogSource) (interval time.Duration, problem string) {
	if !source.Poll() {
		return 0, ""
	}
	poll := source.Spec.UpdateStrategy.RegistryPoll
	if poll.ParsingError != "" {
		return operatorsv1alpha1.DefaultRegistryPollDuration, poll.ParsingError
	}
	if poll.Interval == nil || poll.Interval.Duration <= 0 {
		return operatorsv1alpha1.DefaultRegistryPollDuration, fmt.Sprintf(
			"error parsing spec.updateStrategy.registryPoll.interval. Using the default value of %s instead. Error: %q is not above zero",
			operatorsv1alpha1.DefaultRegistryPollDuration, poll.RawInterval)
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
func nextPoll(source *operatorsv1alpha1.CatalogSource, answer *Answer, now time.Time) time.Time {
	interval, _ := pollInterval(source)
	if interval == 0 || image.IsDigest(source.Spec.Image) {
		return time.Time{}
	}
	last := source.CreationTimestamp.Time
	if polled := source.Status.LatestImageRegistryPoll; polled != nil && polled.After(last) && !polled.After(now) {
		last = polled.Time
	}
	if answer != nil && answer.Time.After(last) {
		last = answer.Time
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(source.UID))
	const parts = 1000
	jitter := interval / 10 * time.Duration(sum.Sum32()%parts) / parts
	return last.Add(interval + jitter)
}

// moments are the times that the decision to query the registry depends on.
type moments struct {
	now time.Time
	// retry is when to repeat a failed request.
	retry time.Time
	// unpulled is since when a node has been unable to pull the running image; zero if none is.
	unpulled time.Time
}

// question reports whether to query the registry now. Otherwise, next is when to query it; zero for
// at the next change.
func question(source *operatorsv1alpha1.CatalogSource, running *Pin, answer *Answer, t moments) (ask bool, next time.Time) {
	if answer != nil && answer.Pin.Image != source.Spec.Image {
		answer = nil
	}
	due := func(at time.Time) (bool, time.Time) {
		return !at.IsZero() && !t.now.Before(at), at
	}
	switch {
	case answer != nil && answer.Err != nil && answer.Generation != source.Generation:
		// The change may have fixed the error.
		return true, time.Time{}
	case answer != nil && answer.Err != nil:
		return due(t.retry)
	case answer == nil && !isFixedAt(running, source.Spec.Image):
		return true, time.Time{}
	default:
		return due(earlier(nextPoll(source, answer, t.now), nextDoubt(source, answer, t.unpulled)))
	}
}

// nextDoubt returns when to query the registry because a node cannot pull the resolved digest. The
// tag may have moved and the old content may have been deleted. The pauses double.
func nextDoubt(source *operatorsv1alpha1.CatalogSource, answer *Answer, unpulled time.Time) time.Time {
	switch {
	case unpulled.IsZero(), image.IsDigest(source.Spec.Image):
		return time.Time{}
	case answer == nil:
		return unpulled
	default:
		return answer.Time.Add(min(max(answer.Time.Sub(unpulled), firstPause), maxPause))
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
func isFixedAt(running *Pin, wanted string) bool {
	return running != nil && running.Image == wanted && running.fixed()
}

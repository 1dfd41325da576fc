package timeline

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracker stores the returned facts, so each fact is returned once. It is not safe for concurrent use.
type Tracker struct {
	told map[types.UID]map[string]Line
}

// NewTracker returns an empty tracker.
func NewTracker() *Tracker {
	return &Tracker{told: map[types.UID]map[string]Line{}}
}

// Observe returns the lines of the new facts about an object, with a time.
func (t *Tracker) Observe(object client.Object, at time.Duration) []Line {
	told := t.told[object.GetUID()]
	if told == nil {
		told = map[string]Line{}
		t.told[object.GetUID()] = told
	}
	var news []Line
	now := map[string]Line{}
	for _, fact := range Facts(object) {
		now[fact.Key] = fact.Line
		if last, known := told[fact.Key]; known && last == fact.Line {
			continue
		}
		line := fact.Line
		line.At = at
		news = append(news, line)
	}
	t.told[object.GetUID()] = now
	return news
}

// Gone returns the line of a deleted object; none if no fact about it was returned.
func (t *Tracker) Gone(object client.Object, at time.Duration) []Line {
	told := t.told[object.GetUID()]
	delete(t.told, object.GetUID())
	for _, fact := range Facts(object) {
		if _, known := told[fact.Key]; known && fact.Line.Subject != StepSubject {
			line := fact.Line
			return []Line{{At: at, Subject: line.Subject, Name: line.Name, State: "deleted"}}
		}
	}
	return nil
}

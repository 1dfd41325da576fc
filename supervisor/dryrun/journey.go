package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles/drawing"
)

// Journey returns the forecast as a diagram: the versions of each Subscription, from the present one to the
// last.
func (f *Forecast) Journey() *drawing.Journey {
	j := &journey{Journey: &drawing.Journey{Title: f.headline()}, lanes: map[string]int{}}
	for _, s := range slices.Concat(f.UpToDate, f.UnderWay) {
		note := "up to date"
		if slices.Contains(f.UnderWay, s) {
			note = "being installed"
		}
		j.Stops = append(j.Stops, drawing.Stop{Lane: j.lane(s.Subscription), Kind: drawing.Present, Name: s.Bundle, Version: s.Version, Notes: []string{note}})
	}
	j.addPresent(f)
	j.addSteps(f)
	for _, r := range slices.Concat(f.Refusals, f.Unknown) {
		// The diagram shows only the beginning of the reason.
		reason := strings.TrimPrefix(r.Reason, unsatisfiable)
		j.Stops = append(j.Stops, drawing.Stop{Lane: j.lane(r.Subscription), Kind: drawing.Blocked, Name: r.Package, Notes: []string{reason}})
	}
	return j.Journey
}

// journey is a diagram under construction.
type journey struct {
	*drawing.Journey

	lanes map[string]int
}

// lane returns the lane of a Subscription.
func (j *journey) lane(name string) int {
	if at, ok := j.lanes[name]; ok {
		return at
	}
	j.lanes[name] = len(j.Lanes)
	j.Lanes = append(j.Lanes, name)
	return j.lanes[name]
}

// laneOf returns the lane of a step's Subscription. A generated Subscription is labelled with its package.
func (j *journey) laneOf(s *Step, name string) int {
	at := j.lane(name)
	if s.Generated {
		j.Lanes[at] = subscriptions(s)
	}
	return at
}

// addPresent adds the versions at the start of each lane.
func (j *journey) addPresent(f *Forecast) {
	begun := map[string]bool{}
	for _, s := range slices.Concat(f.UpToDate, f.UnderWay) {
		begun[s.Subscription] = true
	}
	add := func(subscription, bundle, version string) {
		if !begun[subscription] && bundle != "" {
			j.Stops = append(j.Stops, drawing.Stop{Lane: j.lane(subscription), Kind: drawing.Present, Name: bundle, Version: version})
		}
		begun[subscription] = true
	}
	for i := range f.Steps {
		for _, name := range f.Steps[i].Subscriptions {
			add(name, f.Steps[i].Replaces, f.Steps[i].FromVersion)
		}
	}
	for _, r := range slices.Concat(f.Refusals, f.Unknown) {
		add(r.Subscription, r.Stays, "")
	}
}

// addSteps adds the versions that are installed.
func (j *journey) addSteps(f *Forecast) {
	first := len(j.Stops)
	var needs [][]Need
	for i := range f.Steps {
		s := &f.Steps[i]
		kind := drawing.Reached
		if s.Approval == Manual {
			kind = drawing.Awaited
		}
		for _, name := range lanes(s) {
			notes := []string{fmt.Sprintf("step %d", s.Order), s.Catalog + " " + s.Channel, s.Because}
			if s.Generated {
				notes = append(notes, "makes Subscription "+name)
			}
			if s.Unfollowed != "" {
				notes = append(notes, s.Unfollowed)
			}
			notes = append(notes, s.Deprecations...)
			j.Stops = append(j.Stops, drawing.Stop{Lane: j.laneOf(s, name), Kind: kind, Name: s.Bundle, Version: s.Version, Notes: notes})
			needs = append(needs, s.Needs)
		}
	}
	for i, list := range needs {
		for _, need := range list {
			at := j.Stop(need.MetBy)
			stop := &j.Stops[first+i]
			if at >= 0 && !slices.Contains(stop.Needs, at) {
				stop.Needs = append(stop.Needs, at)
			}
		}
	}
}

// lanes returns the Subscriptions in whose lanes a step appears. A step without a Subscription has its own
// lane.
func lanes(s *Step) []string {
	if s.Unfollowed != "" {
		return []string{subscriptions(s)}
	}
	return s.Subscriptions
}

// subscriptions returns the Subscriptions of a step as the text of a cell.
func subscriptions(s *Step) string {
	if s.Generated {
		return s.Package + " (generated)"
	}
	if s.Unfollowed != "" {
		return s.Package + " (none)"
	}
	return strings.Join(s.Subscriptions, ", ")
}

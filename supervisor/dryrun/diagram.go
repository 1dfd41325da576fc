package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles/drawing"
)

// Diagram returns the result as a diagram: the versions of each Subscription, from the present one to the
// last.
func (res *Result) Diagram() *drawing.UpgradePath {
	d := &diagram{UpgradePath: &drawing.UpgradePath{Title: res.headline()}, lanes: map[string]int{}}
	for _, s := range slices.Concat(res.UpToDate, res.UnderWay) {
		note := "up to date"
		if slices.Contains(res.UnderWay, s) {
			note = "being installed"
		}
		d.Stops = append(d.Stops, drawing.Stop{Lane: d.lane(s.Subscription), Kind: drawing.Present, Name: s.Bundle, Version: s.Version, Notes: []string{note}})
	}
	d.addPresent(res)
	d.addSteps(res)
	for _, r := range slices.Concat(res.Refusals, res.Unknown) {
		// The diagram shows only the beginning of the reason.
		reason := strings.TrimPrefix(r.Reason, unsatisfiable)
		d.Stops = append(d.Stops, drawing.Stop{Lane: d.lane(r.Subscription), Kind: drawing.Blocked, Name: r.Package, Notes: []string{reason}})
	}
	return d.UpgradePath
}

// diagram is a diagram under construction.
type diagram struct {
	*drawing.UpgradePath

	lanes map[string]int
}

// lane returns the lane of a Subscription.
func (d *diagram) lane(name string) int {
	if at, ok := d.lanes[name]; ok {
		return at
	}
	d.lanes[name] = len(d.Lanes)
	d.Lanes = append(d.Lanes, name)
	return d.lanes[name]
}

// laneOf returns the lane of a step's Subscription. A generated Subscription is labelled with its package.
func (d *diagram) laneOf(s *Step, name string) int {
	at := d.lane(name)
	if s.Generated {
		d.Lanes[at] = subscriptions(s)
	}
	return at
}

// addPresent adds the versions at the start of each lane.
func (d *diagram) addPresent(res *Result) {
	begun := map[string]bool{}
	for _, s := range slices.Concat(res.UpToDate, res.UnderWay) {
		begun[s.Subscription] = true
	}
	add := func(subscription, bundle, version string) {
		if !begun[subscription] && bundle != "" {
			d.Stops = append(d.Stops, drawing.Stop{Lane: d.lane(subscription), Kind: drawing.Present, Name: bundle, Version: version})
		}
		begun[subscription] = true
	}
	for i := range res.Steps {
		for _, name := range res.Steps[i].Subscriptions {
			add(name, res.Steps[i].Replaces, res.Steps[i].FromVersion)
		}
	}
	for _, r := range slices.Concat(res.Refusals, res.Unknown) {
		add(r.Subscription, r.Stays, "")
	}
}

// addSteps adds the versions that are installed.
func (d *diagram) addSteps(res *Result) {
	first := len(d.Stops)
	var needs [][]Dependency
	for i := range res.Steps {
		s := &res.Steps[i]
		kind := drawing.Reached
		if s.Approval == Manual {
			kind = drawing.Awaited
		}
		for _, name := range lanes(s) {
			notes := []string{fmt.Sprintf("step %d", s.Order), s.Catalog + " " + s.Channel, s.Because}
			if s.Generated {
				notes = append(notes, "creates Subscription "+name)
			}
			if s.Unfollowed != "" {
				notes = append(notes, s.Unfollowed)
			}
			notes = append(notes, s.Deprecations...)
			d.Stops = append(d.Stops, drawing.Stop{Lane: d.laneOf(s, name), Kind: kind, Name: s.Bundle, Version: s.Version, Notes: notes})
			needs = append(needs, s.Needs)
		}
	}
	for i, list := range needs {
		for _, need := range list {
			at := d.Stop(need.MetBy)
			stop := &d.Stops[first+i]
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

// Package rules lists the rules of compatibility with Operator Lifecycle Manager (OLM) that test/compat
// checks.
package rules

import (
	"fmt"
	"slices"
)

// Group is a set of rules about one part of the API.
type Group struct {
	// Letter is the first letter of the rules' IDs.
	Letter string
	Title  string
	Rules  []Rule
}

// Rule is one observable behaviour.
type Rule struct {
	// ID is the letter of the group with a number, such as B12. A suffix separates variants: B12-Role.
	ID string
	// Given is the situation, and Then is what a client reads afterwards.
	Given, Then string
	// Difference states what OLM does instead. It is empty if OLM does the same.
	Difference string
	// Reason states why the difference remains. It is set if and only if Difference is set.
	Reason string
}

// All returns the groups, sorted by letter.
func All() []Group {
	groups := slices.Clone(groups)
	slices.SortFunc(groups, func(a, b Group) int {
		if a.Letter < b.Letter {
			return -1
		}
		return 1
	})
	return groups
}

// Find returns the rule with an ID.
func Find(id string) (Rule, error) {
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.ID == id {
				return r, nil
			}
		}
	}
	return Rule{}, fmt.Errorf("no rule has the ID %s", id)
}

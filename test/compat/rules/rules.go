// Package rules lists the rules of compatibility with Operator Lifecycle Manager (OLM) that test/compat
// checks.
package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Group is a set of rules about one part of the API.
type Group struct {
	// Letter is the first letter of the rules' IDs.
	Letter string
	Title  string
	Rules  []Rule
}

// with returns the group with further rules.
func (g Group) with(rules ...[]Rule) Group {
	g.Rules = slices.Concat(g.Rules, slices.Concat(rules...))
	return g
}

// Rule is one observable behaviour.
type Rule struct {
	// ID is the letter of the group with a number, such as B12. A suffix separates variants: B12-Role.
	ID string
	// Given is the situation, and Then is what a client reads afterwards.
	Given, Then string
	// Difference states what OLM does instead. It is set if and only if the case fails with OLM.
	Difference string
	// Reason states why the difference remains. It is set if and only if Difference is set.
	Reason string
	// Untried states why the case does not run with OLM. It is empty if the case runs. If it is set, Difference states
	// what the sources and the documentation of OLM say.
	Untried string
	// Rest is how long the case waits. The suite shortens it, and `make soak` does not.
	Rest time.Duration
}

// number returns the number in the ID. Rules without one follow all others.
func (r Rule) number() int {
	digits, _, _ := strings.Cut(r.ID[1:], "-")
	number, err := strconv.Atoi(strings.TrimRight(digits, "abcdefghijklmnopqrstuvwxyz"))
	if err != nil {
		return math.MaxInt
	}
	return number
}

// Explanation returns the difference and the reason as sentences, or an empty text.
func (r Rule) Explanation() string {
	if r.Difference == "" {
		return ""
	}
	return sentence(r.Difference) + " " + sentence(r.Reason)
}

// sentence begins a text with a capital letter and ends it with a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// untried sets why the cases of rules do not run with OLM.
func untried(why string, list []Rule) []Rule {
	for i := range list {
		list[i].Untried = why
	}
	return list
}

// All returns the groups sorted by letter, with their rules sorted by number.
func All() []Group {
	groups := slices.Clone(groups)
	for i := range groups {
		groups[i].Rules = slices.SortedStableFunc(slices.Values(groups[i].Rules), func(a, b Rule) int { return cmp.Compare(a.number(), b.number()) })
	}
	slices.SortFunc(groups, func(a, b Group) int {
		if a.Letter < b.Letter {
			return -1
		}
		return 1
	})
	return groups
}

// ownCommand is why a case does not run with OLM.
const ownCommand = "needs a command of Chandlery"

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

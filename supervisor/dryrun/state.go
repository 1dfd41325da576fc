package dryrun

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// state is the state of a namespace, with the versions that a dry run assumes to be installed.
type state struct {
	input resolution.Input
	// refused are Subscriptions that are not part of the input.
	refused []Refused
	// own holds the version that each Subscription itself installed. The present version of its package may be
	// another Subscription's.
	own map[string]string
	// visited holds the versions that each Subscription has had.
	visited map[string][]string
	// ended holds the reasons why Subscriptions get no further version, whatever the resolver returns.
	ended map[string]Refusal
	// heldBack names the Subscriptions among them that get a version before. This is not an error.
	heldBack map[string]bool
}

func newState(r Request) *state {
	s := &state{
		input: r.Input, refused: r.Refused,
		own: owned(r.Input.Subscriptions), visited: map[string][]string{}, ended: map[string]Refusal{}, heldBack: map[string]bool{},
	}
	// The request must not be changed.
	s.input.Subscriptions = slices.Clone(r.Input.Subscriptions)
	s.input.Operators = slices.Clone(r.Input.Operators)
	return s
}

// owned returns the version that each Subscription installed. A version that no Subscription installed belongs
// to each Subscription of its package.
func owned(subs []resolution.Subscription) map[string]string {
	own := map[string]string{}
	for _, sub := range subs {
		installed := slices.ContainsFunc(subs, func(s resolution.Subscription) bool { return s.OwnsInstalled && s.Installed == sub.Installed })
		if sub.OwnsInstalled || !installed {
			own[sub.Name] = sub.Installed
		}
	}
	return own
}

// completeInProgress assumes that versions in progress are installed, unless they are stuck. It returns these versions.
func (s *state) completeInProgress(stuck map[string]Refusal) []InstalledVersion {
	var completed []InstalledVersion
	for i := range s.input.Subscriptions {
		sub := &s.input.Subscriptions[i]
		s.visited[sub.Name] = []string{sub.Installed}
		refusal, isStuck := stuck[sub.Name]
		switch {
		case isStuck:
			s.end(sub, refusal)
		case sub.InProgress:
			sub.InProgress = false
			completed = append(completed, s.installedVersion(*sub))
		}
	}
	return completed
}

// end ends the updates of a Subscription.
func (s *state) end(sub *resolution.Subscription, r Refusal) {
	sub.InProgress = true
	r.Subscription, r.Package, r.Stays = sub.Name, sub.Package, s.own[sub.Name]
	s.ended[sub.Name] = r
}

// endCycles ends the updates of Subscriptions that would return to a previous version, and returns the solution
// without these updates. A channel whose entries replace each other has no end.
func (s *state) endCycles(solution resolution.Solution) resolution.Solution {
	solution = maps.Clone(solution)
	for i := range s.input.Subscriptions {
		sub := &s.input.Subscriptions[i]
		outcome := solution[sub.Name]
		if outcome.Install == nil {
			continue
		}
		start := slices.Index(s.visited[sub.Name], outcome.Install.Bundle)
		if start < 0 {
			continue
		}
		cycle := append(slices.Clone(s.visited[sub.Name][start:]), outcome.Install.Bundle)
		s.end(sub, Refusal{
			Reason: fmt.Sprintf("channel %s of package %s goes round in a circle: %s", outcome.Install.Channel, sub.Package, strings.Join(cycle, " -> ")),
			Remedy: "ask the publisher of the catalog to fix the channel",
		})
		outcome.Install, outcome.Dependencies = nil, nil
		solution[sub.Name] = outcome
	}
	return solution
}

// endRefusedPlans ends the updates of Subscriptions whose plans would install a refused version, and returns the solution
// without these updates. withSteps names the Subscriptions that have steps: a copy holds them back at these steps, and
// is no reason against them.
func (s *state) endRefusedPlans(solution resolution.Solution, r *Request, withSteps map[string]bool) resolution.Solution {
	solution = maps.Clone(solution)
	for _, plan := range installPlans(s.input.Subscriptions, solution) {
		refusal, copied := r.refusalOf(plan)
		if refusal == nil {
			continue
		}
		for i := range s.input.Subscriptions {
			sub := &s.input.Subscriptions[i]
			if !slices.Contains(plan.subscriptions, sub.Name) {
				continue
			}
			s.end(sub, *refusal)
			s.heldBack[sub.Name] = copied && withSteps[sub.Name]
			outcome := solution[sub.Name]
			outcome.Install, outcome.Dependencies = nil, nil
			solution[sub.Name] = outcome
		}
	}
	return solution
}

// requesters returns the Subscriptions of a version. If none requests it, it is a dependency.
func (s *state) requesters(c *resolution.Choice, served []string) Requesters {
	if len(served) > 0 {
		return Requesters{Subscriptions: served}
	}
	name, conflict := s.generated(c)
	if conflict != "" {
		return Requesters{Subscriptions: []string{}, Unfollowed: "creates no Subscription: " + conflict}
	}
	return Requesters{Subscriptions: []string{name}, Generated: true}
}

// generated returns the name of the Subscription that would be created for a dependency, and the reason if it
// would not be. A Subscription that requests the same package, even in vain, or that has the same name,
// prevents it.
func (s *state) generated(c *resolution.Choice) (name, conflict string) {
	name = s.generatedName(c)
	type subscription struct{ name, pkg string }
	var all []subscription
	for _, sub := range s.input.Subscriptions {
		all = append(all, subscription{sub.Name, sub.Package})
	}
	for _, r := range s.refused {
		all = append(all, subscription{r.Subscription, r.Package})
	}
	for _, sub := range all {
		if sub.pkg == c.Package {
			return name, fmt.Sprintf("Subscription %s asks for the package already", sub.name)
		}
	}
	for _, sub := range all {
		if sub.name == name {
			return name, fmt.Sprintf("the Subscription of package %s has the name %s", sub.pkg, name)
		}
	}
	return name, ""
}

// generatedName returns the name of the Subscription that is created for a dependency.
func (s *state) generatedName(c *resolution.Choice) string {
	bundle := plansteps.Bundle{
		Name: c.Bundle, Package: c.Package, Channel: c.Channel,
		Catalog: types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name},
	}
	step, err := plansteps.SubscriptionStep(s.input.Namespace, "preview", bundle)
	if err != nil {
		return strings.Join([]string{c.Package, c.Channel, c.Catalog.Name, c.Catalog.Namespace}, "-")
	}
	return step.Resource.Name
}

// install marks a version as installed. It replaces the previous versions, and becomes the version of the
// Subscriptions of its package. Those that requested it become its owners.
func (s *state) install(c *resolution.Choice, served []string) {
	name, conflict := s.generated(c)
	replaced := map[string]bool{c.Bundle: true, c.Replaces: true}
	for i := range s.input.Subscriptions {
		sub := &s.input.Subscriptions[i]
		if _, ended := s.ended[sub.Name]; ended || sub.Package != c.Package {
			continue
		}
		if sub.Installed != "" {
			replaced[sub.Installed] = true
		}
		sub.Installed, sub.LastInstalled = c.Bundle, ""
		sub.OwnsInstalled = slices.Contains(served, sub.Name)
		delete(s.own, sub.Name)
		if sub.OwnsInstalled {
			s.own[sub.Name] = c.Bundle
		}
		s.visited[sub.Name] = append(s.visited[sub.Name], c.Bundle)
	}
	s.input.Operators = slices.DeleteFunc(s.input.Operators, func(o resolution.Operator) bool { return replaced[o.Name] })
	o := resolution.Operator{Name: c.Bundle}
	if c.Entry != nil {
		o.Subject, o.Requires = c.Entry.Bundle.Subject, c.Entry.Bundle.Requires
	}
	s.input.Operators = append(s.input.Operators, o)
	if len(served) == 0 && conflict == "" {
		s.input.Subscriptions = append(s.input.Subscriptions, resolution.Subscription{
			Name: name, Catalog: c.Catalog, Package: c.Package, Channel: c.Channel, StartingCSV: c.Bundle,
			Installed: c.Bundle, OwnsInstalled: true, Generated: true,
		})
		s.visited[name], s.own[name] = []string{c.Bundle}, c.Bundle
	}
}

// needs returns the dependencies of an installed version, and the versions that meet them.
func (s *state) needs(bundle string) []Dependency {
	i := operator(s.input.Operators, bundle)
	if i < 0 {
		return nil
	}
	var needs []Dependency
	for _, c := range s.input.Operators[i].Requires {
		// Any other version meets a constraint that excludes one.
		if c.Not != nil {
			continue
		}
		for j := range s.input.Operators {
			if j != i && c.MetBy(&s.input.Operators[j].Subject) {
				needs = append(needs, Dependency{Requirement: requirement(&c), MetBy: s.input.Operators[j].Name})
				break
			}
		}
	}
	return needs
}

// requirement returns the text of a dependency: the text of its author, or else the text of messages.
func requirement(c *constraint.Constraint) string {
	if c.FailureMessage != "" {
		return c.FailureMessage
	}
	return c.String()
}

// installedVersion returns the present version of a Subscription.
func (s *state) installedVersion(sub resolution.Subscription) InstalledVersion {
	installed := InstalledVersion{Subscription: sub.Name, Package: sub.Package, Bundle: sub.Installed, Catalog: sub.Catalog.String(), Channel: s.channel(sub)}
	if i := operator(s.input.Operators, sub.Installed); i >= 0 {
		installed.Version = version(s.input.Operators[i].Subject.Version)
	}
	return installed
}

// channel returns the channel of a Subscription.
func (s *state) channel(sub resolution.Subscription) string {
	catalog := s.input.Catalogs[sub.Catalog]
	if sub.Channel != "" || catalog.Content == nil {
		return sub.Channel
	}
	if p := catalog.Content.Package(sub.Package); p != nil {
		return p.DefaultChannel
	}
	return ""
}

func operator(operators []resolution.Operator, name string) int {
	return slices.IndexFunc(operators, func(o resolution.Operator) bool { return name != "" && o.Name == name })
}

// version returns the text of a version; empty for an unknown one.
func version(v semver.Version) string {
	if v.EQ(semver.Version{}) {
		return ""
	}
	return v.String()
}

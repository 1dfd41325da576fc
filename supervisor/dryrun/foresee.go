package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// maxWaves bounds how far is looked ahead. The longest channels in use have some
// hundred versions.
const maxWaves = 1000

// Foresee works out what would happen, wave by wave. The error is that of ctx:
// what is wrong with a Subscription is part of the forecast.
func Foresee(ctx context.Context, r Request) (*Forecast, error) {
	return newWalk(r, resolver.Resolve).run(ctx)
}

// walk is a namespace on its way.
type walk struct {
	request  Request
	problem  resolver.Problem
	resolve  func(context.Context, resolver.Problem) resolver.Solution
	forecast *Forecast
	// own are the versions that each Subscription itself has, which the ones of its
	// package that are present may not be.
	own map[string]string
	// been are the versions that each Subscription has had.
	been map[string][]string
	// ended says of Subscriptions why they go no further, whatever the resolver
	// says.
	ended map[string]Refusal
	// early are the first errors of Subscriptions.
	early map[string]error
	// plans counts the InstallPlans so far.
	plans int
}

func newWalk(r Request, resolve func(context.Context, resolver.Problem) resolver.Solution) *walk {
	w := &walk{
		request: r, problem: r.Problem, resolve: resolve,
		forecast: &Forecast{
			Namespace: r.Problem.Namespace, Blocked: r.Blocked, Notes: r.Notes, Catalogs: sources(r),
			// Lists of an interface are empty, not missing.
			Steps: []Step{}, Refusals: []Refusal{}, Unknown: []Refusal{}, UpToDate: []Standing{},
		},
		own:   owners(r.Problem.Subscriptions),
		been:  map[string][]string{},
		ended: map[string]Refusal{},
		early: map[string]error{},
	}
	// The request stays as it is.
	w.problem.Subscriptions = slices.Clone(r.Problem.Subscriptions)
	w.problem.Operators = slices.Clone(r.Problem.Operators)
	return w
}

// owners says which versions are whose: of what nobody has brought, each Subscription
// of the package takes possession.
func owners(subs []resolver.Subscription) map[string]string {
	own := map[string]string{}
	for _, sub := range subs {
		brought := slices.ContainsFunc(subs, func(s resolver.Subscription) bool { return s.Holds && s.Installed == sub.Installed })
		if sub.Holds || !brought {
			own[sub.Name] = sub.Installed
		}
	}
	return own
}

// sources lists the catalogs of a request by name.
func sources(r Request) []Source {
	out := []Source{}
	for key, c := range r.Problem.Catalogs {
		s := Source{Catalog: key.String(), From: r.Catalogs[key]}
		if c.Content != nil {
			s.Packages = len(c.Content.Packages())
		}
		if c.Err != nil {
			s.Error = c.Err.Error()
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Source) int { return strings.Compare(a.Catalog, b.Catalog) })
	return out
}

// run goes on until a wave installs nothing.
func (w *walk) run(ctx context.Context) (*Forecast, error) {
	w.begin()
	for wave := 1; ; wave++ {
		solution := w.resolve(ctx, w.problem)
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("looking ahead in namespace %s: %w", w.problem.Namespace, err)
		}
		if wave > maxWaves {
			w.forecast.Notes = append(w.forecast.Notes, fmt.Sprintf("more would follow: this looks no further than %d updates in a row", maxWaves))
			return w.finish(solution), nil
		}
		w.stopRounds(solution)
		if !w.take(wave, solution) {
			return w.finish(solution), nil
		}
	}
}

// begin takes what is under way for done, except where it is known that it will
// not be.
func (w *walk) begin() {
	for i := range w.problem.Subscriptions {
		sub := &w.problem.Subscriptions[i]
		w.been[sub.Name] = []string{sub.Installed}
		why, stuck := w.request.Stuck[sub.Name]
		switch {
		case stuck:
			sub.Frozen = true
			w.ended[sub.Name] = Refusal{Subscription: sub.Name, Package: sub.Package, Stays: w.own[sub.Name], Reason: why}
		case sub.Frozen:
			sub.Frozen = false
			w.forecast.UnderWay = append(w.forecast.UnderWay, w.standing(*sub))
		}
	}
}

// stopRounds ends the way of Subscriptions that would come back to a version that
// they have had: a channel whose entries replace each other has no end.
func (w *walk) stopRounds(solution resolver.Solution) {
	for i := range w.problem.Subscriptions {
		sub := &w.problem.Subscriptions[i]
		outcome := solution[sub.Name]
		if outcome.Install == nil || !slices.Contains(w.been[sub.Name], outcome.Install.Bundle) {
			continue
		}
		round := append(slices.Clone(w.been[sub.Name]), outcome.Install.Bundle)
		round = round[slices.Index(round, outcome.Install.Bundle):]
		sub.Frozen = true
		w.ended[sub.Name] = Refusal{
			Subscription: sub.Name, Package: sub.Package, Stays: w.own[sub.Name],
			Reason: fmt.Sprintf("channel %s of package %s goes round in a circle: %s", outcome.Install.Channel, sub.Package, strings.Join(round, " -> ")),
			Remedy: "ask the publisher of the catalog to fix the channel",
		}
		outcome.Install, outcome.Along = nil, nil
		solution[sub.Name] = outcome
	}
}

// take adds the steps of one wave and pretends that they have been done. False
// when there are none.
func (w *walk) take(wave int, solution resolver.Solution) bool {
	for name, outcome := range solution {
		if outcome.Err != nil && w.early[name] == nil {
			w.early[name] = outcome.Err
		}
	}
	first := len(w.forecast.Steps)
	before := slices.Clone(w.problem.Operators)
	groups := w.groups(solution)
	for _, group := range groups {
		w.plans++
		approval := w.approval(group.subscriptions)
		for _, c := range group.ordered() {
			step := w.step(c, group.served[c.Bundle], before)
			step.Wave, step.Plan, step.Approval, step.Order = wave, w.plans, approval, len(w.forecast.Steps)+1
			w.forecast.Steps = append(w.forecast.Steps, step)
			w.install(c, group.served[c.Bundle])
		}
	}
	for i := range w.forecast.Steps[first:] {
		w.link(&w.forecast.Steps[first+i])
	}
	return len(groups) > 0
}

// approval of a plan is manual when one of the Subscriptions that it serves
// wants that.
func (w *walk) approval(subscriptions []string) Approval {
	if slices.ContainsFunc(subscriptions, func(name string) bool { return w.request.Manual[name] }) {
		return Manual
	}
	return Automatic
}

// step describes the installation of a version for Subscriptions; for none when
// it comes along.
func (w *walk) step(c *resolver.Choice, subscriptions []string, before []resolver.Operator) Step {
	s := Step{
		Subscriptions: subscriptions, Action: Install,
		Package: c.Package, Channel: c.Channel, Catalog: c.Catalog.String(), Bundle: c.Bundle, Because: c.Because,
	}
	if len(subscriptions) == 0 {
		w.describeAlong(&s, c)
	}
	if i := operator(before, c.Replaces); i >= 0 {
		s.Action, s.Replaces, s.FromVersion = Update, c.Replaces, version(before[i].Subject.Version)
	}
	if c.Entry == nil {
		return s
	}
	b := c.Entry.Bundle
	s.Version, s.Image = version(b.Subject.Version), b.Image
	deprecated := func(what, message string) {
		if message != "" {
			s.Deprecations = append(s.Deprecations, what+" is deprecated: "+message)
		}
	}
	deprecated("package "+c.Package, b.Package.Deprecation)
	deprecated("channel "+c.Channel, c.Entry.Channel.Deprecation)
	deprecated("bundle "+c.Bundle, b.Deprecation)
	return s
}

// describeAlong says what becomes of a version that no Subscription asks for.
func (w *walk) describeAlong(s *Step, c *resolver.Choice) {
	name, keeper := w.generated(c)
	s.Subscriptions = []string{}
	if keeper != "" {
		s.Unfollowed = "makes no Subscription: " + keeper
		return
	}
	s.Generated, s.Subscriptions = true, []string{name}
}

// generated is the name of the Subscription that would be made for a version that
// comes along, and why it would not be: who asks for a package, even if in vain,
// or has the name, keeps it from being made.
func (w *walk) generated(c *resolver.Choice) (name, keeper string) {
	name = w.generatedName(c)
	type subscription struct{ name, pkg string }
	var all []subscription
	for _, s := range w.problem.Subscriptions {
		all = append(all, subscription{s.Name, s.Package})
	}
	for _, r := range w.request.Refused {
		all = append(all, subscription{r.Subscription, r.Package})
	}
	for _, s := range all {
		if s.pkg == c.Package {
			return name, fmt.Sprintf("Subscription %s asks for the package already", s.name)
		}
	}
	for _, s := range all {
		if s.name == name {
			return name, fmt.Sprintf("the Subscription of package %s has the name %s", s.pkg, name)
		}
	}
	return name, ""
}

// generatedName is the name of the Subscription that is made for a version that
// comes along.
func (w *walk) generatedName(c *resolver.Choice) string {
	bundle := plan.Bundle{
		Name: c.Bundle, Package: c.Package, Channel: c.Channel,
		Catalog: types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name},
	}
	step, err := plan.SubscriptionStep(w.problem.Namespace, "preview", bundle)
	if err != nil {
		return strings.Join([]string{c.Package, c.Channel, c.Catalog.Name, c.Catalog.Namespace}, "-")
	}
	return step.Resource.Name
}

// install pretends that a version has been installed: it is there instead of what
// it takes over from, and the Subscriptions of the package have it; those that it
// serves have brought it.
func (w *walk) install(c *resolver.Choice, served []string) {
	name, keeper := w.generated(c)
	replaced := map[string]bool{c.Bundle: true, c.Replaces: true}
	for i := range w.problem.Subscriptions {
		sub := &w.problem.Subscriptions[i]
		if sub.Package != c.Package || w.refused(sub.Name) {
			continue
		}
		if sub.Installed != "" {
			replaced[sub.Installed] = true
		}
		sub.Installed, sub.Before = c.Bundle, ""
		sub.Holds = slices.Contains(served, sub.Name)
		delete(w.own, sub.Name)
		if sub.Holds {
			w.own[sub.Name] = c.Bundle
		}
		w.been[sub.Name] = append(w.been[sub.Name], c.Bundle)
	}
	w.problem.Operators = slices.DeleteFunc(w.problem.Operators, func(o resolver.Operator) bool { return replaced[o.Name] })
	o := resolver.Operator{Name: c.Bundle}
	if c.Entry != nil {
		o.Subject, o.Requires = c.Entry.Bundle.Subject, c.Entry.Bundle.Requires
	}
	w.problem.Operators = append(w.problem.Operators, o)
	if len(served) == 0 && keeper == "" {
		w.problem.Subscriptions = append(w.problem.Subscriptions, resolver.Subscription{
			Name: name, Catalog: c.Catalog, Package: c.Package, Channel: c.Channel, StartingCSV: c.Bundle,
			Installed: c.Bundle, Holds: true, Generated: true,
		})
		w.been[name], w.own[name] = []string{c.Bundle}, c.Bundle
	}
}

// refused says whether a Subscription's way has ended.
func (w *walk) refused(name string) bool {
	_, ended := w.ended[name]
	return ended
}

// link says what meets a step's dependencies, once all of its wave is there.
func (w *walk) link(s *Step) {
	i := operator(w.problem.Operators, s.Bundle)
	if i < 0 {
		return
	}
	for _, c := range w.problem.Operators[i].Requires {
		// What must not be there is met by everything else.
		if c.Not != nil {
			continue
		}
		for j := range w.problem.Operators {
			if j != i && c.MetBy(&w.problem.Operators[j].Subject) {
				s.Needs = append(s.Needs, Need{Requirement: requirement(&c), MetBy: w.problem.Operators[j].Name})
				break
			}
		}
	}
}

// requirement words a dependency: as its author has, else as today's messages do.
func requirement(c *constraint.Constraint) string {
	if c.FailureMessage != "" {
		return c.FailureMessage
	}
	return c.String()
}

// standing says what a Subscription has.
func (w *walk) standing(sub resolver.Subscription) Standing {
	s := Standing{Subscription: sub.Name, Package: sub.Package, Bundle: sub.Installed, Catalog: sub.Catalog.String(), Channel: w.channel(sub)}
	if i := operator(w.problem.Operators, sub.Installed); i >= 0 {
		s.Version = version(w.problem.Operators[i].Subject.Version)
	}
	return s
}

// channel is the one that a Subscription follows.
func (w *walk) channel(sub resolver.Subscription) string {
	catalog := w.problem.Catalogs[sub.Catalog]
	if sub.Channel != "" || catalog.Content == nil {
		return sub.Channel
	}
	if p := catalog.Content.Package(sub.Package); p != nil {
		return p.DefaultChannel
	}
	return ""
}

func operator(operators []resolver.Operator, name string) int {
	return slices.IndexFunc(operators, func(o resolver.Operator) bool { return name != "" && o.Name == name })
}

// version writes a version; empty for one that is not known.
func version(v semver.Version) string {
	if v.EQ(semver.Version{}) {
		return ""
	}
	return v.String()
}

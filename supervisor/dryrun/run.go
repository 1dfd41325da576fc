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

// maxWaves is the maximum number of waves. The longest channels in use have some hundred versions.
const maxWaves = 1000

// Run predicts what would happen, wave by wave. The error is the error of ctx. Errors of a Subscription are
// part of the result.
func Run(ctx context.Context, r Request) (*Result, error) {
	return newWalk(r, resolver.Resolve).run(ctx)
}

// walk is the state of the prediction for a namespace.
type walk struct {
	request Request
	problem resolver.Problem
	resolve func(context.Context, resolver.Problem) resolver.Solution
	result  *Result
	// own holds the version that each Subscription itself installed. The present version of its package may be
	// another Subscription's.
	own map[string]string
	// been holds the versions that each Subscription has had.
	been map[string][]string
	// ended holds the reasons why Subscriptions get no further version, whatever the resolver returns.
	ended map[string]Refusal
	// early holds the first error of each Subscription.
	early map[string]error
	// plans is the number of InstallPlans so far.
	plans int
}

func newWalk(r Request, resolve func(context.Context, resolver.Problem) resolver.Solution) *walk {
	w := &walk{
		request: r, problem: r.Problem, resolve: resolve,
		result: &Result{
			Namespace: r.Problem.Namespace, Blocked: r.Blocked, Notes: r.Notes, Catalogs: sources(r),
			// Lists in JSON are empty, not null.
			Steps: []Step{}, Refusals: []Refusal{}, Unknown: []Refusal{}, UpToDate: []Standing{},
		},
		own:   owners(r.Problem.Subscriptions),
		been:  map[string][]string{},
		ended: map[string]Refusal{},
		early: map[string]error{},
	}
	// The request must not be changed.
	w.problem.Subscriptions = slices.Clone(r.Problem.Subscriptions)
	w.problem.Operators = slices.Clone(r.Problem.Operators)
	return w
}

// owners returns the version that each Subscription installed. A version that no Subscription installed belongs
// to each Subscription of its package.
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

// sources returns the catalogs of a request, sorted by name.
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

// run continues until a wave installs nothing.
func (w *walk) run(ctx context.Context) (*Result, error) {
	w.begin()
	for wave := 1; ; wave++ {
		solution := w.resolve(ctx, w.problem)
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("looking ahead in namespace %s: %w", w.problem.Namespace, err)
		}
		if wave > maxWaves {
			w.result.Notes = append(w.result.Notes, fmt.Sprintf("more would follow: this looks no further than %d updates in a row", maxWaves))
			return w.finish(solution), nil
		}
		w.stopRounds(solution)
		if !w.take(wave, solution) {
			return w.finish(solution), nil
		}
	}
}

// begin assumes that versions in progress are installed, unless they are known to be stuck.
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
			w.result.UnderWay = append(w.result.UnderWay, w.standing(*sub))
		}
	}
}

// stopRounds ends the walk of Subscriptions that would return to a previous version. A channel whose entries
// replace each other has no end.
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

// take adds the steps of one wave, and marks them as done. It reports whether there are any.
func (w *walk) take(wave int, solution resolver.Solution) bool {
	for name, outcome := range solution {
		if outcome.Err != nil && w.early[name] == nil {
			w.early[name] = outcome.Err
		}
	}
	first := len(w.result.Steps)
	before := slices.Clone(w.problem.Operators)
	groups := w.groups(solution)
	for _, group := range groups {
		w.plans++
		approval := w.approval(group.subscriptions)
		for _, c := range group.ordered() {
			step := w.step(c, group.served[c.Bundle], before)
			step.Wave, step.Plan, step.Approval, step.Order = wave, w.plans, approval, len(w.result.Steps)+1
			w.result.Steps = append(w.result.Steps, step)
			w.install(c, group.served[c.Bundle])
		}
	}
	for i := range w.result.Steps[first:] {
		w.link(&w.result.Steps[first+i])
	}
	return len(groups) > 0
}

// approval returns Manual if one of the Subscriptions of a plan requires it.
func (w *walk) approval(subscriptions []string) Approval {
	if slices.ContainsFunc(subscriptions, func(name string) bool { return w.request.Manual[name] }) {
		return Manual
	}
	return Automatic
}

// step describes the installation of a version for Subscriptions. There are none for a version that is
// installed as a dependency.
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

// describeAlong describes a version that no Subscription requests.
func (w *walk) describeAlong(s *Step, c *resolver.Choice) {
	name, keeper := w.generated(c)
	s.Subscriptions = []string{}
	if keeper != "" {
		s.Unfollowed = "makes no Subscription: " + keeper
		return
	}
	s.Generated, s.Subscriptions = true, []string{name}
}

// generated returns the name of the Subscription that would be created for a dependency, and the reason if it
// would not be. A Subscription that requests the same package, even in vain, or that has the same name,
// prevents it.
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

// generatedName returns the name of the Subscription that is created for a dependency.
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

// install marks a version as installed. It replaces the previous versions, and becomes the version of the
// Subscriptions of its package. Those that requested it become its owners.
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

// refused reports whether the walk of a Subscription has ended.
func (w *walk) refused(name string) bool {
	_, ended := w.ended[name]
	return ended
}

// link adds the versions that meet a step's dependencies, after all steps of its wave are done.
func (w *walk) link(s *Step) {
	i := operator(w.problem.Operators, s.Bundle)
	if i < 0 {
		return
	}
	for _, c := range w.problem.Operators[i].Requires {
		// Any other version meets a constraint that excludes one.
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

// requirement returns the text of a dependency: the text of its author, or else the text of messages.
func requirement(c *constraint.Constraint) string {
	if c.FailureMessage != "" {
		return c.FailureMessage
	}
	return c.String()
}

// standing returns the present version of a Subscription.
func (w *walk) standing(sub resolver.Subscription) Standing {
	s := Standing{Subscription: sub.Name, Package: sub.Package, Bundle: sub.Installed, Catalog: sub.Catalog.String(), Channel: w.channel(sub)}
	if i := operator(w.problem.Operators, sub.Installed); i >= 0 {
		s.Version = version(w.problem.Operators[i].Subject.Version)
	}
	return s
}

// channel returns the channel of a Subscription.
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

// version returns the text of a version; empty for an unknown one.
func version(v semver.Version) string {
	if v.EQ(semver.Version{}) {
		return ""
	}
	return v.String()
}

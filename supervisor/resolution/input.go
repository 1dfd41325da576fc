package resolution

import "slices"

// input is a problem with its indexes and requests.
type input struct {
	*Problem

	evaluator *evaluator
	operators *operators
	providers *providers
	finder    *finder
	// requests are in order of seniority.
	requests []*request
	// owner holds the request to which a present operator belongs; none if no Subscription claims it.
	owner map[*Operator]*request
}

// newInput returns the input of a problem, and the outcomes that are known already. A Subscription without candidates,
// or in conflict with a senior one, has an outcome and no request.
func newInput(p *Problem) (*input, Solution) {
	e := newEvaluator()
	ops := newOperators(p.Operators, e)
	in := &input{
		Problem: p, evaluator: e, operators: ops, providers: newProviders(p, ops, e),
		finder: &finder{catalogs: p.Catalogs, operators: ops}, owner: map[*Operator]*request{},
	}
	known := Solution{}
	c := claims{finder: in.finder, senior: map[string]*Subscription{}}
	for _, sub := range bySeniority(p.Subscriptions) {
		if err := c.claim(sub); err != nil {
			known[sub.Name] = Outcome{Err: err}
			continue
		}
		req, outcome := in.finder.newRequest(sub)
		known[sub.Name] = outcome
		if req != nil {
			in.addRequest(req)
		}
	}
	return in, known
}

func (in *input) addRequest(req *request) {
	in.requests = append(in.requests, req)
	in.providers.include(req.sub.Catalog, req.entries)
	if req.installed != nil && in.owner[req.installed] == nil {
		in.owner[req.installed] = req
	}
}

// bySeniority sorts the Subscriptions of users before those that were created for dependencies. Within each,
// those that hold an installed version come first, whatever their age. A Subscription that is corrected later
// must not take over a version that another one has installed.
func bySeniority(subscriptions []Subscription) []*Subscription {
	sorted := make([]*Subscription, len(subscriptions))
	for i := range subscriptions {
		sorted[i] = &subscriptions[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Subscription) int {
		if a.Generated != b.Generated {
			return first(!a.Generated, !b.Generated)
		}
		return first(a.Holds, b.Holds)
	})
	return sorted
}

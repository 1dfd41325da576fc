package resolution

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// breadth determines how many alternatives a groupProblem includes.
type breadth int

const (
	// narrow includes only the best alternative of each choice. If all of these are possible, no solution is better.
	// This holds for most problems.
	narrow breadth = iota
	// sample includes the first few alternatives, for explanations. If there is no solution with all of them, there
	// is none with a few.
	sample
	// wide includes all of them.
	wide
)

// alternatives returns the maximum number of alternatives of each choice.
func (b breadth) alternatives() int {
	const few = 20
	switch b {
	case narrow:
		return 1
	case sample:
		return few
	default:
		return math.MaxInt
	}
}

// groupProblem is the problem of one group of requests.
type groupProblem struct {
	*satProblem

	namespace string
	group     []*request
	breadth   breadth
	allowance *sat.Allowance
	// roots are the variables of the requests.
	roots   []sat.ID
	choices []choice
	// competing are requests of other groups that affect this problem.
	competing []*request
}

// choice is a dependency with all its alternatives, whether or not the problem includes them.
type choice struct {
	of     sat.ID
	nodes  []node
	parts  []sat.ID
	reason reason
	// equal is true if none of the nodes is preferred.
	equal bool
	// certain is the number of nodes that are preferred to anything in catalogs that are still being read.
	certain int
}

// solve returns the nodes of the best solution; errConflict if there is no solution. Requests that are left out
// need not be met.
func (p *groupProblem) solve(ctx context.Context, leftOut map[*request]bool) ([]node, error) {
	problem, _ := p.without(leftOut)
	taken, err := p.allowance.Find(ctx, problem)
	if errors.Is(err, sat.ErrNone) {
		return nil, errConflict
	}
	if err != nil {
		return nil, p.failure(err)
	}
	return p.decode(taken), nil
}

// contradiction returns constraints that leave no solution, of which none can be omitted. The error is
// errNoConflict if there are none. Other errors mean that they could not be determined.
func (p *groupProblem) contradiction(ctx context.Context, leftOut map[*request]bool) ([]reason, error) {
	problem, positions := p.without(leftOut)
	_, err := p.allowance.Solve(ctx, problem)
	contradiction, ok := errors.AsType[*sat.UnsatisfiableError](err)
	switch {
	case err == nil:
		return nil, errNoConflict
	case !ok:
		return nil, p.failure(err)
	}
	reasons := make([]reason, len(contradiction.Constraints))
	for i, at := range contradiction.Constraints {
		reasons[i] = p.reasons[positions[at]]
	}
	return reasons, nil
}

// failure wraps the error of a solver that did not finish.
func (p *groupProblem) failure(err error) error {
	err = fmt.Errorf("resolving the Subscriptions of namespace %s: %w", p.namespace, err)
	if _, limit := errors.AsType[*sat.LimitError](err); limit {
		return fmt.Errorf("%w; name channels and startingCSVs in the Subscriptions to narrow the choice", err)
	}
	return err
}

// fix requires that a request gets a certain entry.
func (p *groupProblem) fix(req *request, e *content.Entry, why kind) {
	n := node{catalog: req.sub.Catalog, entry: e}
	id, _ := p.node(n)
	p.add(sat.Constraint{Kind: sat.Mandatory, Variable: id}, reason{kind: why, request: req, node: n})
}

// solutionSet holds the nodes and variables of a solution for lookups.
type solutionSet struct {
	nodes map[node]bool
	ids   map[sat.ID]bool
}

func (p *groupProblem) set(nodes []node) solutionSet {
	t := solutionSet{nodes: map[node]bool{}, ids: map[sat.ID]bool{}}
	for _, n := range nodes {
		t.nodes[n], t.ids[p.ids[n]] = true, true
	}
	for _, id := range p.roots {
		t.ids[id] = true
	}
	return t
}

// uncertain reports whether a catalog that is being read may have a better version than one that was taken.
func (p *groupProblem) uncertain(nodes []node) bool {
	t := p.set(nodes)
	return slices.ContainsFunc(p.choices, func(c choice) bool {
		if c.reason.kind != requires || c.equal || !t.ids[c.of] || c.certain > len(c.nodes) {
			return false
		}
		return !slices.ContainsFunc(c.nodes[:c.certain], func(n node) bool { return t.nodes[n] })
	})
}

// optimal reports whether more alternatives cannot lead to a better solution: every taken node has the first
// alternative of each of its choices.
func (p *groupProblem) optimal(nodes []node) bool {
	if p.breadth == wide {
		return true
	}
	t := p.set(nodes)
	return !slices.ContainsFunc(p.choices, func(c choice) bool {
		return t.ids[c.of] && !c.equal && (len(c.nodes) == 0 || !t.nodes[c.nodes[0]])
	})
}

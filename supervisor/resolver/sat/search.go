package sat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-air/gini"
	"github.com/go-air/gini/z"
)

// slice is how long the solver works before it is asked whether to go on. It looks
// at the clock itself, every 20000 propagations, so that there is no goroutine to
// be stopped; what it has learned in a slice it keeps for the next.
const slice = 5 * time.Millisecond

// slices bounds a single question, to two seconds of work: the conflicts of a
// question cannot be counted from outside the solver.
const slicesPerQuestion = 400

// budget is what a search may use, all its parts together.
type budget struct {
	ctx     context.Context
	allowed int
	used    int
}

// spend takes a step.
func (b *budget) spend() error {
	if err := b.ctx.Err(); err != nil {
		return fmt.Errorf("search for a solution: %w", err)
	}
	if b.used >= b.allowed {
		return &LimitError{Bound: "steps", Allowed: b.allowed}
	}
	b.used++
	return nil
}

// search is a problem within the solver, with the choices made so far.
type search struct {
	*encoding

	budget    *budget
	variables int
	// model is the last solution that the solver found; what it takes needs no
	// question.
	model []bool
	// settled are the variables known to be taken (1) or not (-1) in whatever
	// solution is found from here on.
	settled []int8
}

func newSearch(p Problem, b *budget) (*search, error) {
	e, err := encode(p)
	if err != nil {
		return nil, err
	}
	return &search{
		encoding: e, budget: b, variables: p.Variables,
		model: make([]bool, p.Variables), settled: make([]int8, p.Variables),
	}, nil
}

// ask says whether there is a solution that takes what is assumed, and remembers
// it.
func (s *search) ask(assumed ...z.Lit) (bool, error) {
	ok, err := s.budget.question(s.solver, assumed)
	if ok {
		for id := range s.model {
			s.model[id] = s.solver.Value(literal(ID(id)))
		}
	}
	return ok, err
}

// question puts one question to a solver.
func (b *budget) question(solver *gini.Gini, assumed []z.Lit) (bool, error) {
	for range slicesPerQuestion {
		if err := b.spend(); err != nil {
			return false, err
		}
		solver.Assume(assumed...)
		if answer := solver.Try(slice); answer != 0 {
			return answer > 0, nil
		}
	}
	return false, &LimitError{Bound: "steps for a single question", Allowed: slicesPerQuestion}
}

// choose takes the first of others that can be, for good.
func (s *search) choose(others []ID) (ID, error) {
	for _, id := range others {
		ok, err := s.possible(id)
		if err != nil {
			return 0, err
		}
		if ok {
			s.settle(id, 1, literal(id))
			return id, nil
		}
		s.settle(id, -1, literal(id).Not())
	}
	return 0, errors.New("the solver contradicts itself: none of the choices that it left is possible")
}

func (s *search) possible(id ID) (bool, error) {
	if s.settled[id] != 0 {
		return s.settled[id] > 0, nil
	}
	if s.model[id] {
		return true, nil
	}
	return s.ask(literal(id))
}

func (s *search) settle(id ID, way int8, lit z.Lit) {
	if s.settled[id] == 0 {
		s.settled[id] = way
		s.clause(lit)
	}
}

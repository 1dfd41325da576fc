package resolution

import "github.com/chandlery/chandlery/supervisor/resolution/constraint"

// evaluator evaluates the constraints of a problem within one budget.
type evaluator struct {
	budget constraint.Budget
	// parts caches the results of split.
	parts map[*constraint.Constraint][]constraint.Constraint
}

func newEvaluator() *evaluator {
	return &evaluator{parts: map[*constraint.Constraint][]constraint.Constraint{}}
}

// met reports whether an operator alone meets a constraint. An evaluation that takes too long is cut off, and
// cutOff reports that.
func (e *evaluator) met(c *constraint.Constraint, s *constraint.Subject) bool {
	return e.budget.Evaluate(c, s) == constraint.Met
}

// cutOff reports whether the evaluation of a constraint was cut off, so that its providers are unknown.
func (e *evaluator) cutOff(c *constraint.Constraint) bool { return e.budget.CutOff(c) }

// split splits a constraint that several operators may meet together. The parts of a constraint are always the
// same.
func (e *evaluator) split(c *constraint.Constraint) []constraint.Constraint {
	if known, ok := e.parts[c]; ok {
		return known
	}
	parts := c.Split()
	e.parts[c] = parts
	return parts
}

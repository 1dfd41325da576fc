package constraint

import (
	"cel.dev/cel-go/common/types/ref"
)

// Evaluations are measured in steps of about 30 ns on current machines. Steps count work, not time, so that the
// result does not depend on the machine.
const (
	// costSteps is the number of steps for a unit of CEL cost.
	costSteps = 10
	// ownerSteps bounds the evaluations for one owner within a Budget: about half a second. A rule that reads each
	// property of the versions in the largest catalog takes a third of it.
	ownerSteps = 15_000_000
	// budgetSteps is the number of steps of a Budget for full shares. Once they are spent, further owners get
	// lateSteps each.
	budgetSteps = 10 * ownerSteps
	lateSteps   = ownerSteps / 5
	// askSteps bounds the evaluation for one operator, which may take several rules.
	askSteps = 20 * maxCost * costSteps
	// factsPerStep is the number of APIs and labels of an operator that are compared per step.
	factsPerStep = 8
	// maxVerdicts and maxCached bound the memory of a Budget, in verdicts and in parts of decoded properties.
	maxVerdicts = 100_000
	maxCached   = 50_000
)

// Owner is the owner of constraints: a package of a catalog, or a present operator. The evaluations of its
// constraints share one limit.
type Owner struct{ _ byte }

// Verdict is the result of asking whether an operator meets a constraint.
type Verdict int

// The verdicts. After a cut-off, the operator counts as not meeting the constraint, although that is not
// certain.
const (
	Unmet Verdict = iota
	Met
	CutOff
)

// Budget bounds the evaluation of constraints for one problem. Each Owner has a separate share, so that the
// constraints of one do not affect others. The zero value is ready. A Budget is not safe for concurrent use.
type Budget struct {
	shares   map[*Owner]*share
	taken    int64
	verdicts map[evaluationKey]Verdict
	cutOff   map[*Constraint]bool
	cache    propertyCache
}

// evaluationKey is a pair of a constraint and an operator.
type evaluationKey struct {
	constraint *Constraint
	subject    *Subject
}

// share is the number of steps that remain for an owner.
type share struct{ left int64 }

// Evaluate returns whether an operator alone meets a constraint, within the share of the constraint's owner.
// Constraint and subject must not be changed afterwards.
func (b *Budget) Evaluate(c *Constraint, s *Subject) Verdict {
	if !c.compound() {
		return c.evaluateSimple(s)
	}
	key := evaluationKey{c, s}
	if known, ok := b.verdicts[key]; ok {
		return known
	}
	own := b.share(c.owner)
	allowed := min(own.left, askSteps)
	e := evaluation{subject: s, share: &share{left: allowed}, cache: &b.cache}
	verdict := e.verdict(c)
	taken := allowed - e.share.left
	own.left -= taken
	b.taken += taken
	if verdict == CutOff {
		b.cutOff = with(b.cutOff, c, true)
	}
	if len(b.verdicts) < maxVerdicts {
		b.verdicts = with(b.verdicts, key, verdict)
	}
	return verdict
}

// CutOff reports whether an evaluation of a constraint exceeded its limit for some operator. That operator then
// counts as not meeting it.
func (b *Budget) CutOff(c *Constraint) bool { return b.cutOff[c] }

func (b *Budget) share(of *Owner) *share {
	if known, ok := b.shares[of]; ok {
		return known
	}
	own := &share{left: ownerSteps}
	if b.taken >= budgetSteps {
		own.left = lateSteps
	}
	b.shares = with(b.shares, of, own)
	return own
}

// with adds an entry to a map, which may be nil.
func with[K comparable, V any](to map[K]V, key K, value V) map[K]V {
	if to == nil {
		to = map[K]V{}
	}
	to[key] = value
	return to
}

// MetBy reports whether an operator alone meets the constraint. If the evaluation takes too long, it returns
// false.
func (c *Constraint) MetBy(s *Subject) bool {
	if !c.compound() {
		return c.evaluateSimple(s) == Met
	}
	e := evaluation{subject: s, share: &share{left: askSteps}, cache: &propertyCache{}}
	return e.verdict(c) == Met
}

// evaluation is the evaluation of one constraint for one operator.
type evaluation struct {
	subject *Subject
	share   *share
	cache   *propertyCache
	// properties are the properties of the operator, once a rule has read them.
	properties ref.Val
}

// spend takes steps. It returns false if none are left.
func (e *evaluation) spend(steps int64) bool {
	if e.share.left <= 0 {
		return false
	}
	e.share.left -= steps
	return true
}

func (e *evaluation) verdict(c *Constraint) Verdict {
	if !e.spend(1 + int64(len(e.subject.GVKs)+len(e.subject.Labels))/factsPerStep) {
		return CutOff
	}
	switch {
	case c.Rule != nil:
		return e.rule(c.Rule)
	case c.All != nil:
		return e.first(c.All, Unmet, Met)
	case c.Any != nil:
		return e.first(c.Any, Met, Unmet)
	case c.Not != nil:
		return negated(e.first(c.Not, Met, Unmet))
	default:
		return c.evaluateSimple(e.subject)
	}
}

// first returns the verdict decides if one of the constraints has it, and else the verdict other. It returns
// CutOff if a cut-off leaves this open.
func (e *evaluation) first(list []Constraint, decides, other Verdict) Verdict {
	for i := range list {
		switch e.verdict(&list[i]) {
		case decides:
			return decides
		case CutOff:
			other = CutOff
			if e.share.left <= 0 {
				return CutOff
			}
		case Met, Unmet:
		}
	}
	return other
}

func negated(v Verdict) Verdict {
	switch v {
	case Met:
		return Unmet
	case Unmet:
		return Met
	case CutOff:
	}
	return CutOff
}

package constraint

import (
	"cel.dev/cel-go/common/types/ref"
)

// What evaluations may take is counted in steps: some 30 ns each on the machines
// of these days. It is work that is counted, not time, so that the answer does not
// depend on the machine.
const (
	// costSteps is what a unit of CEL is worth.
	costSteps = 10
	// ownerSteps bounds the evaluations for one owner within a Budget: half a second
	// or so. A rule that looks at each property of the versions in the largest
	// catalog takes a third of it.
	ownerSteps = 15_000_000
	// budgetSteps is what a Budget has for full shares. Owners that come after that
	// has been taken get lateSteps each.
	budgetSteps = 10 * ownerSteps
	lateSteps   = ownerSteps / 5
	// askSteps bounds asking one operator, which may take several rules.
	askSteps = 20 * maxCost * costSteps
	// factsPerStep is how many APIs and labels of an operator are compared for one.
	factsPerStep = 8
	// maxAnswers and maxHeld bound what a Budget remembers, in answers and in parts
	// of decoded properties.
	maxAnswers = 100_000
	maxHeld    = 50_000
)

// Owner is whose constraints they are: a package of a catalog, or an operator that
// is present. What their evaluation takes is counted together.
type Owner struct{ _ byte }

// Verdict is what asking an operator gives.
type Verdict int

// The verdicts. Who was cut off does not meet a constraint; nor is it known not to.
const (
	Unmet Verdict = iota
	Met
	CutOff
)

// Budget is what the evaluation of constraints may take while one problem is
// solved. Each Owner has a share of its own, so that the constraints of one have no
// effect on what others get. The zero value is ready; it is for one goroutine.
type Budget struct {
	shares   map[*Owner]*share
	taken    int64
	answers  map[question]Verdict
	cutOff   map[*Constraint]bool
	readings readings
}

// question is whether an operator meets a constraint.
type question struct {
	constraint *Constraint
	subject    *Subject
}

// share is what an owner has left.
type share struct{ left int64 }

// Ask says whether an operator meets a constraint, by itself, within the share of
// the constraint's owner. Constraint and subject must not be changed afterwards.
func (b *Budget) Ask(c *Constraint, s *Subject) Verdict {
	if !c.compound() {
		return c.alone(s)
	}
	asked := question{c, s}
	if known, ok := b.answers[asked]; ok {
		return known
	}
	own := b.share(c.owner)
	allowed := min(own.left, askSteps)
	e := evaluation{subject: s, share: &share{left: allowed}, readings: &b.readings}
	verdict := e.verdict(c)
	taken := allowed - e.share.left
	own.left -= taken
	b.taken += taken
	if verdict == CutOff {
		b.cutOff = with(b.cutOff, c, true)
	}
	if len(b.answers) < maxAnswers {
		b.answers = with(b.answers, asked, verdict)
	}
	return verdict
}

// CutOff says whether there was an operator for which the evaluation of a
// constraint took more than it may, so that the operator counts as not meeting it.
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

// with adds to a map, which there may not be yet.
func with[K comparable, V any](to map[K]V, key K, value V) map[K]V {
	if to == nil {
		to = map[K]V{}
	}
	to[key] = value
	return to
}

// MetBy says whether an operator meets the constraint, by itself. What would take
// long does not.
func (c *Constraint) MetBy(s *Subject) bool {
	if !c.compound() {
		return c.alone(s) == Met
	}
	e := evaluation{subject: s, share: &share{left: askSteps}, readings: &readings{}}
	return e.verdict(c) == Met
}

// evaluation is that of one constraint for one operator.
type evaluation struct {
	subject  *Subject
	share    *share
	readings *readings
	// properties are those of the operator once a rule has asked for them.
	properties ref.Val
}

// spend takes steps; false when there are none left.
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
		return c.alone(e.subject)
	}
}

// first gives the verdict that decides if one of the constraints has it, and else
// the other one; that is not known where one was cut off.
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

package resolver

import "slices"

// hold adds the dependencies of present operators: an update must not break a dependency that is met now.
func (m *model) hold() {
	for _, w := range m.group {
		if w.installed == nil || len(w.entries) == 0 {
			continue
		}
		for _, need := range m.needs[w.installed] {
			if !m.safe(need) {
				m.keep(need)
			}
		}
	}
}

// safe reports whether an operator that the group cannot replace meets a need.
func (m *model) safe(n need) bool {
	return slices.ContainsFunc(m.meeting(n), func(o *Operator) bool {
		return m.holder[o] == nil || !slices.Contains(m.group, m.holder[o])
	})
}

// meeting returns the present operators that meet a need of another one.
func (r *resolution) meeting(n need) []*Operator {
	var found []*Operator
	for i := range r.Operators {
		if o := &r.Operators[i]; o != n.of && n.constraint.MetBy(&o.Subject) {
			found = append(found, o)
		}
	}
	return found
}

// keep requires that a need remains met.
func (m *model) keep(n need) {
	kept := choice{of: m.consider(node{operator: n.of}), equal: true, reason: reason{kind: requires, node: node{operator: n.of}, constraint: n.constraint}}
	for _, o := range m.meeting(n) {
		m.consider(node{operator: o})
	}
	m.drain()
	for _, there := range m.known() {
		if there.operator != n.of && n.constraint.MetBy(there.subject()) && m.lasting(there) {
			kept.nodes = append(kept.nodes, there)
		}
	}
	m.choices = append(m.choices, kept)
}

// lasting reports whether a node, if it is taken, is certainly in the result: it is present, or a candidate.
// Others are taken only as dependencies.
func (m *model) lasting(n node) bool {
	return n.operator != nil || slices.ContainsFunc(m.group, func(w *wish) bool {
		return w.sub.Catalog == n.catalog && slices.Contains(w.entries, n.entry)
	})
}

// drain adds the constraints of the operators that were added late; they add no other nodes.
func (m *model) drain() {
	for _, n := range m.queue {
		m.describe(n)
	}
	m.queue = nil
}

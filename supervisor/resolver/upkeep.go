package resolver

import "slices"

// hold adds the dependencies of present operators: an update must not break a dependency that is met now.
func (m *model) hold() {
	for _, req := range m.group {
		if req.installed == nil || len(req.entries) == 0 {
			continue
		}
		for _, need := range m.operators.dependents[req.installed] {
			if !m.safe(need) {
				m.keep(need)
			}
		}
	}
}

// safe reports whether an operator that the group cannot replace meets a need.
func (m *model) safe(n dependency) bool {
	return slices.ContainsFunc(m.operators.meeting(n), func(o *Operator) bool {
		return m.owner[o] == nil || !slices.Contains(m.group, m.owner[o])
	})
}

// keep requires that a need remains met.
func (m *model) keep(n dependency) {
	kept := choice{of: m.consider(node{operator: n.of}), equal: true, reason: reason{kind: requires, node: node{operator: n.of}, constraint: n.constraint}}
	for _, o := range m.operators.meeting(n) {
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
	return n.operator != nil || slices.ContainsFunc(m.group, func(req *request) bool {
		return req.sub.Catalog == n.catalog && slices.Contains(req.entries, n.entry)
	})
}

// drain adds the constraints of the operators that were added late; they add no other nodes.
func (m *model) drain() {
	for _, n := range m.queue {
		m.describe(n)
	}
	m.queue = nil
}

package resolver

import "slices"

// hold keeps what operators that are present need: a dependency that is met now
// must not be broken by an update.
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

// safe says whether a need is met by an operator that stays whatever the group
// gets.
func (m *model) safe(n need) bool {
	return slices.ContainsFunc(m.meeting(n), func(o *Operator) bool {
		return m.holder[o] == nil || !slices.Contains(m.group, m.holder[o])
	})
}

// meeting gives the operators present that meet a need of another one.
func (r *resolution) meeting(n need) []*Operator {
	var found []*Operator
	for i := range r.Operators {
		if o := &r.Operators[i]; o != n.of && n.constraint.MetBy(&o.Subject) {
			found = append(found, o)
		}
	}
	return found
}

// keep demands that a need stays met.
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

// lasting says whether a node, if it is taken, is surely there in the end: it is
// present, or a candidate. Others come only with what needs them.
func (m *model) lasting(n node) bool {
	return n.operator != nil || slices.ContainsFunc(m.group, func(w *wish) bool {
		return w.sub.Catalog == n.catalog && slices.Contains(w.entries, n.entry)
	})
}

// drain describes the operators that were added late; they bring nothing else
// with them.
func (m *model) drain() {
	for _, n := range m.queue {
		m.describe(n)
	}
	m.queue = nil
}

package resolution

import "slices"

// protectDependents adds the dependencies of present operators: an update must not break a dependency that is met
// now.
func (b *builder) protectDependents() {
	for _, req := range b.group {
		if req.installed == nil || len(req.entries) == 0 {
			continue
		}
		for _, d := range b.operators.dependents[req.installed] {
			if !b.isSafe(d) {
				b.protect(d)
			}
		}
	}
}

// isSafe reports whether an operator that the group cannot replace meets a dependency.
func (b *builder) isSafe(d dependency) bool {
	return slices.ContainsFunc(b.operators.meeting(d), func(o *Operator) bool {
		return b.owner[o] == nil || !slices.Contains(b.group, b.owner[o])
	})
}

// protect requires that a dependency remains met.
func (b *builder) protect(d dependency) {
	dependent := node{operator: d.of}
	c := choice{of: b.consider(dependent), equal: true, reason: reason{kind: requires, node: dependent, constraint: d.constraint}}
	for _, o := range b.operators.meeting(d) {
		b.consider(node{operator: o})
	}
	b.addQueue()
	for _, n := range b.ordered() {
		if n.operator != d.of && d.constraint.MetBy(n.subject()) && b.remainsInstalled(n) {
			c.nodes = append(c.nodes, n)
		}
	}
	b.choices = append(b.choices, c)
}

// remainsInstalled reports whether a taken node is certainly in the result: it is present, or a candidate. Others are
// taken only as dependencies.
func (b *builder) remainsInstalled(n node) bool {
	return n.operator != nil || slices.ContainsFunc(b.group, func(req *request) bool {
		return req.sub.Catalog == n.catalog && slices.Contains(req.entries, n.entry)
	})
}

// addQueue adds the constraints of all nodes in the queue. They are present operators, so they add no other nodes.
func (b *builder) addQueue() {
	for _, n := range b.queue {
		b.addNode(n)
	}
	b.queue = nil
}

package resolution

// outcomes turns the results of groups into outcomes.
type outcomes struct {
	*resolver

	// chosen are the versions that Subscriptions install.
	chosen map[node]*request
}

func newOutcomes(res *resolver, results []*groupResult) *outcomes {
	o := &outcomes{resolver: res, chosen: map[node]*request{}}
	for _, a := range results {
		for _, req := range a.group {
			if e := req.chosen(a.taken); e != nil && a.failed[req] == nil {
				o.chosen[node{catalog: req.sub.Catalog, entry: e}] = req
			}
		}
	}
	return o
}

// of returns the outcome of a request.
func (o *outcomes) of(a *groupResult, req *request) Outcome {
	if err := a.failed[req]; err != nil {
		return Outcome{Err: a.orPending(err)}
	}
	e := req.chosen(a.taken)
	if e == nil {
		return o.withoutVersion(a, req)
	}
	if a.uncertain {
		return Outcome{Err: ErrPending}
	}
	d := newDependencies(o.resolver, a.taken, o.chosen)
	d.addOf(node{catalog: req.sub.Catalog, entry: e})
	return Outcome{Install: o.finder.choice(req, e), Dependencies: d.choices, CoInstalled: d.coInstalled, Constrained: a.constrained[req]}
}

// withoutVersion returns the outcome of a request that gets no new version. If a version that is requested by name is
// not possible, it is an error.
func (o *outcomes) withoutVersion(a *groupResult, req *request) Outcome {
	switch {
	case req.sub.Pin != "" && len(req.entries) == 0:
		return Outcome{Constrained: o.finder.constrainedByPin(req.sub)}
	case req.sub.Pin != "":
		return Outcome{Err: a.orPending(a.constrained[req])}
	case len(req.entries) == 0:
		return Outcome{Constrained: o.finder.unreadableRange(req.sub)}
	default:
		return Outcome{Constrained: a.constrained[req]}
	}
}

// orPending returns ErrPending if a catalog that is being read may have the missing version, and the error
// otherwise.
func (a *groupResult) orPending(err error) error {
	if a.uncertain {
		return ErrPending
	}
	return err
}

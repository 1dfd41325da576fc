package resolution

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// request is a Subscription that may get a version.
type request struct {
	sub *Subscription
	// entries are the candidates, best first; none if there is no newer version or an operation is in progress.
	entries []*content.Entry
	// installed is the installed operator; nil for none.
	installed *Operator
}

// alternatives returns the versions that satisfy the request, best first.
func (req *request) alternatives() []node {
	nodes := make([]node, 0, len(req.entries)+1)
	for _, e := range req.entries {
		nodes = append(nodes, node{catalog: req.sub.Catalog, entry: e})
	}
	if req.installed != nil {
		nodes = append(nodes, node{operator: req.installed})
	}
	return nodes
}

// chosen returns the entry that was taken for a request; nil if the installed version remains.
func (req *request) chosen(taken []node) *content.Entry {
	for _, e := range req.entries {
		if slices.Contains(taken, node{catalog: req.sub.Catalog, entry: e}) {
			return e
		}
	}
	return nil
}

// choice returns an entry as the choice for a request.
func (f *finder) choice(req *request, e *content.Entry) *Choice {
	c := &Choice{
		Catalog: req.sub.Catalog, Package: e.Channel.Package.Name, Channel: e.Channel.Name, Bundle: e.Bundle.Name,
		Replaces: e.Replaces, Entry: e, Because: f.because(req, e), Downgrade: f.downgrades(req.sub, e),
	}
	if req.sub.Installed != "" {
		c.Replaces = req.sub.Installed
	}
	return c
}

// because returns why a version was chosen for a request.
func (f *finder) because(req *request, e *content.Entry) string {
	why := "head of channel " + e.Channel.Name
	switch {
	case req.sub.Pin != "" && e.Bundle.Name == req.sub.Pin:
		why = "pinned by annotation " + api.AnnotationPin
	case req.sub.Installed != "":
		why = replacementReason(e, req.sub.Installed, f.operators.version(req.sub.Installed))
	case e.Bundle.Name == req.sub.LastInstalled:
		why = "the version that was there before"
	case e.Bundle.Name == req.sub.StartingCSV && req.sub.LastInstalled == "":
		why = "spec.startingCSV"
	}
	if at := slices.Index(req.entries, e); at > 0 {
		why = fmt.Sprintf("%s; %s is held back", why, req.entries[0].Bundle.Name)
	}
	return why
}

// newRequest returns the request of a Subscription, and its outcome as far as that is known. There is no request if
// the Subscription can get no version.
func (f *finder) newRequest(sub *Subscription) (*request, Outcome) {
	entries, err := f.candidates(sub)
	if err != nil {
		return nil, Outcome{Err: err}
	}
	req := &request{sub: sub, entries: entries, installed: f.operators.byName[sub.Installed]}
	var outcome Outcome
	if sub.InProgress {
		req.entries = nil
		outcome = f.available(req, entries)
	}
	if len(req.alternatives()) == 0 {
		// The installed version is not among the operators of the namespace, and no newer one is available.
		return nil, Outcome{}
	}
	return req, outcome
}

// available returns the outcome for a Subscription with an operation in progress: the version that it would get next.
func (f *finder) available(req *request, entries []*content.Entry) Outcome {
	at := slices.IndexFunc(entries, func(e *content.Entry) bool { return e.Bundle.Err == nil })
	if at < 0 {
		return Outcome{Constrained: f.constrainedByPin(req.sub)}
	}
	return Outcome{Available: f.choice(req, entries[at])}
}

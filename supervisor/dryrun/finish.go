package dryrun

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/resolver"
)

// finish adds the final state of each Subscription to the result.
func (w *walk) finish(last resolver.Solution) *Result {
	moved := w.result.moved()
	for _, r := range w.request.Refused {
		w.refuse(resolver.Subscription{Name: r.Subscription, Package: r.Package}, r.Err)
	}
	for _, sub := range w.problem.Subscriptions {
		ended, isEnded := w.ended[sub.Name]
		err := last[sub.Name].Err
		switch {
		case isEnded:
			w.result.Refusals = append(w.result.Refusals, ended)
		case err != nil:
			w.refuse(sub, err)
		case !moved[sub.Name] && w.early[sub.Name] != nil:
			// The present version belongs to another Subscription, and is not what this one requests.
			w.refuse(sub, w.early[sub.Name])
		case !moved[sub.Name]:
			w.rest(sub)
		}
		if held := last[sub.Name].Held; held != nil && !isEnded && err == nil {
			r := w.refusal(sub, held)
			r.Reason = strings.TrimPrefix(r.Reason, unsatisfiable)
			w.result.HeldBack = append(w.result.HeldBack, r)
		}
	}
	return w.result
}

// rest records that a Subscription is up to date, if the requested version is installed.
func (w *walk) rest(sub resolver.Subscription) {
	coming := func(s Standing) bool { return s.Subscription == sub.Name }
	if sub.Installed != "" && !slices.ContainsFunc(w.result.UnderWay, coming) {
		w.result.UpToDate = append(w.result.UpToDate, w.standing(sub))
	}
}

// moved returns the Subscriptions that have steps.
func (res *Result) moved() map[string]bool {
	moved := map[string]bool{}
	for i := range res.Steps {
		for _, name := range res.Steps[i].Subscriptions {
			moved[name] = true
		}
	}
	return moved
}

// unsatisfiable is the beginning of the text of every condition about unsatisfiable constraints.
const unsatisfiable = "constraints not satisfiable: "

// refuse records that a Subscription gets no answer, or not what it requests.
func (w *walk) refuse(sub resolver.Subscription, err error) {
	r := w.refusal(sub, err)
	if c, ok := errors.AsType[*resolver.CatalogError](err); ok && w.problem.Catalogs[c.Catalog].Content == nil {
		r.Reason = fmt.Sprintf("cannot be looked at: catalog %s cannot be read: %v", c.Catalog, c.Err)
		r.Remedy = fmt.Sprintf("fix the catalog, or give its content with --catalog %s=SOURCE", c.Catalog)
		w.result.Unknown = append(w.result.Unknown, r)
		return
	}
	w.result.Refusals = append(w.result.Refusals, r)
}

// refusal converts an error.
func (w *walk) refusal(sub resolver.Subscription, err error) Refusal {
	r := Refusal{Subscription: sub.Name, Package: sub.Package, Stays: w.own[sub.Name], Reason: err.Error()}
	if u, ok := errors.AsType[*resolver.UnsatisfiableError](err); ok {
		r.Reason, r.Remedy = unsatisfiable+strings.Join(u.Reasons, ", "), u.Remedy
	}
	if _, ok := errors.AsType[*resolver.CatalogError](err); ok {
		r.Reason, r.Remedy = malformed(r.Reason)
	}
	return r
}

// malformed splits the text about an invalid catalog into the problem and the remedy.
func malformed(text string) (reason, remedy string) {
	if i := strings.LastIndex(text, "; "); i >= 0 && strings.Contains(text[i:], "publisher") {
		return text[:i], text[i+len("; "):]
	}
	return text, "ask the publisher of the catalog to fix it"
}

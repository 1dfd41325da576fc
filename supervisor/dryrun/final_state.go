package dryrun

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	grpcstatus "google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// finish adds the final state of each Subscription to the result.
func (s *simulation) finish(last resolution.Solution) *Result {
	withSteps := s.result.withSteps()
	for _, r := range s.request.Refused {
		s.refuse(resolution.Subscription{Name: r.Subscription, Package: r.Package}, r.Err)
	}
	for _, sub := range s.state.input.Subscriptions {
		ended, isEnded := s.state.ended[sub.Name]
		err := last[sub.Name].Err
		switch {
		case s.state.heldBack[sub.Name]:
			s.result.HeldBack = append(s.result.HeldBack, ended)
		case isEnded:
			s.result.Refusals = append(s.result.Refusals, ended)
		case err != nil:
			s.refuse(sub, err)
		case !withSteps[sub.Name] && s.errs[sub.Name] != nil:
			// The present version belongs to another Subscription, and is not what this one requests.
			s.refuse(sub, s.errs[sub.Name])
		case !withSteps[sub.Name]:
			s.addUpToDate(sub)
		}
		if held := last[sub.Name].Constrained; held != nil && !isEnded && err == nil {
			r := s.refusal(sub, held)
			r.Reason = strings.TrimPrefix(r.Reason, unsatisfiable)
			s.result.HeldBack = append(s.result.HeldBack, r)
		}
	}
	return s.result
}

// addUpToDate records that a Subscription is up to date, if the requested version is installed.
func (s *simulation) addUpToDate(sub resolution.Subscription) {
	installing := func(other InstalledVersion) bool { return other.Subscription == sub.Name }
	if sub.Installed != "" && !slices.ContainsFunc(s.result.UnderWay, installing) {
		s.result.UpToDate = append(s.result.UpToDate, s.state.installedVersion(sub))
	}
}

// withSteps returns the Subscriptions that have steps.
func (res *Result) withSteps() map[string]bool {
	withSteps := map[string]bool{}
	for i := range res.Steps {
		for _, name := range res.Steps[i].Subscriptions {
			withSteps[name] = true
		}
	}
	return withSteps
}

// unsatisfiable is the beginning of the text of every condition about unsatisfiable constraints.
const unsatisfiable = "constraints not satisfiable: "

// refuse records that a Subscription gets no answer, or not what it requests.
func (s *simulation) refuse(sub resolution.Subscription, err error) {
	r := s.refusal(sub, err)
	if c, ok := errors.AsType[*resolution.CatalogError](err); ok && s.state.input.Catalogs[c.Catalog].Content == nil {
		r.Reason = fmt.Sprintf("not known: catalog %s cannot be read: %s", c.Catalog, catalogProblem(c.Err))
		r.Remedy = fmt.Sprintf("fix the catalog, or give its content with --catalog %s=SOURCE", c.Catalog)
		s.result.Unknown = append(s.result.Unknown, r)
		return
	}
	s.result.Refusals = append(s.result.Refusals, r)
}

// catalogProblem returns why a catalog cannot be read, without the code of a gRPC status.
func catalogProblem(err error) string {
	return grpcstatus.Convert(err).Message()
}

// refusal converts an error.
func (s *simulation) refusal(sub resolution.Subscription, err error) Refusal {
	r := Refusal{Subscription: sub.Name, Package: sub.Package, Stays: s.state.own[sub.Name], Reason: err.Error()}
	if u, ok := errors.AsType[*resolution.UnsatisfiableError](err); ok {
		r.Reason, r.Remedy, r.Channels = unsatisfiable+strings.Join(u.Reasons, ", "), u.Remedy, u.Channels
	}
	if _, ok := errors.AsType[*resolution.CatalogError](err); ok {
		r.Reason, r.Remedy = splitRemedy(r.Reason)
	}
	return r
}

// splitRemedy splits the text about an invalid catalog into the problem and the remedy.
func splitRemedy(text string) (reason, remedy string) {
	if i := strings.LastIndex(text, "; "); i >= 0 && strings.Contains(text[i:], "publisher") {
		return text[:i], text[i+len("; "):]
	}
	return text, "ask the publisher of the catalog to fix it"
}

package resolution

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// kind is the meaning of a constraint.
type kind int

const (
	subscribed kind = iota + 1 // a Subscription exists
	requested                  // a Subscription requires one of several versions
	present                    // an operator is present
	deprecated                 // a bundle must not be installed
	unreadable                 // a bundle has invalid properties
	requires                   // a version requires another operator
	exclusive                  // two versions exclude each other
	onePackage                 // a package has at most one version
	oneAPI                     // an API has at most one provider
	preferred                  // a Subscription gets its best candidate
	fixed                      // another Subscription gets a version
)

// reason is the meaning of a constraint, with its subjects.
type reason struct {
	kind       kind
	request    *request
	node       node
	other      node
	constraint *constraint.Constraint
	pkg        string
	gvk        bundles.GVK
}

// explain returns an error with the reasons why a request is not met; constrained if only its best candidate is not
// possible.
func (res *resolver) explain(req *request, reasons []reason, constrained bool) error {
	texts := map[string]bool{}
	for _, why := range (sentences{res}).condense(reasons) {
		texts[why] = true
	}
	texts[exists(req.sub)] = true
	r := remedies{res}
	e := &UnsatisfiableError{Reason: r.blockedReason(reasons), Remedy: r.remedy(req, reasons)}
	if constrained && slices.ContainsFunc(reasons, func(why reason) bool { return why.kind == unreadable }) {
		e.Remedy = "the supervisor still considers the other versions of the package"
	}
	for text := range texts {
		e.Reasons = append(e.Reasons, text)
	}
	slices.Sort(e.Reasons)
	e.Reasons = bounded(e.Reasons)
	e.Remedy = bundles.Clip(e.Remedy, maxReason)
	return e
}

// maxReasons and maxReason bound the number and the length of reasons, since they are read in a condition.
const (
	maxReasons = 20
	maxReason  = 500
)

// bounded bounds the number and the length of reasons.
func bounded(reasons []string) []string {
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons:maxReasons], fmt.Sprintf("and %d reasons more", more))
	}
	for i := range reasons {
		reasons[i] = bundles.Clip(reasons[i], maxReason)
	}
	return reasons
}

// sentences describes reasons.
type sentences struct{ *resolver }

// condense returns sentences about reasons. Reasons that are the same for several versions of a package are stated
// for the first one.
func (s sentences) condense(reasons []reason) []string {
	type group struct {
		first reason
		more  int
	}
	var order []string
	groups := map[string]*group{}
	for _, why := range reasons {
		key := s.similarity(why)
		if groups[key] == nil {
			groups[key] = &group{first: why}
			order = append(order, key)
			continue
		}
		groups[key].more++
	}
	var texts []string
	for _, key := range order {
		text := s.about(groups[key].first)
		if more := groups[key].more; more > 0 {
			noun := "versions"
			if more == 1 {
				noun = "version"
			}
			text += fmt.Sprintf(" (also %d other %s of package %s)", more, noun, groups[key].first.subjectPackage())
		}
		texts = append(texts, text)
	}
	return texts
}

// similarity returns a key that is the same for reasons that differ only in the version of a package.
func (s sentences) similarity(why reason) string {
	switch why.kind {
	case requires:
		if why.node.operator == nil {
			return fmt.Sprintf("%d/%s/%s/%s", why.kind, why.node.catalog, why.node.pkg(), why.constraint)
		}
	case deprecated, unreadable:
		return fmt.Sprintf("%d/%s/%s", why.kind, why.node.catalog, why.node.pkg())
	case exclusive:
		if common := commonGVKs(why.node.subject(), why.other.subject()); !why.samePackage() && len(common) > 0 {
			return fmt.Sprintf("%d/%s/%s/%s/%s", why.kind, why.node.name(), why.other.catalog, why.other.pkg(), common[0])
		}
		return fmt.Sprintf("%d/%s/%s/%s", why.kind, why.node.name(), why.other.catalog, why.other.pkg())
	case subscribed, requested, present, onePackage, oneAPI, preferred, fixed:
	}
	return s.about(why)
}

// subjectPackage returns the package whose versions a reason is about.
func (why reason) subjectPackage() string {
	if why.kind == exclusive {
		return why.other.pkg()
	}
	return why.node.pkg()
}

func (why reason) samePackage() bool { return why.node.pkg() == why.other.pkg() }

// about returns a sentence about a reason, with the wording of OLM.
func (s sentences) about(why reason) string {
	switch why.kind {
	case subscribed:
		return exists(why.request.sub)
	case requested:
		return s.alternatives(why.request)
	case present:
		return s.present(why.node.operator)
	case deprecated:
		return olmtext.VersionDeprecated(why.node.id(s.Namespace))
	case unreadable:
		return fmt.Sprintf("bundle %s cannot be read: %v", why.node.id(s.Namespace), why.node.entry.Bundle.Err)
	case requires:
		return requirement(why)
	case exclusive:
		return s.exclusive(why)
	case preferred:
		return fmt.Sprintf("bundle %s is the newest", why.node.id(s.Namespace))
	case fixed:
		return fmt.Sprintf("subscription %s gets %s", why.request.sub.Name, why.node.id(s.Namespace))
	case onePackage:
		return olmtext.OnePerPackage(why.pkg)
	default:
		return olmtext.OneProvider(describeAPI(why.gvk))
	}
}

func (s sentences) present(o *Operator) string {
	if s.owner[o] != nil {
		return fmt.Sprintf("clusterserviceversion %s exists", o.Name)
	}
	return olmtext.VersionUnreferenced(o.Name)
}

func requirement(why reason) string {
	if why.node.operator != nil {
		return fmt.Sprintf("clusterserviceversion %s requires an operator %s", why.node.name(), why.constraint)
	}
	return olmtext.BundleRequires(why.node.name(), why.constraint.String())
}

func describeAPI(gvk bundles.GVK) string {
	return olmtext.KindOf(gvk.Group, gvk.Version, gvk.Kind)
}

func (s sentences) exclusive(why reason) string {
	a, b := why.node.id(s.Namespace), why.other.id(s.Namespace)
	if why.samePackage() {
		return olmtext.SamePackage(a, b, why.other.pkg())
	}
	return olmtext.SameAPI(a, b, describeAPI(commonGVKs(why.node.subject(), why.other.subject())[0]))
}

// alternatives returns a sentence with the first few versions that satisfy a request.
func (s sentences) alternatives(req *request) string {
	const most = 5
	var names []string
	for _, n := range req.alternatives() {
		names = append(names, n.id(s.Namespace))
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most-1], fmt.Sprintf("%d others", more+1))
	}
	return olmtext.SubscriptionRequires(req.sub.Name, names)
}

package resolver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// kind says what a constraint of a model is about.
type kind int

const (
	subscribed kind = iota + 1 // a Subscription exists
	requested                  // what it requested for
	present                    // an operator is there
	deprecated                 // a bundle must not be installed
	unreadable                 // a bundle says what cannot be read
	requires                   // a version needs another operator
	beside                     // two versions exclude each other
	onePackage                 // so do all versions of a package
	oneAPI                     // and all that bring an API
	preferred                  // the best candidate is to be had
	fixed                      // another Subscription gets a version
)

// reason is what a constraint of a model says, and of whom.
type reason struct {
	kind       kind
	request    *request
	node       node
	other      node
	constraint *constraint.Constraint
	pkg        string
	gvk        bundles.GVK
}

// explain says in words why a wish cannot be met, or why it is held back from the
// best of its candidates.
func (m *model) explain(req *request, reasons []reason, held bool) error {
	texts := map[string]bool{}
	for _, why := range m.condense(reasons) {
		texts[why] = true
	}
	texts[exists(req.sub)] = true
	e := &UnsatisfiableError{Reason: blockedBy(m, reasons), Remedy: m.remedy(req, reasons)}
	if held && slices.ContainsFunc(reasons, func(why reason) bool { return why.kind == unreadable }) {
		e.Remedy = "the other versions of the package are considered meanwhile"
	}
	for text := range texts {
		e.Reasons = append(e.Reasons, text)
	}
	slices.Sort(e.Reasons)
	e.Reasons = bounded(e.Reasons)
	e.Remedy = bundles.Clip(e.Remedy, maxReason)
	return e
}

// What is said about a conflict ends up in a condition, which people read.
const (
	maxReasons = 20
	maxReason  = 500
)

// bounded keeps reasons to what a person can read.
func bounded(reasons []string) []string {
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons:maxReasons], fmt.Sprintf("and %d reasons more", more))
	}
	for i := range reasons {
		reasons[i] = bundles.Clip(reasons[i], maxReason)
	}
	return reasons
}

// condense puts reasons into words. What speaks against every version of a channel
// in the same way is said of the newest one.
func (m *model) condense(reasons []reason) []string {
	type group struct {
		first reason
		more  int
	}
	var order []string
	groups := map[string]*group{}
	for _, why := range reasons {
		key := m.likeness(why)
		if groups[key] == nil {
			groups[key] = &group{first: why}
			order = append(order, key)
			continue
		}
		groups[key].more++
	}
	var texts []string
	for _, key := range order {
		text := m.word(groups[key].first)
		if more := groups[key].more; more > 0 {
			text += fmt.Sprintf(" (likewise %d other versions of package %s)", more, groups[key].first.subjectPackage())
		}
		texts = append(texts, text)
	}
	return texts
}

// likeness is the same for reasons that differ in nothing but the version of a
// package that they speak of.
func (m *model) likeness(why reason) string {
	switch why.kind {
	case requires:
		if why.node.operator == nil {
			return fmt.Sprintf("%d/%s/%s/%s", why.kind, why.node.catalog, why.node.pkg(), why.constraint)
		}
	case deprecated, unreadable:
		return fmt.Sprintf("%d/%s/%s", why.kind, why.node.catalog, why.node.pkg())
	case beside:
		if common := commonGVKs(why.node.subject(), why.other.subject()); !m.samePackage(why) && len(common) > 0 {
			return fmt.Sprintf("%d/%s/%s/%s/%s", why.kind, why.node.name(), why.other.catalog, why.other.pkg(), common[0])
		}
		return fmt.Sprintf("%d/%s/%s/%s", why.kind, why.node.name(), why.other.catalog, why.other.pkg())
	case subscribed, requested, present, onePackage, oneAPI, preferred, fixed:
	}
	return m.word(why)
}

// subjectPackage is the package whose versions a reason speaks of.
func (why reason) subjectPackage() string {
	if why.kind == beside {
		return why.other.pkg()
	}
	return why.node.pkg()
}

func (m *model) samePackage(why reason) bool { return why.node.pkg() == why.other.pkg() }

// word says what a constraint demands, in the words that are known from today's
// messages.
func (m *model) word(why reason) string {
	switch why.kind {
	case subscribed:
		return exists(why.request.sub)
	case requested:
		return m.wordAlternatives(why.request)
	case present:
		return m.wordPresent(why.node.operator)
	case deprecated:
		return fmt.Sprintf("bundle %s is deprecated", why.node.id(m.Namespace))
	case unreadable:
		return fmt.Sprintf("bundle %s cannot be read: %v", why.node.id(m.Namespace), why.node.entry.Bundle.Err)
	case requires:
		return wordNeed(why)
	case beside:
		return m.wordPair(why)
	case preferred:
		return fmt.Sprintf("bundle %s is the newest", why.node.id(m.Namespace))
	case fixed:
		return fmt.Sprintf("subscription %s gets %s", why.request.sub.Name, why.node.id(m.Namespace))
	case onePackage:
		return "there can be only one operator from package " + why.pkg
	default:
		return "there can be only one provider of " + wordAPI(why.gvk)
	}
}

func (m *model) wordPresent(o *Operator) string {
	if m.owner[o] != nil {
		return fmt.Sprintf("clusterserviceversion %s exists", o.Name)
	}
	return fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", o.Name)
}

func wordNeed(why reason) string {
	if why.node.operator != nil {
		return fmt.Sprintf("clusterserviceversion %s requires an operator %s", why.node.name(), why.constraint)
	}
	return fmt.Sprintf("bundle %s requires an operator %s", why.node.name(), why.constraint)
}

func wordAPI(gvk bundles.GVK) string {
	return fmt.Sprintf("%s (%s/%s)", gvk.Kind, gvk.Group, gvk.Version)
}

func (m *model) wordPair(why reason) string {
	a, b := why.node.id(m.Namespace), why.other.id(m.Namespace)
	if m.samePackage(why) {
		return fmt.Sprintf("%s and %s originate from package %s", a, b, why.other.pkg())
	}
	return fmt.Sprintf("%s and %s provide %s", a, b, wordAPI(commonGVKs(why.node.subject(), why.other.subject())[0]))
}

// wordAlternatives lists what would satisfy a wish; of many the first ones.
func (m *model) wordAlternatives(req *request) string {
	const most = 5
	var names []string
	for _, n := range req.alternatives() {
		names = append(names, n.id(m.Namespace))
	}
	if len(names) == 1 {
		return fmt.Sprintf("subscription %s requires %s", req.sub.Name, names[0])
	}
	last := names[len(names)-1]
	if len(names) > most {
		last = fmt.Sprintf("%d others", len(names)-most+1)
		names = names[:most]
	}
	return fmt.Sprintf("subscription %s requires at least one of %s or %s", req.sub.Name, strings.Join(names[:len(names)-1], ", "), last)
}

// missingIn returns the first reason that is about an operator which no catalog in scope has; nil for none.
func missingIn(m *model, reasons []reason) *reason {
	return pick(reasons, func(why *reason) bool {
		return why.kind == requires && len(m.providers.find(why.node.catalog, why.constraint).nodes) == 0
	})
}

// needed returns the first reason that is about what an installed operator requires; nil for none.
func needed(reasons []reason) *reason {
	return pick(reasons, func(why *reason) bool { return why.kind == requires && why.node.operator != nil })
}

// blockedBy returns the reason of api.ConditionBlocked for a set of reasons.
func blockedBy(m *model, reasons []reason) string {
	if needed(reasons) == nil && missingIn(m, reasons) != nil {
		return api.ReasonDependencyNotFound
	}
	return api.ReasonConstraintsNotSatisfiable
}

// remedy says what a person can do about a set of reasons. The most telling one
// decides.
func (m *model) remedy(req *request, reasons []reason) string {
	missing, held := missingIn(m, reasons), needed(reasons)
	rival := pick(reasons, func(why *reason) bool { return why.kind == beside && why.node.operator != req.installed })
	other := pick(reasons, func(why *reason) bool { return (why.kind == subscribed || why.kind == fixed) && why.request != req })
	switch {
	case held != nil:
		return fmt.Sprintf("the newer version would take from clusterserviceversion %s what it needs; this goes on when that one is updated or deleted", held.node.name())
	case missing != nil:
		return m.remedyMissing(missing)
	case rival != nil:
		return m.remedyRival(req, rival)
	case other != nil:
		return fmt.Sprintf("subscription %s cannot be met together with subscription %s, which comes first; delete one of them, or move it to a namespace of its own", req.sub.Name, other.request.sub.Name)
	case req.installed != nil:
		return "choose another channel, or ask the publisher of the catalog to fix it"
	default:
		return "choose another channel or startingCSV, or ask the publisher of the catalog to fix it"
	}
}

// pick gives the first reason that is as wanted; nil when none is.
func pick(reasons []reason, wanted func(*reason) bool) *reason {
	for i := range reasons {
		if wanted(&reasons[i]) {
			return &reasons[i]
		}
	}
	return nil
}

// remedyMissing is for what nothing in scope provides.
func (m *model) remedyMissing(why *reason) string {
	if m.evaluator.cutOff(why.constraint) {
		return fmt.Sprintf("property %s of %s takes too long to evaluate, so that not every operator was looked at; ask the publisher of the catalog for a simpler rule, or choose another channel or startingCSV",
			bundles.TypeConstraint, why.node.name())
	}
	const most = 150 // the reasons have all of it
	parts := []string{fmt.Sprintf("no catalog in scope has an operator %s; create a CatalogSource that has one, or choose another channel or startingCSV",
		bundles.Clip(why.constraint.String(), most))}
	for _, b := range m.unreadableVersions(why.constraint) {
		parts = append(parts, fmt.Sprintf("bundle %s may be one but cannot be used: %v", b.Name, b.Err))
	}
	var unread []string
	for _, key := range m.providers.ranked {
		if c := m.Catalogs[key]; c.Content == nil && !c.Pending {
			unread = append(unread, key.String())
		}
	}
	if len(unread) > 0 {
		parts = append(parts, fmt.Sprintf("catalogsource %s cannot be read and may have it", listing(unread)))
	}
	return strings.Join(parts, "; ")
}

// unreadableVersions gives, of a package that is asked for, the versions that cannot
// be read, a few of them.
func (m *model) unreadableVersions(c *constraint.Constraint) []*content.Bundle {
	const most = 2
	var found []*content.Bundle
	for _, key := range m.providers.ranked {
		catalog := m.Catalogs[key].Content
		if catalog == nil || c.Package == nil || catalog.Package(c.Package.Name) == nil {
			continue
		}
		for _, b := range catalog.Package(c.Package.Name).Bundles {
			if b.Err != nil && len(found) < most {
				found = append(found, b)
			}
		}
	}
	return found
}

// remedyRival is for an operator that is in the way.
func (m *model) remedyRival(req *request, why *reason) string {
	operator := why.node.name() + m.wordDependents(why.node.operator)
	keeper := m.owner[why.node.operator]
	if keeper != nil && keeper.sub.Frozen {
		return fmt.Sprintf("clusterserviceversion %s of subscription %s is in the way while something is under way for that one; this is looked at again when that is done", operator, keeper.sub.Name)
	}
	if keeper != nil {
		return fmt.Sprintf("clusterserviceversion %s of subscription %s is in the way; delete both, or move subscription %s to a namespace of its own", operator, keeper.sub.Name, req.sub.Name)
	}
	return fmt.Sprintf("clusterserviceversion %s is in the way; delete it if it is not needed (kubectl delete clusterserviceversion %s -n %s), or create a Subscription for its package", operator, why.node.name(), m.Namespace)
}

// wordDependents names the operators that rely on one, so that nobody deletes it
// unawares.
func (m *model) wordDependents(o *Operator) string {
	var names []string
	for _, n := range m.operators.dependents[o] {
		if !slices.Contains(names, n.of.Name) {
			names = append(names, n.of.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s relies on it)", listing(names))
}

// commonGVKs gives the APIs that both bring.
func commonGVKs(a, b *constraint.Subject) []bundles.GVK {
	var common []bundles.GVK
	for _, gvk := range a.GVKs {
		if slices.Contains(b.GVKs, gvk) {
			common = append(common, gvk)
		}
	}
	return common
}

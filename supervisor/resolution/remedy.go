package resolution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// remedies describes what users can do about reasons.
type remedies struct{ *resolver }

// missing returns the first reason that is about an operator which no catalog in scope has; nil for none.
func (r remedies) missing(reasons []reason) *reason {
	return firstWhere(reasons, func(why *reason) bool {
		return why.kind == requires && len(r.providers.find(why.node.catalog, why.constraint).nodes) == 0
	})
}

// dependent returns the first reason that is about a dependency of an installed operator; nil for none.
func dependent(reasons []reason) *reason {
	return firstWhere(reasons, func(why *reason) bool { return why.kind == requires && why.node.operator != nil })
}

// blockedReason returns the reason of api.ConditionBlocked for a set of reasons.
func (r remedies) blockedReason(reasons []reason) string {
	if dependent(reasons) == nil && r.missing(reasons) != nil {
		return api.ReasonDependencyNotFound
	}
	return api.ReasonConstraintsNotSatisfiable
}

// remedy returns the remedy for the most specific of the reasons.
func (r remedies) remedy(req *request, reasons []reason) string {
	missing, dependency := r.missing(reasons), dependent(reasons)
	conflict := firstWhere(reasons, func(why *reason) bool { return why.kind == exclusive && why.node.operator != req.installed })
	other := firstWhere(reasons, func(why *reason) bool { return (why.kind == subscribed || why.kind == fixed) && why.request != req })
	switch {
	case dependency != nil:
		return fmt.Sprintf("the newer version lacks a requirement of clusterserviceversion %s; the update continues when that version is updated or deleted", dependency.node.name())
	case missing != nil:
		return r.forMissing(missing)
	case conflict != nil:
		return r.forConflict(req, conflict)
	case other != nil:
		return fmt.Sprintf("subscription %s cannot be met together with subscription %s, which comes first; delete one of them, or move it to a namespace of its own", req.sub.Name, other.request.sub.Name)
	case req.installed != nil:
		return "choose another channel, or ask the publisher of the catalog to fix it"
	default:
		return "choose another channel or startingCSV, or ask the publisher of the catalog to fix it"
	}
}

// firstWhere returns the first wanted reason; nil if there is none.
func firstWhere(reasons []reason, wanted func(*reason) bool) *reason {
	for i := range reasons {
		if wanted(&reasons[i]) {
			return &reasons[i]
		}
	}
	return nil
}

// forMissing returns the remedy for a constraint that no operator in scope meets.
func (r remedies) forMissing(why *reason) string {
	if r.evaluator.cutOff(why.constraint) {
		return fmt.Sprintf("property %s of %s takes too long to evaluate, so not all operators were checked; ask the publisher of the catalog for a simpler rule, or choose another channel or startingCSV",
			bundles.TypeConstraint, why.node.name())
	}
	const most = 150 // the reasons state the whole constraint
	parts := []string{fmt.Sprintf("no catalog in scope has an operator %s; create a CatalogSource that has one, or choose another channel or startingCSV",
		bundles.Clip(why.constraint.String(), most))}
	for _, b := range r.unreadableVersions(why.constraint) {
		parts = append(parts, fmt.Sprintf("bundle %s may match but cannot be used: %v", b.Name, b.Err))
	}
	var unread []string
	for _, key := range r.providers.ranked {
		if c := r.Catalogs[key]; c.Content == nil && !c.Pending {
			unread = append(unread, key.String())
		}
	}
	if len(unread) > 0 {
		parts = append(parts, fmt.Sprintf("catalogsource %s cannot be read and may have it", joinNames(unread)))
	}
	return strings.Join(parts, "; ")
}

// unreadableVersions returns the first few versions of a required package with invalid properties.
func (r remedies) unreadableVersions(c *constraint.Constraint) []*content.Bundle {
	const most = 2
	var found []*content.Bundle
	for _, key := range r.providers.ranked {
		catalog := r.Catalogs[key].Content
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

// forConflict returns the remedy for a present operator that excludes a version.
func (r remedies) forConflict(req *request, why *reason) string {
	operator := why.node.name() + r.dependents(why.node.operator)
	owner := r.owner[why.node.operator]
	if owner != nil && owner.sub.InProgress {
		return fmt.Sprintf("clusterserviceversion %s of subscription %s is in the way until the installation or update of that subscription is complete; the supervisor then resolves again", operator, owner.sub.Name)
	}
	if owner != nil {
		return fmt.Sprintf("clusterserviceversion %s of subscription %s is in the way; delete both, or move subscription %s to a namespace of its own", operator, owner.sub.Name, req.sub.Name)
	}
	return fmt.Sprintf("clusterserviceversion %s is in the way; delete it if it is not needed (kubectl delete clusterserviceversion %s -n %s), or create a Subscription for its package", operator, why.node.name(), r.Namespace)
}

// dependents returns a text with the operators that depend on one; empty if there are none.
func (r remedies) dependents(o *Operator) string {
	var names []string
	for _, d := range r.operators.dependents[o] {
		if !slices.Contains(names, d.of.Name) {
			names = append(names, d.of.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s relies on it)", joinNames(names))
}

// commonGVKs returns the APIs that both provide.
func commonGVKs(a, b *constraint.Subject) []bundles.GVK {
	var common []bundles.GVK
	for _, gvk := range a.GVKs {
		if slices.Contains(b.GVKs, gvk) {
			common = append(common, gvk)
		}
	}
	return common
}

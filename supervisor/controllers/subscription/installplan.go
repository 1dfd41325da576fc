package subscription

import (
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// installs reports whether a plan installs a version.
func installs(p *operatorsv1alpha1.InstallPlan, csv string) bool {
	return slices.Contains(p.Spec.ClusterServiceVersionNames, csv)
}

// complete reports whether all steps of a plan were applied.
func complete(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete
}

// open reports whether a plan is unfinished.
func open(p *operatorsv1alpha1.InstallPlan) bool {
	return !complete(p) && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseFailed
}

// planning reports whether a plan has not left Planning: its manifests may be missing.
func planning(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseNone || p.Status.Phase == operatorsv1alpha1.InstallPlanPhasePlanning
}

// lacksSteps reports whether the steps of a plan are not written yet: it is new, its content
// is missing, or its creator died.
func lacksSteps(p *operatorsv1alpha1.InstallPlan) bool {
	return planning(p) && len(p.Status.Plan) == 0
}

// running reports whether the steps of a plan are being applied, or are about to be. A plan that
// waits for approval is not running: a newer version may still replace it.
func running(p *operatorsv1alpha1.InstallPlan) bool {
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		return true
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return p.Spec.Approved
	case operatorsv1alpha1.InstallPlanPhasePlanning:
		return p.Spec.Approved && len(p.Status.Plan) > 0
	default:
		return false
	}
}

// serves reports whether a plan serves a Subscription, by its owner references or its annotations.
func serves(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, recorded := p.Annotations[api.PrefixServes+string(sub.UID)]
	return recorded || isOwner(p, sub)
}

// recordsSubscriptions reports whether the annotations of a plan name the Subscriptions that it
// serves.
func recordsSubscriptions(p *operatorsv1alpha1.InstallPlan) bool {
	for key := range p.Annotations {
		if strings.HasPrefix(key, api.PrefixServes) {
			return true
		}
	}
	return false
}

// belongsTo reports whether a plan belongs to a Subscription: the Subscription owns the plan, or was
// created by it.
func belongsTo(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	return generatedBy(sub) == p.Name || isOwner(p, sub)
}

// isOwner reports whether a Subscription is an owner of a plan.
func isOwner(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	for _, ref := range p.OwnerReferences {
		if ref.UID == sub.UID {
			return true
		}
	}
	return false
}

// generatedBy returns the name of the plan that created a Subscription for a dependency; empty for
// the Subscription of a user.
func generatedBy(sub *operatorsv1alpha1.Subscription) string {
	return sub.Annotations[api.AnnotationGeneratedBy]
}

// versionFor returns the version of the package of a Subscription that a plan installs, for
// whatever Subscription; empty for none.
func versionFor(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) string {
	if _, labelled := p.Labels[plan.ComponentLabel(sub.Spec.Package, sub.Namespace)]; !labelled {
		return ""
	}
	return plan.VersionOf(p, sub.Spec.Package)
}

// installsFrom reports whether a plan installs a version of the package and from the catalog that a
// Subscription names.
func installsFrom(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	version := versionFor(p, sub)
	return version != "" && slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
		r := s.Resource
		return r.Kind == operatorsv1alpha1.ClusterServiceVersionKind && r.Name == version &&
			r.CatalogSource == sub.Spec.CatalogSource && r.CatalogSourceNamespace == sub.Spec.CatalogSourceNamespace
	})
}

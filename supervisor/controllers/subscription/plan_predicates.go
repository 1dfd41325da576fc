package subscription

import (
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
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

// unreadable reports whether a plan of OLM failed because steps are missing whose bundle only OLM reads.
func unreadable(p *operatorsv1alpha1.InstallPlan) bool {
	return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed && slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
		return !plansteps.IsApplied(s.Status) && plansteps.IsUnpacked(s)
	})
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
	if _, labelled := p.Labels[plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace)]; !labelled {
		return ""
	}
	return plansteps.VersionOf(p, sub.Spec.Package)
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

// stripped reports whether the record of a plan of this supervisor was stripped: the Subscriptions it
// serves and the versions it installs. The approval is written with the rest of the record or after
// it. A plan with an approval is therefore complete.
func stripped(p *operatorsv1alpha1.InstallPlan) bool {
	_, recorded := p.Annotations[api.AnnotationApproval]
	return !recorded && plansteps.IsName(p.Name)
}

// planRecord returns the labels and annotations of a plan that installs some versions.
func planRecord(namespace string, versions []plansteps.Identity, approval operatorsv1alpha1.Approval) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Labels:      map[string]string{api.LabelManaged: "true"},
		Annotations: map[string]string{api.AnnotationApproval: string(approval)},
	}
	for _, v := range versions {
		meta.Labels[plansteps.ComponentLabel(v.Package, namespace)] = ""
	}
	if len(versions) > 1 || (len(versions) == 1 && versions[0].Generated) {
		meta.Annotations[api.AnnotationVersions] = plansteps.Versions(versions)
	}
	return meta
}

// versionsInSteps returns the versions that a plan installs, from its steps. The steps do not show
// whether a Subscription asked for a version.
func versionsInSteps(p *operatorsv1alpha1.InstallPlan) []plansteps.Identity {
	var versions []plansteps.Identity
	for _, step := range p.Status.Plan {
		if step.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind || !installs(p, step.Resource.Name) {
			continue
		}
		if a, ok := (catalogSet{}).incomingVersion(step); ok && a.operator.Subject.Package != "" {
			versions = append(versions, plansteps.Identity{Package: a.operator.Subject.Package, Bundle: a.operator.Name, Generated: true})
		}
	}
	return versions
}

// withRecord returns a plan with the record of its versions, which it recovers from the steps if it
// was stripped. It leaves out the approval: the plan counts as stripped until that is written.
func withRecord(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.InstallPlan {
	if !stripped(p) {
		return p
	}
	versions := versionsInSteps(p)
	if len(versions) == 0 {
		return p
	}
	p = p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationVersions, plansteps.Versions(versions))
	for _, v := range versions {
		metav1.SetMetaDataLabel(&p.ObjectMeta, plansteps.ComponentLabel(v.Package, p.Namespace), "")
	}
	return p
}

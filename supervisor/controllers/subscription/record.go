package subscription

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// stripped reports whether the record of a plan of this supervisor was stripped: the Subscriptions it
// serves and the versions it brings. The approval is written with the rest of the record or after
// it. A plan with an approval is therefore complete.
func stripped(p *operatorsv1alpha1.InstallPlan) bool {
	_, recorded := p.Annotations[api.AnnotationApproval]
	return !recorded && plan.IsName(p.Name)
}

// planRecord returns the labels and annotations of a plan that installs some versions.
func planRecord(namespace string, versions []plan.Identity, approval operatorsv1alpha1.Approval) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Labels:      map[string]string{api.LabelManaged: "true"},
		Annotations: map[string]string{api.AnnotationApproval: string(approval)},
	}
	for _, v := range versions {
		meta.Labels[plan.ComponentLabel(v.Package, namespace)] = ""
	}
	if len(versions) > 1 || (len(versions) == 1 && versions[0].Generated) {
		meta.Annotations[api.AnnotationVersions] = plan.Versions(versions)
	}
	return meta
}

// versionsInSteps returns the versions that a plan installs, from its steps. The steps do not show
// whether a Subscription asked for a version.
func versionsInSteps(p *operatorsv1alpha1.InstallPlan) []plan.Identity {
	var versions []plan.Identity
	for _, step := range p.Status.Plan {
		if step.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind || !installs(p, step.Resource.Name) {
			continue
		}
		if a, ok := (catalogSet{}).arrivalOf(step); ok && a.operator.Subject.Package != "" {
			versions = append(versions, plan.Identity{Package: a.operator.Subject.Package, Bundle: a.operator.Name, Generated: true})
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
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationVersions, plan.Versions(versions))
	for _, v := range versions {
		metav1.SetMetaDataLabel(&p.ObjectMeta, plan.ComponentLabel(v.Package, p.Namespace), "")
	}
	return p
}

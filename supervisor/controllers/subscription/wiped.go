package subscription

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// wiped reports whether the record of a plan of this supervisor was stripped: the Subscriptions it
// serves and the versions it brings. The approval is written with the rest of the record or after
// it. A plan with an approval is therefore complete.
func wiped(p *operatorsv1alpha1.InstallPlan) bool {
	_, recorded := p.Annotations[api.AnnotationApproval]
	return !recorded && plan.IsName(p.Name)
}

// record returns the labels and annotations of a plan that brings some versions.
func record(namespace string, versions []plan.Identity, approval operatorsv1alpha1.Approval) metav1.ObjectMeta {
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

// brought returns the versions that a plan brings, from its steps. The steps do not show whether a
// Subscription asked for a version.
func (o *observation) brought(p *operatorsv1alpha1.InstallPlan) []plan.Identity {
	var versions []plan.Identity
	for _, step := range p.Status.Plan {
		if step.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind || !installs(p, step.Resource.Name) {
			continue
		}
		if a, ok := o.arrivalOf(step); ok && a.operator.Subject.Package != "" {
			versions = append(versions, plan.Identity{Package: a.operator.Subject.Package, Bundle: a.operator.Name, Generated: true})
		}
	}
	return versions
}

// legible returns a plan with the record of its versions, which it recovers from the steps if it
// was stripped. It leaves out the approval: the plan counts as stripped until that is written.
func (o *observation) legible(p *operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.InstallPlan {
	versions := []plan.Identity(nil)
	if wiped(p) {
		versions = o.brought(p)
	}
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

// askedFor reports whether a stripped plan may have been created for a Subscription. That is so if
// the Subscription is an owner of the plan. It is also so if the Subscription asks for what the
// plan brings, and no other plan has brought that. The status of the Subscription may not have
// referred to the plan yet.
func (o *observation) askedFor(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	if !wiped(p) {
		return false
	}
	return isOwner(p, sub) || (bringsFrom(p, sub) && o.planFor(sub, versionFor(p, sub)) == nil)
}

// rewrite restores the record of a stripped plan. Its owners have to be restored before.
func (r *Reconciler) rewrite(ctx context.Context, p *operatorsv1alpha1.InstallPlan, versions []plan.Identity) error {
	before := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	after := before.DeepCopy()
	meta := record(p.Namespace, versions, p.Spec.Approval)
	after.Labels, after.Annotations = meta.Labels, meta.Annotations
	// The UID excludes a recreated object.
	after.UID = p.UID
	if err := r.client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing back what InstallPlan %s/%s is for: %w", p.Namespace, p.Name, err)
	}
	log.FromContext(ctx).Info("Wrote back what was taken from plan", "installPlan", p.Name, "installs", p.Spec.ClusterServiceVersionNames)
	p.Labels, p.Annotations, p.ResourceVersion = after.Labels, after.Annotations, after.ResourceVersion
	return nil
}

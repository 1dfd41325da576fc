package subscription

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// ensureOwners makes each Subscription that a plan serves an owner of it, and records that in an
// annotation. Every Subscription has its own field manager. Adding one reference therefore cannot
// drop another, and a removed one can be restored.
func (r *Reconciler) ensureOwners(ctx context.Context, p *operatorsv1alpha1.InstallPlan, served ...*operatorsv1alpha1.Subscription) error {
	for _, sub := range served {
		_, noted := p.Annotations[api.PrefixServes+string(sub.UID)]
		if noted && isOwner(p, sub) && bearsLabel(p, sub) {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind))
		u.SetNamespace(p.Namespace)
		u.SetName(p.Name)
		// A deleted plan must not be recreated without its steps.
		u.SetUID(p.UID)
		u.SetOwnerReferences([]metav1.OwnerReference{ownerReference(sub)})
		u.SetAnnotations(map[string]string{api.PrefixServes + string(sub.UID): sub.Name})
		if plan.VersionOf(p, sub.Spec.Package) != "" {
			u.SetLabels(map[string]string{plan.ComponentLabel(sub.Spec.Package, sub.Namespace): ""})
		}
		manager := client.FieldOwner("chandlery-subscription-" + string(sub.UID))
		if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), manager, client.ForceOwnership); err != nil {
			return fmt.Errorf("making Subscription %s an owner of InstallPlan %s/%s: %w", sub.Name, p.Namespace, p.Name, err)
		}
		log.FromContext(ctx).Info("Made Subscription an owner of plan", "subscription", sub.Name, "installPlan", p.Name)
		p.OwnerReferences, p.Annotations, p.Labels = u.GetOwnerReferences(), u.GetAnnotations(), u.GetLabels()
		p.ResourceVersion = u.GetResourceVersion()
	}
	return nil
}

// restoreOwners restores removed owners of plans, and removes Subscriptions that the plans do not
// serve. parted holds, by plan, the Subscriptions that it no longer serves.
func (r *Reconciler) restoreOwners(ctx context.Context, o *observation, parted map[string][]types.UID) error {
	for _, p := range o.plans {
		surplus := append(o.surplusOwners(p), parted[p.Name]...)
		var lost []*operatorsv1alpha1.Subscription
		for _, sub := range o.lostOwners(p) {
			if !slices.Contains(surplus, sub.UID) {
				lost = append(lost, sub)
			}
		}
		var err error
		switch {
		case !p.DeletionTimestamp.IsZero():
		case len(surplus) > 0:
			err = r.dropOwners(ctx, p, surplus)
		default:
			err = r.restore(ctx, o, p.DeepCopy(), lost)
		}
		if err := r.unlessConflict(o, err); err != nil {
			return err
		}
	}
	return nil
}

// restore restores the owners of a plan, and then the rest of its record, if that was stripped and
// the steps contain it.
func (r *Reconciler) restore(ctx context.Context, o *observation, p *operatorsv1alpha1.InstallPlan, lost []*operatorsv1alpha1.Subscription) error {
	var versions []plan.Identity
	if wiped(p) {
		versions = o.brought(p)
	}
	if err := r.ensureOwners(ctx, p, lost...); err != nil || len(versions) == 0 {
		return err
	}
	return r.rewrite(ctx, p, versions)
}

// lostOwners returns the Subscriptions that a plan serves but does not have as owners. The
// annotations of the plan name them. Where those are stripped too, the status or the specification
// of the Subscriptions identifies the plan.
func (o *observation) lostOwners(p *operatorsv1alpha1.InstallPlan) []*operatorsv1alpha1.Subscription {
	var lost []*operatorsv1alpha1.Subscription
	for _, sub := range o.subscriptions {
		if o.hasLost(p, sub) {
			lost = append(lost, sub)
		}
	}
	return lost
}

// hasLost reports whether a plan serves a Subscription and lacks its owner reference, annotation or
// label. A label counts only while the plan is in progress or the status refers to it. Older plans
// lose it on purpose.
func (o *observation) hasLost(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, noted := p.Annotations[api.PrefixServes+string(sub.UID)]
	refers := refersTo(sub, p)
	switch {
	case refers && isOwner(p, sub) && !recordsAudience(p) && !wiped(p):
		// Another lifecycle manager created it.
		return false
	case !noted && !refers && !o.askedFor(p, sub):
		return false
	case !noted || !isOwner(p, sub):
		return true
	}
	return (refers || running(p)) && !bearsLabel(p, sub)
}

// refersTo reports whether the status of a Subscription refers to a plan that did not create the
// Subscription.
func refersTo(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) bool {
	ref := sub.Status.InstallPlanRef
	return ref != nil && ref.UID == p.UID && generatedBy(sub) != p.Name
}

// recordsAudience reports whether the annotations of a plan name the Subscriptions that it serves.
func recordsAudience(p *operatorsv1alpha1.InstallPlan) bool {
	for key := range p.Annotations {
		if strings.HasPrefix(key, api.PrefixServes) {
			return true
		}
	}
	return false
}

// bearsLabel reports whether a plan has the component label of the package of a Subscription. It
// returns true if the plan brings no version of that package.
func bearsLabel(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, bears := p.Labels[plan.ComponentLabel(sub.Spec.Package, sub.Namespace)]
	return bears || plan.VersionOf(p, sub.Spec.Package) == ""
}

// surplusOwners returns the Subscriptions that another client has made owners of a plan that does
// not serve them. A plan without annotations about the Subscriptions it serves is of another
// lifecycle manager. It returns none for such a plan.
func (o *observation) surplusOwners(p *operatorsv1alpha1.InstallPlan) []types.UID {
	serving := recordsAudience(p) && !wiped(p)
	var surplus []types.UID
	for _, ref := range p.OwnerReferences {
		_, noted := p.Annotations[api.PrefixServes+string(ref.UID)]
		if ref.Kind != operatorsv1alpha1.SubscriptionKind || noted || !serving {
			continue
		}
		refers := slices.ContainsFunc(o.subscriptions, func(sub *operatorsv1alpha1.Subscription) bool {
			return sub.UID == ref.UID && refersTo(sub, p)
		})
		if !refers {
			surplus = append(surplus, ref.UID)
		}
	}
	return surplus
}

// dropOwners removes owner references from a plan, and fails if the plan has changed since it was
// read.
func (r *Reconciler) dropOwners(ctx context.Context, p *operatorsv1alpha1.InstallPlan, surplus []types.UID) error {
	after := p.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(ref metav1.OwnerReference) bool { return slices.Contains(surplus, ref.UID) })
	for _, uid := range surplus {
		delete(after.Annotations, api.PrefixServes+string(uid))
	}
	if err := r.client.Patch(ctx, after, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taking owners from InstallPlan %s/%s that it does not serve: %w", p.Namespace, p.Name, err)
	}
	log.FromContext(ctx).Info("Took owners from plan that it does not serve", "installPlan", p.Name, "owners", surplus)
	return nil
}

// ensureApproval updates the approval of a waiting plan after a change of its Subscriptions. It
// does not change a value that a user set on the plan, and never revokes an approval.
func (r *Reconciler) ensureApproval(ctx context.Context, p *operatorsv1alpha1.InstallPlan, approval operatorsv1alpha1.Approval) error {
	if p.Spec.Approved || p.Annotations[api.AnnotationApproval] == string(approval) {
		return nil
	}
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationApproval, string(approval))
	p.Spec.Approval = approval
	p.Spec.Approved = approval == operatorsv1alpha1.ApprovalAutomatic
	// The approval marks a record as whole. On a plan whose record was wiped after it was
	// read, it would hide the loss.
	if err := r.client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing the approval of InstallPlan %s/%s to %s: %w", p.Namespace, p.Name, approval, err)
	}
	log.FromContext(ctx).Info("Changed approval of plan", "installPlan", p.Name, "approval", approval)
	return nil
}

func ownerReference(sub *operatorsv1alpha1.Subscription) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: operatorsv1alpha1.SubscriptionCRDAPIVersion, Kind: operatorsv1alpha1.SubscriptionKind,
		Name: sub.Name, UID: sub.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

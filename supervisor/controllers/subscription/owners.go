package subscription

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// ownerWriter restores the Subscriptions that InstallPlans serve, as owners and in annotations.
type ownerWriter struct {
	client client.Client
}

// ensure makes each Subscription that a plan serves an owner of it, and records that in an
// annotation. Every Subscription has its own field manager. Adding one reference therefore cannot
// drop another, and a removed one can be restored.
func (w *ownerWriter) ensure(ctx context.Context, p *operatorsv1alpha1.InstallPlan, served ...*operatorsv1alpha1.Subscription) error {
	for _, sub := range served {
		_, recorded := p.Annotations[api.PrefixServes+string(sub.UID)]
		if recorded && isOwner(p, sub) && hasComponentLabel(p, sub) {
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
		if plansteps.VersionOf(p, sub.Spec.Package) != "" {
			u.SetLabels(map[string]string{plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace): ""})
		}
		manager := client.FieldOwner("chandlery-subscription-" + string(sub.UID))
		if err := apply.Apply(ctx, w.client, u, manager, client.ForceOwnership); err != nil {
			return fmt.Errorf("making Subscription %s an owner of InstallPlan %s/%s: %w", sub.Name, p.Namespace, p.Name, err)
		}
		log.FromContext(ctx).Info("Made Subscription an owner of plan", "subscription", sub.Name, "installPlan", p.Name)
		p.OwnerReferences, p.Annotations, p.Labels = u.GetOwnerReferences(), u.GetAnnotations(), u.GetLabels()
		p.ResourceVersion = u.GetResourceVersion()
	}
	return nil
}

// addLateOwners makes Subscriptions owners of a plan in progress that installs what they ask for.
// They were created after the plan. It returns the decisions with the failures that concern them.
func (w *ownerWriter) addLateOwners(ctx context.Context, decisions []*decision) []*decision {
	list := make([]*decision, 0, len(decisions))
	for _, d := range decisions {
		p := d.inProgress
		if p != nil && d.err == nil && !belongsTo(p, d.subscription) && installsFrom(p, d.subscription) {
			if err := w.ensure(ctx, p.DeepCopy(), d.subscription); err != nil {
				d = d.failed(&planError{err: err})
			}
		}
		list = append(list, d)
	}
	return list
}

// restore restores removed owners of plans, and removes Subscriptions that the plans do not serve.
// former holds, by plan, the Subscriptions that it no longer serves. Plans that another client has
// changed are left for the next pass, whose time it returns.
func (w *ownerWriter) restore(ctx context.Context, o *namespaceState, former map[string][]types.UID, now time.Time) (next time.Time, err error) {
	for _, p := range o.plans {
		surplus := append(surplusOwners(o.subscriptions, p), former[p.Name]...)
		lost := slices.DeleteFunc(missingOwners(o, p), func(sub *operatorsv1alpha1.Subscription) bool { return slices.Contains(surplus, sub.UID) })
		var err error
		switch {
		case !p.DeletionTimestamp.IsZero():
		case len(surplus) > 0:
			err = w.remove(ctx, p, surplus)
		default:
			err = w.restoreOne(ctx, p.DeepCopy(), lost)
		}
		again, err := absorbConflict(err, now)
		if err != nil {
			return time.Time{}, err
		}
		next = earliest(next, again)
	}
	return next, nil
}

// restoreOne restores the owners of a plan, and then the rest of its record, if that was stripped
// and the steps contain it.
func (w *ownerWriter) restoreOne(ctx context.Context, p *operatorsv1alpha1.InstallPlan, lost []*operatorsv1alpha1.Subscription) error {
	var versions []plansteps.Identity
	if stripped(p) {
		versions = versionsInSteps(p)
	}
	if err := w.ensure(ctx, p, lost...); err != nil || len(versions) == 0 {
		return err
	}
	return w.restoreRecord(ctx, p, versions)
}

// remove removes owner references from a plan, and fails if the plan has changed since it was
// read.
func (w *ownerWriter) remove(ctx context.Context, p *operatorsv1alpha1.InstallPlan, surplus []types.UID) error {
	after := p.DeepCopy()
	after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, func(ref metav1.OwnerReference) bool { return slices.Contains(surplus, ref.UID) })
	for _, uid := range surplus {
		delete(after.Annotations, api.PrefixServes+string(uid))
	}
	if err := apply.Patch(ctx, w.client, after, apply.MergeFromLocked(p), apply.UserAgent); err != nil {
		return fmt.Errorf("removing owners from InstallPlan %s/%s that it does not serve: %w", p.Namespace, p.Name, err)
	}
	log.FromContext(ctx).Info("Removed owners from plan that does not serve them", "installPlan", p.Name, "owners", surplus)
	return nil
}

// restoreRecord restores the record of a stripped plan. Its owners have to be restored before.
func (w *ownerWriter) restoreRecord(ctx context.Context, p *operatorsv1alpha1.InstallPlan, versions []plansteps.Identity) error {
	meta := planRecord(p.Namespace, versions, p.Spec.Approval)
	// The UID excludes a recreated object.
	patch := apply.MergePatch{"metadata": map[string]any{"uid": p.UID, "labels": meta.Labels, "annotations": meta.Annotations}}
	after := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	if err := apply.Patch(ctx, w.client, after, patch, apply.UserAgent); err != nil {
		return fmt.Errorf("restoring the record of InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	log.FromContext(ctx).Info("Restored record of plan", "installPlan", p.Name, "installs", p.Spec.ClusterServiceVersionNames)
	p.Labels, p.Annotations, p.ResourceVersion = after.Labels, after.Annotations, after.ResourceVersion
	return nil
}

// missingOwners returns the Subscriptions that a plan serves but does not have as owners. The
// annotations of the plan name them. Where those are stripped too, the status or the specification
// of the Subscriptions identifies the plan.
func missingOwners(o *namespaceState, p *operatorsv1alpha1.InstallPlan) []*operatorsv1alpha1.Subscription {
	var lost []*operatorsv1alpha1.Subscription
	for _, sub := range o.subscriptions {
		if lacksOwner(o.plans, p, sub) {
			lost = append(lost, sub)
		}
	}
	return lost
}

// lacksOwner reports whether a plan serves a Subscription and lacks its owner reference, annotation or
// label. A label counts only while the plan is in progress or the status refers to it. Older plans
// lose it on purpose.
func lacksOwner(plans planSet, p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, recorded := p.Annotations[api.PrefixServes+string(sub.UID)]
	refers := refersToPlan(sub, p)
	switch {
	case refers && isOwner(p, sub) && !recordsSubscriptions(p) && !stripped(p):
		// Another lifecycle manager created it.
		return false
	case !recorded && !refers && !mayServe(plans, p, sub):
		return false
	case !recorded || !isOwner(p, sub):
		return true
	}
	return (refers || running(p)) && !hasComponentLabel(p, sub)
}

// mayServe reports whether a stripped plan may have been created for a Subscription. That is so if
// the Subscription is an owner of the plan. It is also so if the Subscription asks for what the
// plan installs, and no other plan has installed that. The status of the Subscription may not have
// referred to the plan yet.
func mayServe(plans planSet, p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	if !stripped(p) {
		return false
	}
	return isOwner(p, sub) || (installsFrom(p, sub) && plans.installing(sub, versionFor(p, sub)) == nil)
}

// refersToPlan reports whether the status of a Subscription refers to a plan that did not create the
// Subscription.
func refersToPlan(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) bool {
	ref := sub.Status.InstallPlanRef
	return ref != nil && ref.UID == p.UID && generatedBy(sub) != p.Name
}

// hasComponentLabel reports whether a plan has the component label of the package of a
// Subscription. It returns true if the plan installs no version of that package.
func hasComponentLabel(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	_, has := p.Labels[plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace)]
	return has || plansteps.VersionOf(p, sub.Spec.Package) == ""
}

// surplusOwners returns the Subscriptions that another client has made owners of a plan that does
// not serve them. A plan without annotations about the Subscriptions it serves is of another
// lifecycle manager. It returns none for such a plan.
func surplusOwners(subs []*operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) []types.UID {
	serving := recordsSubscriptions(p) && !stripped(p)
	var surplus []types.UID
	for _, ref := range p.OwnerReferences {
		_, recorded := p.Annotations[api.PrefixServes+string(ref.UID)]
		if ref.Kind != operatorsv1alpha1.SubscriptionKind || recorded || !serving {
			continue
		}
		refers := slices.ContainsFunc(subs, func(sub *operatorsv1alpha1.Subscription) bool {
			return sub.UID == ref.UID && refersToPlan(sub, p)
		})
		if !refers {
			surplus = append(surplus, ref.UID)
		}
	}
	return surplus
}

// ownerReference returns the owner reference of a plan to a Subscription.
func ownerReference(sub *operatorsv1alpha1.Subscription) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: operatorsv1alpha1.SubscriptionCRDAPIVersion, Kind: operatorsv1alpha1.SubscriptionKind,
		Name: sub.Name, UID: sub.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

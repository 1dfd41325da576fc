package subscription

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// maxAttempts bounds how often one and the same version can be installed anew
// after it was removed, before the old plans have to be deleted.
const maxAttempts = 100

// ensurePlans makes sure that every decision to install has its plan, and gives
// the plans by the name of the Subscription. Decisions for the same version
// share a plan. A failure is recorded in the decisions that it concerns; the
// others go on.
func (r *Reconciler) ensurePlans(ctx context.Context, o *observation, decisions []*decision) map[string]*operatorsv1alpha1.InstallPlan {
	groups := map[plan.Identity][]*decision{}
	var order []plan.Identity
	for _, d := range decisions {
		if d.install == nil {
			continue
		}
		if groups[d.identity] == nil {
			order = append(order, d.identity)
		}
		groups[d.identity] = append(groups[d.identity], d)
	}
	plans := map[string]*operatorsv1alpha1.InstallPlan{}
	for _, identity := range order {
		p, err := r.ensurePlan(ctx, o, identity, groups[identity])
		for _, d := range groups[identity] {
			if err != nil {
				d.err, d.install = &planError{err: err}, nil
				continue
			}
			plans[d.subscription.Name] = p
		}
	}
	return plans
}

// ensurePlan finds or makes the plan of an identity and brings its owners,
// approval and content to what they should be.
func (r *Reconciler) ensurePlan(ctx context.Context, o *observation, identity plan.Identity, served []*decision) (*operatorsv1alpha1.InstallPlan, error) {
	p, err := r.findOrCreate(ctx, o, identity, served)
	if err != nil {
		return nil, err
	}
	if err := r.ensureOwners(ctx, p, served); err != nil {
		return nil, err
	}
	if err := r.ensureApproval(ctx, p, approvalOf(served)); err != nil {
		return nil, err
	}
	if len(p.Status.Plan) > 0 || p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseNone {
		return p, nil
	}
	return p, r.fill(ctx, p, identity, served[0])
}

// findOrCreate gives the plan of the current attempt. An attempt is over when
// its plan is complete and yet the version it installed is gone, so that it has
// to be installed again.
func (r *Reconciler) findOrCreate(ctx context.Context, o *observation, identity plan.Identity, served []*decision) (*operatorsv1alpha1.InstallPlan, error) {
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		p, err := r.get(ctx, o, plan.Name(identity, attempt))
		if apierrors.IsNotFound(err) {
			return r.create(ctx, o, plan.Name(identity, attempt), identity, served)
		}
		if err != nil {
			return nil, err
		}
		over, err := r.removedSince(ctx, p, identity.Bundle)
		if err != nil {
			return nil, err
		}
		if !over {
			return p, nil
		}
	}
	return nil, fmt.Errorf("version %s was installed and removed %d times; delete its InstallPlans to have it installed again", identity.Bundle, maxAttempts)
}

// get reads a plan. The cache may lag behind what this process wrote a moment
// ago, so its word is taken for what exists but not for what does not.
func (r *Reconciler) get(ctx context.Context, o *observation, name string) (*operatorsv1alpha1.InstallPlan, error) {
	if p := o.plans[name]; p != nil {
		return p.DeepCopy(), nil
	}
	p := &operatorsv1alpha1.InstallPlan{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, p); err != nil {
		return nil, fmt.Errorf("reading InstallPlan %s/%s: %w", o.namespace, name, err)
	}
	return p, nil
}

// removedSince says whether a complete plan's version is no longer there.
func (r *Reconciler) removedSince(ctx context.Context, p *operatorsv1alpha1.InstallPlan, csv string) (bool, error) {
	if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		return false, nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: csv}, &operatorsv1alpha1.ClusterServiceVersion{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ClusterServiceVersion %s/%s: %w", p.Namespace, csv, err)
	}
	return err != nil, nil
}

// create makes a plan, with its owners from the first moment on.
func (r *Reconciler) create(
	ctx context.Context, o *observation, name string, identity plan.Identity, served []*decision,
) (*operatorsv1alpha1.InstallPlan, error) {
	approval := approvalOf(served)
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: name,
			Labels: map[string]string{plan.LabelManaged: "true", plan.ComponentLabel(identity.Package, o.namespace): ""},
		},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: []string{identity.Bundle},
			Approval:                   approval,
			Approved:                   approval == operatorsv1alpha1.ApprovalAutomatic,
			Generation:                 o.nextGeneration(),
		},
	}
	for _, d := range served {
		p.OwnerReferences = append(p.OwnerReferences, ownerReference(d.subscription))
	}
	err := r.client.Create(ctx, p, client.FieldOwner(apply.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return r.get(ctx, &observation{namespace: o.namespace}, name)
	}
	if err != nil {
		return nil, fmt.Errorf("creating InstallPlan %s/%s: %w", o.namespace, name, err)
	}
	log.FromContext(ctx).Info("Created plan", "installPlan", name, "installs", identity.Bundle, "replaces", identity.Replaces, "approval", approval)
	// A plan made later in this pass has to count this one.
	o.plans[name] = p
	return p.DeepCopy(), nil
}

// fill writes the steps of a new plan, or of one whose maker died before it
// could.
func (r *Reconciler) fill(ctx context.Context, p *operatorsv1alpha1.InstallPlan, identity plan.Identity, d *decision) error {
	catalog := types.NamespacedName{Namespace: d.install.Catalog.Namespace, Name: d.install.Catalog.Name}
	bundle, err := r.catalogs.Bundle(ctx, catalog, d.install.Package, d.install.Channel, d.install.Bundle)
	if err != nil {
		return err
	}
	if plan.Digest(bundle.Objects) != identity.Content {
		return fmt.Errorf("bundle %s of package %s: %w; resolving again once its new content has been read", d.install.Bundle, d.install.Package, plan.ErrContentChanged)
	}
	bundle.Replaces = d.install.Replaces
	steps, err := plan.Steps(p.Namespace, bundle)
	if err != nil {
		return err
	}
	if err := plan.Externalize(steps, bundle, plan.MaxInline); err != nil {
		return err
	}
	before := p.DeepCopy()
	p.Status = operatorsv1alpha1.InstallPlanStatus{
		Phase:          operatorsv1alpha1.InstallPlanPhasePlanning,
		CatalogSources: []string{catalog.Name},
		Plan:           steps,
	}
	if err := r.client.Status().Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the steps of InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// ensureOwners adds the owner reference of each Subscription that a plan
// serves, when it is missing. Every Subscription has a field manager of its
// own, so that adding one reference cannot drop another.
func (r *Reconciler) ensureOwners(ctx context.Context, p *operatorsv1alpha1.InstallPlan, served []*decision) error {
	for _, d := range served {
		if servesSubscription(p, d.subscription) {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind))
		u.SetNamespace(p.Namespace)
		u.SetName(p.Name)
		u.SetOwnerReferences([]metav1.OwnerReference{ownerReference(d.subscription)})
		manager := client.FieldOwner("chandlery-subscription-" + string(d.subscription.UID))
		if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), manager, client.ForceOwnership); err != nil {
			return fmt.Errorf("making Subscription %s an owner of InstallPlan %s/%s: %w", d.subscription.Name, p.Namespace, p.Name, err)
		}
		p.OwnerReferences = u.GetOwnerReferences()
		p.ResourceVersion = u.GetResourceVersion()
	}
	return nil
}

// ensureApproval makes a plan that waits for approval follow a change of its
// Subscriptions' wish. An approval that was given is never taken back.
func (r *Reconciler) ensureApproval(ctx context.Context, p *operatorsv1alpha1.InstallPlan, approval operatorsv1alpha1.Approval) error {
	if p.Spec.Approved || p.Spec.Approval == approval {
		return nil
	}
	before := p.DeepCopy()
	p.Spec.Approval = approval
	p.Spec.Approved = approval == operatorsv1alpha1.ApprovalAutomatic
	if err := r.client.Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing the approval of InstallPlan %s/%s to %s: %w", p.Namespace, p.Name, approval, err)
	}
	return nil
}

func ownerReference(sub *operatorsv1alpha1.Subscription) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: operatorsv1alpha1.SubscriptionCRDAPIVersion, Kind: operatorsv1alpha1.SubscriptionKind,
		Name: sub.Name, UID: sub.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

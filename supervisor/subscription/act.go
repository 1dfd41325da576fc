package subscription

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// maxAttempts bounds how often one and the same version can be installed anew
// after it was removed, before the old plans have to be deleted.
const maxAttempts = 100

// assignment is what one plan is to do: the versions that it installs, and the
// Subscriptions that it serves.
type assignment struct {
	versions []plan.Identity
	choices  []*resolver.Choice // in the order of versions
	served   []*decision
}

// names are those of the versions.
func (a *assignment) names() []string {
	names := make([]string, 0, len(a.versions))
	for _, v := range a.versions {
		names = append(names, v.Bundle)
	}
	return names
}

// assign divides what was decided among plans: decisions that have a version in
// common, or one of which needs what the other brings, share one: it is approved as
// a whole. A plan's versions are those that Subscriptions ask for, in
// the order of the Subscriptions, and then what these need.
func assign(decisions []*decision) []*assignment {
	var assignments []*assignment
	for _, d := range decisions {
		if len(d.choices()) == 0 {
			continue
		}
		joined := &assignment{}
		var apart []*assignment
		for _, a := range assignments {
			if !a.meets(d) {
				apart = append(apart, a)
				continue
			}
			joined.served = append(joined.served, a.served...)
		}
		joined.served = append(joined.served, d)
		joined.collect()
		apart = append(apart, joined)
		assignments = apart
	}
	return assignments
}

// meets says whether a decision has a version in common with an assignment, or one
// needs what the other brings.
func (a *assignment) meets(d *decision) bool {
	for _, other := range a.served {
		if slices.Contains(d.with, other.subscription.Name) || slices.Contains(other.with, d.subscription.Name) {
			return true
		}
	}
	return slices.ContainsFunc(d.identities, func(v plan.Identity) bool { return a.index(v) >= 0 })
}

// index is where a version is, whoever asks for it; negative when it is not
// there.
func (a *assignment) index(v plan.Identity) int {
	v.Generated = false
	return slices.IndexFunc(a.versions, func(other plan.Identity) bool {
		other.Generated = false
		return other == v
	})
}

// collect brings together what the decisions want.
func (a *assignment) collect() {
	add := func(v plan.Identity, c *resolver.Choice) {
		if a.index(v) < 0 {
			a.versions, a.choices = append(a.versions, v), append(a.choices, c)
		}
	}
	for _, d := range a.served {
		if d.install != nil {
			add(d.identities[0], d.install)
		}
	}
	for _, d := range a.served {
		first := len(d.choices()) - len(d.along)
		for i, c := range d.along {
			add(d.identities[first+i], c)
		}
	}
}

// ensurePlans makes sure that every decision to install has its plan, and gives
// the plans by the name of the Subscription. A failure is recorded in the
// decisions that it concerns; the others go on.
func (r *Reconciler) ensurePlans(ctx context.Context, o *observation, decisions []*decision) map[string]*operatorsv1alpha1.InstallPlan {
	plans := map[string]*operatorsv1alpha1.InstallPlan{}
	for _, a := range assign(decisions) {
		p, err := r.ensurePlan(ctx, o, a)
		for _, d := range a.served {
			if err != nil {
				d.fail(&planError{err: err})
				continue
			}
			plans[d.subscription.Name] = p
		}
	}
	return plans
}

// ensurePlan finds or makes the plan of an assignment and brings its owners,
// approval and content to what they should be.
func (r *Reconciler) ensurePlan(ctx context.Context, o *observation, a *assignment) (*operatorsv1alpha1.InstallPlan, error) {
	p, err := r.findOrCreate(ctx, o, a)
	if err != nil {
		return nil, err
	}
	if err := r.ensureOwners(ctx, p, a.served); err != nil {
		return nil, err
	}
	if err := r.ensureApproval(ctx, p, approvalOf(a.served)); err != nil {
		return nil, err
	}
	if !unmade(p) {
		return p, nil
	}
	status, err := r.steps(ctx, p.Namespace, p.Name, a)
	if err != nil {
		return nil, err
	}
	return p, r.fill(ctx, p, status)
}

// findOrCreate gives the plan of the current attempt. An attempt is over when
// its plan is complete and yet a version it installed is gone, so that it has
// to be installed again.
func (r *Reconciler) findOrCreate(ctx context.Context, o *observation, a *assignment) (*operatorsv1alpha1.InstallPlan, error) {
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		p, err := r.get(ctx, o, plan.Name(a.versions, attempt))
		if apierrors.IsNotFound(err) {
			return r.create(ctx, o, plan.Name(a.versions, attempt), a)
		}
		if err != nil {
			return nil, err
		}
		over, err := r.removedSince(ctx, p, a)
		if err != nil {
			return nil, err
		}
		if !over {
			return p, nil
		}
	}
	return nil, fmt.Errorf("version %s was installed and removed %d times; delete its InstallPlans to have it installed again", strings.Join(a.names(), ", "), maxAttempts)
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

// removedSince says whether a version of a complete plan is no longer there.
func (r *Reconciler) removedSince(ctx context.Context, p *operatorsv1alpha1.InstallPlan, a *assignment) (bool, error) {
	if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		return false, nil
	}
	for _, csv := range a.names() {
		err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: csv}, &operatorsv1alpha1.ClusterServiceVersion{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading ClusterServiceVersion %s/%s: %w", p.Namespace, csv, err)
		}
	}
	return false, nil
}

// create makes a plan, with its owners from the first moment on. What it installs is
// read before: where that fails nothing is half made.
func (r *Reconciler) create(ctx context.Context, o *observation, name string, a *assignment) (*operatorsv1alpha1.InstallPlan, error) {
	status, err := r.steps(ctx, o.namespace, name, a)
	if err != nil {
		return nil, err
	}
	approval := approvalOf(a.served)
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name, Labels: map[string]string{plan.LabelManaged: "true"}},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: a.names(),
			Approval:                   approval,
			Approved:                   approval == operatorsv1alpha1.ApprovalAutomatic,
			Generation:                 o.nextGeneration(),
		},
	}
	for _, v := range a.versions {
		p.Labels[plan.ComponentLabel(v.Package, o.namespace)] = ""
	}
	if len(a.versions) > 1 || a.versions[0].Generated {
		p.Annotations = map[string]string{plan.AnnotationVersions: plan.Versions(a.versions)}
	}
	for _, d := range a.served {
		p.OwnerReferences = append(p.OwnerReferences, ownerReference(d.subscription))
	}
	err = r.client.Create(ctx, p, client.FieldOwner(apply.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return r.get(ctx, &observation{namespace: o.namespace}, name)
	}
	if err != nil {
		return nil, fmt.Errorf("creating InstallPlan %s/%s: %w", o.namespace, name, err)
	}
	for _, c := range a.choices {
		log.FromContext(ctx).Info("Planned version", "installPlan", name, "installs", c.Bundle, "replaces", c.Replaces,
			"catalogSource", c.Catalog.String(), "because", c.Because, "approval", approval)
	}
	// A plan made later in this pass has to count this one.
	o.plans[name] = p
	made := p.DeepCopy()
	return made, r.fill(ctx, made, status)
}

// steps reads what a plan installs and gives the status that it begins with.
func (r *Reconciler) steps(ctx context.Context, namespace, name string, a *assignment) (operatorsv1alpha1.InstallPlanStatus, error) {
	var (
		none     operatorsv1alpha1.InstallPlanStatus
		lists    [][]*operatorsv1alpha1.Step
		bundles  []plan.Bundle
		sources  []string
		generate []plan.Bundle
	)
	for i, c := range a.choices {
		bundle, err := r.content(ctx, c, a.versions[i].Content)
		if err != nil {
			return none, err
		}
		steps, err := plan.Steps(namespace, bundle)
		if err != nil {
			return none, err
		}
		lists, bundles = append(lists, steps), append(bundles, bundle)
		if !slices.Contains(sources, c.Catalog.Name) {
			sources = append(sources, c.Catalog.Name)
		}
		if a.versions[i].Generated {
			generate = append(generate, bundle)
		}
	}
	steps := plan.Merge(lists...)
	if err := plan.Externalize(steps, bundles, plan.MaxInline); err != nil {
		return none, err
	}
	for _, bundle := range generate {
		step, err := plan.SubscriptionStep(namespace, name, bundle)
		if err != nil {
			return none, err
		}
		steps = append(steps, step)
	}
	return operatorsv1alpha1.InstallPlanStatus{
		Phase:          operatorsv1alpha1.InstallPlanPhasePlanning,
		CatalogSources: sources,
		Plan:           steps,
	}, nil
}

// fill writes the steps of a new plan, or of one whose maker died before it
// could.
func (r *Reconciler) fill(ctx context.Context, p *operatorsv1alpha1.InstallPlan, status operatorsv1alpha1.InstallPlanStatus) error {
	before := p.DeepCopy()
	p.Status = status
	if err := r.client.Status().Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the steps of InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// content reads a chosen bundle, ready to be planned, if it is still the one that
// was chosen.
func (r *Reconciler) content(ctx context.Context, c *resolver.Choice, digest string) (plan.Bundle, error) {
	m := manifestsOf(c)
	bundle, err := r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
	if err != nil {
		return plan.Bundle{}, err
	}
	if plan.Digest(bundle.Objects) != digest {
		return plan.Bundle{}, fmt.Errorf("bundle %s of package %s: %w; resolving again once its new content has been read", m.name, m.pkg, plan.ErrContentChanged)
	}
	bundle.Replaces = c.Replaces
	return bundle, nil
}

// ensureOwners adds the owner reference of each Subscription that a plan
// serves, when it is missing. Every Subscription has a field manager of its
// own, so that adding one reference cannot drop another.
func (r *Reconciler) ensureOwners(ctx context.Context, p *operatorsv1alpha1.InstallPlan, served []*decision) error {
	for _, d := range served {
		if isOwner(p, d.subscription) {
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

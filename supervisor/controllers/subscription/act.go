package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/history"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// maxAttempts bounds how often the same version can be reinstalled after its removal, before its
// old plans must be deleted.
const maxAttempts = 100

// assignment is the content of one plan: the versions that it installs, and the Subscriptions that
// it serves.
type assignment struct {
	versions []plan.Identity
	choices  []*resolver.Choice // in the order of versions
	served   []*decision
}

// names returns the names of the versions.
func (a *assignment) names() []string {
	names := make([]string, 0, len(a.versions))
	for _, v := range a.versions {
		names = append(names, v.Bundle)
	}
	return names
}

// assign divides decisions among plans. Decisions share a plan if they have a version in common, or
// if one needs a version of the other. A plan is approved as a whole. A plan lists first the
// versions that Subscriptions ask for, in the order of the Subscriptions, and then their
// dependencies.
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

// meets reports whether a decision and an assignment have a version in common, or one needs a
// version of the other.
func (a *assignment) meets(d *decision) bool {
	for _, other := range a.served {
		if slices.Contains(d.with, other.subscription.Name) || slices.Contains(other.with, d.subscription.Name) {
			return true
		}
	}
	return slices.ContainsFunc(d.identities, func(v plan.Identity) bool { return a.index(v) >= 0 })
}

// index returns the position of a version, whether a Subscription asks for it or not; negative when
// it is absent.
func (a *assignment) index(v plan.Identity) int {
	v.Generated = false
	return slices.IndexFunc(a.versions, func(other plan.Identity) bool {
		other.Generated = false
		return other == v
	})
}

// collect sets the versions and choices from the served decisions.
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

// ensurePlans ensures that every decision to install has its plan, and returns the plans by the
// name of the Subscription. It records a failure in the decisions that it concerns and continues
// with the others.
func (r *Reconciler) ensurePlans(ctx context.Context, o *observation, decisions []*decision) map[string]*operatorsv1alpha1.InstallPlan {
	plans := map[string]*operatorsv1alpha1.InstallPlan{}
	for _, a := range assign(decisions) {
		p, err := r.ensurePlan(ctx, o, a)
		for _, d := range a.served {
			if p != nil {
				plans[d.subscription.Name] = p
			}
			if err != nil {
				d.unmake(&planError{err: err}, p != nil)
			}
		}
	}
	return plans
}

// ensurePlan finds or creates the plan of an assignment and updates its owners, approval and
// content. It may return an error together with a plan that was begun.
func (r *Reconciler) ensurePlan(ctx context.Context, o *observation, a *assignment) (*operatorsv1alpha1.InstallPlan, error) {
	p, err := r.findOrCreate(ctx, o, a)
	if err != nil {
		return nil, err
	}
	var served []*operatorsv1alpha1.Subscription
	for _, d := range a.served {
		served = append(served, d.subscription)
	}
	if err := r.ensureOwners(ctx, p, served...); err != nil {
		return p, err
	}
	if wiped(p) {
		if err := r.rewrite(ctx, p, a.versions); err != nil {
			return p, err
		}
	}
	if err := r.ensureReverts(ctx, p, a); err != nil {
		return p, err
	}
	if err := r.ensureApproval(ctx, p, approvalOf(a.served)); err != nil {
		return p, err
	}
	if !unmade(p) {
		return p, nil
	}
	return p, r.make(ctx, o, p, a)
}

// make writes the steps of a new plan, once its Subscriptions show its phase. It also completes a
// plan whose creator died before it wrote the steps.
func (r *Reconciler) make(ctx context.Context, o *observation, p *operatorsv1alpha1.InstallPlan, a *assignment) error {
	now := metav1.NewTime(r.clock.Now()).Rfc3339Copy()
	status, warnings, err := r.begun(ctx, o, p, a, now)
	if missing, waits := errors.AsType[lookups](err); waits && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseNone {
		if until := missing.brief(r.clock.Now()); !until.IsZero() {
			o.soonest(until)
			return nil
		}
	}
	moves := status.Phase != p.Status.Phase
	if moves && !r.told(o, p, a.served) {
		return err
	}
	if err == nil && warnings != p.Annotations[api.AnnotationManifestWarnings] {
		// The steps are written last, so that their executor finds the warnings.
		if err := r.ensureManifestWarnings(ctx, p, warnings); err != nil {
			return err
		}
	}
	if moves || !equality.Semantic.DeepEqual(status, p.Status) {
		before := p.DeepCopy()
		after := p.DeepCopy()
		after.Status = status
		if err := r.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("writing the steps of InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
		}
		log.FromContext(ctx).Info("Wrote plan", "installPlan", p.Name, "phase", status.Phase, "steps", len(status.Plan), "message", status.Message)
	}
	return err
}

// ensureManifestWarnings writes the warnings about the manifests of a plan's steps.
func (r *Reconciler) ensureManifestWarnings(ctx context.Context, p *operatorsv1alpha1.InstallPlan, warnings string) error {
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationManifestWarnings, warnings)
	if err := r.patch(ctx, before, p); err != nil {
		return fmt.Errorf("writing the warnings about manifests on InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// acknowledgeTimeout is how long a plan waits for its Subscriptions to show its phase.
const acknowledgeTimeout = 5 * time.Second

// told reports whether all Subscriptions of a plan show its stage, or had the time to.
func (r *Reconciler) told(o *observation, p *operatorsv1alpha1.InstallPlan, served []*decision) bool {
	all := true
	for _, d := range served {
		all = all && history.Shows(&d.subscription.Status, p)
	}
	if all {
		return true
	}
	since := p.CreationTimestamp.Time
	if stages, _ := r.tracker.since(p.UID, 0); len(stages) > 0 {
		since = stages[len(stages)-1].at
	}
	limit := since.Add(acknowledgeTimeout)
	o.soonest(limit)
	return !r.clock.Now().Before(limit)
}

// findOrCreate returns the plan of the current attempt. An attempt is over when its plan is
// complete and one of its versions is gone. The version then has to be installed again.
func (r *Reconciler) findOrCreate(ctx context.Context, o *observation, a *assignment) (*operatorsv1alpha1.InstallPlan, error) {
	for attempt := o.attempts(a); attempt <= maxAttempts; attempt++ {
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

// attempts returns the number of the latest existing attempt, or else 1: earlier plans may have
// been collected.
func (o *observation) attempts(a *assignment) int {
	latest := 1
	first := plan.Name(a.versions, 1)
	for name := range o.plans {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, first+"-")); err == nil && strings.HasPrefix(name, first+"-") {
			latest = max(latest, n)
		}
	}
	return latest
}

// get reads a plan. The cache may lag behind the writes of this process. A plan that the cache
// lacks is therefore read from the API server.
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

// removedSince reports whether a version of a complete plan no longer exists.
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

// create creates a plan with its owners. Its steps are written after its Subscriptions show its
// phase.
func (r *Reconciler) create(ctx context.Context, o *observation, name string, a *assignment) (*operatorsv1alpha1.InstallPlan, error) {
	if err := r.upToDate(ctx, o); err != nil {
		return nil, err
	}
	p := blank(o, name, a)
	err := r.client.Create(ctx, p, client.FieldOwner(api.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return r.get(ctx, &observation{namespace: o.namespace}, name)
	}
	if err != nil {
		return nil, fmt.Errorf("creating InstallPlan %s/%s: %w", o.namespace, name, err)
	}
	for _, c := range a.choices {
		log.FromContext(ctx).Info("Planned version", "installPlan", name, "installs", c.Bundle, "replaces", c.Replaces,
			"catalogSource", c.Catalog.String(), "because", c.Because, "approval", p.Spec.Approval)
	}
	// Later plans of this pass need its generation. The tracker records its first stage.
	o.plans[name] = p
	r.tracker.add(p, r.clock.Now())
	return p.DeepCopy(), nil
}

// blank returns a plan as it is created, without steps.
func blank(o *observation, name string, a *assignment) *operatorsv1alpha1.InstallPlan {
	approval := approvalOf(a.served)
	meta := record(o.namespace, a.versions, approval)
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: name,
			Labels: meta.Labels, Annotations: meta.Annotations,
		},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: a.names(),
			Approval:                   approval,
			Approved:                   approval == operatorsv1alpha1.ApprovalAutomatic,
			Generation:                 o.nextGeneration(),
		},
	}
	for _, d := range a.served {
		p.OwnerReferences = append(p.OwnerReferences, ownerReference(d.subscription))
		p.Annotations[api.PrefixServes+string(d.subscription.UID)] = d.subscription.Name
	}
	if older := a.reverts(); older != "" {
		p.Annotations[api.AnnotationReverts] = older
	}
	return p
}

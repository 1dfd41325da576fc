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

// ensurePlan finds or makes the plan of an assignment and brings its owners,
// approval and content to what they should be. With an error there may be a plan too:
// one that was begun.
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

// make writes what a new plan installs, once its Subscriptions have told how it stands
// until now; the same for one whose maker died before it could.
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
		// The steps are written last: what carries them out finds the warnings.
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

// acknowledgeTimeout is how long a plan waits for a Subscription to tell how it stands
// before it goes on nevertheless.
const acknowledgeTimeout = 5 * time.Second

// told says whether all whom a plan serves tell how it stands, or had the time to.
func (r *Reconciler) told(o *observation, p *operatorsv1alpha1.InstallPlan, served []*decision) bool {
	all := true
	for _, d := range served {
		all = all && history.Shows(&d.subscription.Status, p)
	}
	if all {
		return true
	}
	since := p.CreationTimestamp.Time
	if stages, _ := r.journal.since(p.UID, 0); len(stages) > 0 {
		since = stages[len(stages)-1].at
	}
	limit := since.Add(acknowledgeTimeout)
	o.soonest(limit)
	return !r.clock.Now().Before(limit)
}

// findOrCreate gives the plan of the current attempt. An attempt is over when
// its plan is complete and yet a version it installed is gone, so that it has
// to be installed again.
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

// attempts is the number of the latest attempt that is there, else 1: those before it
// may have been collected.
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
// written when its Subscriptions tell of it.
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
	// A plan made later in this pass has to count this one, and nothing can have
	// become of it before this moment.
	o.plans[name] = p
	r.journal.see(p, r.clock.Now())
	return p.DeepCopy(), nil
}

// blank is a plan as it is created.
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

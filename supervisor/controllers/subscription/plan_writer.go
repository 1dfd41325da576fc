package subscription

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

const (
	// maxAttempts bounds how often the same version can be reinstalled after its removal, before its
	// old plans must be deleted.
	maxAttempts = 100
	// acknowledgeTimeout is how long a plan waits for its Subscriptions to show its phase.
	acknowledgeTimeout = 5 * time.Second
)

// planWriter creates, completes and deletes InstallPlans.
type planWriter struct {
	client  client.Client
	live    client.Reader
	owners  *ownerWriter
	content *contentReader
	tracker *tracker
	clock   clock.PassiveClock
}

// ensuredPlan is the plan of a desired plan. err may be set together with a plan that was begun.
type ensuredPlan struct {
	plan *operatorsv1alpha1.InstallPlan
	// created is the plan as it was created; nil if it existed before.
	created *operatorsv1alpha1.InstallPlan
	// deleted is the name of the plan that was deleted because its bundles cannot be used; empty for none.
	deleted string
	// next is when to continue without an event; zero for none.
	next time.Time
	err  error
}

// ensure ensures that every decision to install has its plan. It returns the decisions with the
// failures that concern them, and when to continue without an event.
func (w *planWriter) ensure(ctx context.Context, o *namespaceState, decisions []*decision) (*planState, time.Time) {
	state := &planState{ensured: map[string]*operatorsv1alpha1.InstallPlan{}}
	plans := maps.Clone(o.plans)
	verify := sync.OnceValue(func() error { return verifyCache(ctx, w.live, o) })
	var next time.Time
	failed := map[string]error{}
	for _, desired := range desiredPlans(decisions) {
		ensured := w.ensureOne(ctx, o.withPlans(plans), desired, verify)
		next = earliest(next, ensured.next)
		if p := ensured.created; p != nil {
			// Later plans of this pass need its generation.
			plans[p.Name] = p
		}
		delete(plans, ensured.deleted)
		for _, d := range desired.served {
			name := d.subscription.Name
			if ensured.plan != nil {
				state.ensured[name] = ensured.plan
			}
			if ensured.err != nil {
				failed[name] = &planError{err: ensured.err}
			}
		}
	}
	for _, d := range decisions {
		err, begun := failed[d.subscription.Name], state.ensured[d.subscription.Name] != nil
		switch {
		case err != nil && begun:
			d = d.withErr(err)
		case err != nil:
			d = d.failed(err)
		}
		state.decisions = append(state.decisions, d)
	}
	state.namespaceState = o.withPlans(plans)
	return state, next
}

// ensureOne finds or creates the plan of a desired plan, and updates it. There is no plan for bundles that cannot be
// used: it could not leave Planning.
func (w *planWriter) ensureOne(ctx context.Context, o *namespaceState, desired *desiredPlan, verify func() error) ensuredPlan {
	p, name, err := w.find(ctx, o, desired)
	if err != nil {
		return ensuredPlan{err: err}
	}
	if p != nil {
		return w.update(ctx, o, p, desired)
	}
	p = newPlan(o, name, desired)
	content := w.content.planContent(ctx, o, p, desired, w.clock.Now())
	if unusable(content.err) {
		return ensuredPlan{err: content.err}
	}
	if err := verify(); err != nil {
		return ensuredPlan{err: err}
	}
	err = w.create(ctx, p, desired)
	if apierrors.IsAlreadyExists(err) {
		if p, err = w.get(ctx, o, name); err == nil {
			return w.update(ctx, o, p, desired)
		}
	}
	if err != nil {
		return ensuredPlan{err: err}
	}
	ensured := ensuredPlan{plan: p, created: p.DeepCopy()}
	ensured.next, ensured.err = w.writeSteps(ctx, p, desired, content)
	return ensured
}

// update updates a plan, or deletes it if its bundles cannot be used.
func (w *planWriter) update(ctx context.Context, o *namespaceState, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan) ensuredPlan {
	if err := w.updateRecord(ctx, p, desired); err != nil {
		return ensuredPlan{plan: p, err: err}
	}
	if !lacksSteps(p) {
		return ensuredPlan{plan: p}
	}
	content := w.content.planContent(ctx, o, p, desired, w.clock.Now())
	if unusable(content.err) {
		if err := w.delete(ctx, p, "its bundles cannot be used"); err != nil {
			return ensuredPlan{plan: p, err: err}
		}
		return ensuredPlan{deleted: p.Name, err: content.err}
	}
	next, err := w.writeSteps(ctx, p, desired, content)
	return ensuredPlan{plan: p, next: next, err: err}
}

// updateRecord updates the owners, the record and the approval of a plan.
func (w *planWriter) updateRecord(ctx context.Context, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan) error {
	var served []*operatorsv1alpha1.Subscription
	for _, d := range desired.served {
		served = append(served, d.subscription)
	}
	if err := w.owners.ensure(ctx, p, served...); err != nil {
		return err
	}
	if stripped(p) {
		if err := w.owners.restoreRecord(ctx, p, desired.versions); err != nil {
			return err
		}
	}
	if err := w.markRollback(ctx, p, desired); err != nil {
		return err
	}
	return w.ensureApproval(ctx, p, approvalOf(desired.served))
}

// writeSteps writes the steps of a new plan, once its Subscriptions show its phase. It also completes
// desired plan whose creator died before it wrote the steps. It returns when to continue without an event.
func (w *planWriter) writeSteps(ctx context.Context, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan, content planContent) (next time.Time, err error) {
	now, status, warnings, err := w.clock.Now(), content.status, content.warnings, content.err
	if missing, waits := errors.AsType[imagesError](err); waits && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseNone {
		if end := missing.graceEnd(now); !end.IsZero() {
			return earliest(end, missing.retryAt()), nil
		}
	}
	moves := status.Phase != p.Status.Phase
	if moves {
		if limit := w.acknowledgedBy(p, desired.served); now.Before(limit) {
			return limit, err
		}
	}
	if err == nil && warnings != p.Annotations[api.AnnotationManifestWarnings] {
		// The steps are written last, so that their executor finds the warnings.
		if err := w.writeWarnings(ctx, p, warnings); err != nil {
			return time.Time{}, err
		}
	}
	if moves || !equality.Semantic.DeepEqual(status, p.Status) {
		after := p.DeepCopy()
		after.Status = status
		if err := apply.PatchStatus(ctx, w.client, after, apply.MergeFromLocked(p), apply.UserAgent); err != nil {
			return time.Time{}, fmt.Errorf("writing the steps of InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
		}
		log.FromContext(ctx).Info("Wrote plan", "installPlan", p.Name, "phase", status.Phase, "steps", len(status.Plan), "message", status.Message)
	}
	return time.Time{}, err
}

// writeWarnings writes the warnings about the manifests of a plan's steps.
func (w *planWriter) writeWarnings(ctx context.Context, p *operatorsv1alpha1.InstallPlan, warnings string) error {
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationManifestWarnings, warnings)
	if err := patch(ctx, w.client, before, p); err != nil {
		return fmt.Errorf("writing the warnings about manifests on InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// acknowledgedBy returns until when a plan waits for its Subscriptions to show its stage; zero when
// all of them do.
func (w *planWriter) acknowledgedBy(p *operatorsv1alpha1.InstallPlan, served []*decision) time.Time {
	shown := func(d *decision) bool { return transitionlog.Shows(&d.subscription.Status, p) }
	if !slices.ContainsFunc(served, func(d *decision) bool { return !shown(d) }) {
		return time.Time{}
	}
	since := p.CreationTimestamp.Time
	if stages, _ := w.tracker.since(p.UID, 0); len(stages) > 0 {
		since = stages[len(stages)-1].at
	}
	return since.Add(acknowledgeTimeout)
}

// find returns the plan of the current attempt; nil with the name of the plan to create. An attempt is over when its
// plan was deleted, or is complete and one of its versions is gone. The version then has to be installed again. Clients
// that know the deleted plan recognize the next one by its name.
func (w *planWriter) find(ctx context.Context, o *namespaceState, desired *desiredPlan) (p *operatorsv1alpha1.InstallPlan, name string, err error) {
	former := formerPlans(desired.served)
	for attempt := o.plans.latestAttempt(desired.versions); attempt <= maxAttempts; attempt++ {
		name := plansteps.Name(desired.versions, attempt)
		p, err := w.get(ctx, o, name)
		if apierrors.IsNotFound(err) {
			if former[name] {
				continue
			}
			return nil, name, nil
		}
		if err != nil {
			return nil, "", err
		}
		over, err := w.removedSince(ctx, p, desired)
		if err != nil {
			return nil, "", err
		}
		if !over {
			return p, name, nil
		}
	}
	return nil, "", fmt.Errorf("version %s was installed and removed %d times; delete its InstallPlans to install it again", strings.Join(desired.names(), ", "), maxAttempts)
}

// formerPlans returns the names of plans that Subscriptions refer to or record.
func formerPlans(served []*decision) map[string]bool {
	names := map[string]bool{}
	for _, d := range served {
		if ref := d.subscription.Status.InstallPlanRef; ref != nil {
			names[ref.Name] = true
		}
		// An unreadable log counts as empty.
		recorded, _ := transitionlog.Read(d.subscription)
		for _, t := range recorded {
			names[t.Plan] = true
		}
	}
	return names
}

// get reads a plan. The cache may lag behind the writes of this process. A plan that the cache
// lacks is therefore read from the API server.
func (w *planWriter) get(ctx context.Context, o *namespaceState, name string) (*operatorsv1alpha1.InstallPlan, error) {
	if p := o.plans[name]; p != nil {
		return p.DeepCopy(), nil
	}
	p := &operatorsv1alpha1.InstallPlan{}
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, p); err != nil {
		return nil, fmt.Errorf("reading InstallPlan %s/%s: %w", o.namespace, name, err)
	}
	return p, nil
}

// removedSince reports whether a version of a complete plan no longer exists.
func (w *planWriter) removedSince(ctx context.Context, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan) (bool, error) {
	if !complete(p) {
		return false, nil
	}
	for _, csv := range desired.names() {
		err := w.live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: csv}, &operatorsv1alpha1.ClusterServiceVersion{})
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
func (w *planWriter) create(ctx context.Context, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan) error {
	if err := apply.Create(ctx, w.client, p); err != nil {
		return fmt.Errorf("creating InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	for _, c := range desired.choices {
		log.FromContext(ctx).Info("Planned version", "installPlan", p.Name, "installs", c.Bundle, "replaces", c.Replaces,
			"catalogSource", c.Catalog.String(), "because", c.Because, "approval", p.Spec.Approval)
	}
	w.tracker.add(p, w.clock.Now())
	return nil
}

// newPlan returns a plan as it is created, without steps.
func newPlan(o *namespaceState, name string, desired *desiredPlan) *operatorsv1alpha1.InstallPlan {
	approval := approvalOf(desired.served)
	meta := planRecord(o.namespace, desired.versions, approval)
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: name,
			Labels: meta.Labels, Annotations: meta.Annotations,
		},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: desired.names(),
			Approval:                   approval,
			Approved:                   approval == operatorsv1alpha1.ApprovalAutomatic,
			Generation:                 o.plans.nextGeneration(o.subscriptions),
		},
	}
	for _, d := range desired.served {
		p.OwnerReferences = append(p.OwnerReferences, ownerReference(d.subscription))
		p.Annotations[api.PrefixServes+string(d.subscription.UID)] = d.subscription.Name
	}
	if older := desired.olderVersion(); older != "" {
		p.Annotations[api.AnnotationReverts] = older
	}
	return p
}

// markRollback makes a plan check the stored objects right before it changes definitions. Objects
// may be stored between the creation of the plan and its approval.
func (w *planWriter) markRollback(ctx context.Context, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan) error {
	older := desired.olderVersion()
	if older == "" || p.Annotations[api.AnnotationReverts] == older || !open(p) {
		return nil
	}
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationReverts, older)
	if err := patch(ctx, w.client, before, p); err != nil {
		return fmt.Errorf("recording on InstallPlan %s/%s that it returns to %s: %w", p.Namespace, p.Name, older, err)
	}
	return nil
}

// deleteSuperseded deletes superseded plans.
func (w *planWriter) deleteSuperseded(ctx context.Context, plans []*operatorsv1alpha1.InstallPlan) error {
	for _, p := range plans {
		if err := w.delete(ctx, p, "another plan supersedes it"); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a plan. A plan that was approved since it was read has another resource version, and stays.
func (w *planWriter) delete(ctx context.Context, p *operatorsv1alpha1.InstallPlan, because string) error {
	err := apply.DeleteIf(ctx, w.client, p, apply.SameVersion(p))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting InstallPlan %s/%s, because %s: %w", p.Namespace, p.Name, because, err)
	}
	log.FromContext(ctx).Info("Deleted plan", "installPlan", p.Name, "installs", p.Spec.ClusterServiceVersionNames, "because", because)
	return nil
}

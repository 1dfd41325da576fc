package subscription

import (
	"cmp"
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// decider decides for the Subscriptions of a namespace.
type decider struct {
	*namespaceState

	index packageIndex
	// incoming are the versions that plans in progress install.
	incoming []incomingVersion
}

// newDecider also returns a decision for every Subscription, in their order. These decisions have
// the present versions, and the errors that need no resolution.
func newDecider(o *namespaceState) (*decider, []*decision) {
	r := &decider{namespaceState: o, index: newPackageIndex(o)}
	decisions := make([]*decision, 0, len(o.subscriptions))
	for _, sub := range o.subscriptions {
		d := &decision{subscription: sub, present: installationOf(sub, r.index.versionsOf(o.versions, sub.Spec.Package))}
		if a := r.index.ambiguous[sub.Name]; a != nil && d.present.current == nil {
			d.err = a.error(sub)
		}
		d.inProgress = o.plans.inProgress(sub, d.present, o.versions)
		decisions = append(decisions, d)
	}
	r.incoming = incoming(o, decisions)
	return r, decisions
}

// input returns the input of the resolver for the namespace.
func (r *decider) input(decisions []*decision) resolution.Input {
	p := resolution.Input{Namespace: r.namespace, Catalogs: r.catalogs.resolverCatalogs(), Operators: r.operators()}
	for _, d := range decisions {
		if d.err == nil {
			p.Subscriptions = append(p.Subscriptions, r.request(d))
		}
	}
	return p
}

// operators returns the versions that no other version of their package replaces, and those that
// plans install. Versions that are being replaced do not count.
func (r *decider) operators() []resolution.Operator {
	var list []resolution.Operator
	replaced := map[string]bool{}
	for _, a := range r.incoming {
		replaced[a.replaces] = true
	}
	for _, csv := range unreplaced(r.versions) {
		if replaced[csv.Name] {
			continue
		}
		f := r.properties.read(csv)
		if f.subject.Package == "" {
			f.subject.Package = r.index.packages[csv.Name]
		}
		list = append(list, resolution.Operator{Name: csv.Name, Subject: f.subject, Requires: f.requires})
	}
	for _, a := range r.incoming {
		list = append(list, a.operator)
	}
	return list
}

// request returns a Subscription for the resolver.
func (r *decider) request(d *decision) resolution.Subscription {
	sub := d.subscription
	request := resolution.Subscription{
		Name:          sub.Name,
		Catalog:       resolution.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource},
		Package:       sub.Spec.Package,
		Channel:       sub.Spec.Channel,
		StartingCSV:   sub.Spec.StartingCSV,
		Pin:           pinOf(sub),
		Generated:     generatedBy(sub) != "",
		OwnsInstalled: r.plans.installed(sub, d.present),
		LastInstalled: r.plans.lastVersion(sub, d.present),
		InProgress:    !r.canStart(d),
	}
	if d.present.current != nil {
		request.Installed = d.present.current.Name
	}
	if d.inProgress == nil {
		return request
	}
	for _, a := range r.incoming {
		if a.operator.Subject.Package == sub.Spec.Package {
			request.Installed, request.LastInstalled = a.operator.Name, ""
			request.OwnsInstalled = request.OwnsInstalled || belongsTo(d.inProgress, sub)
		}
	}
	return request
}

// resume returns the version in progress again, if its plan was deleted, has no steps or cannot be
// continued. Without a plan, the version would wait for its resources for ever. It returns nothing if
// the catalog lacks the version.
func (r *decider) resume(ctx context.Context, d *decision) resolution.Outcome {
	csv := d.present.current
	if !r.lacksResources(d) {
		return resolution.Outcome{}
	}
	// Resolve as if the package were absent, for all Subscriptions to it. Each Subscription gets
	// the same outcome as before.
	pkg := d.subscription.Spec.Package
	in := resolution.Input{Namespace: r.namespace, Catalogs: r.catalogs.resolverCatalogs()}
	for _, operator := range r.operators() {
		if operator.Subject.Package != pkg {
			in.Operators = append(in.Operators, operator)
		}
	}
	for _, sub := range r.subscriptions {
		if sub.Spec.Package == pkg {
			request := r.request(&decision{subscription: sub})
			request.StartingCSV, request.LastInstalled, request.Pin, request.OwnsInstalled = csv.Name, "", "", r.plans.installed(sub, d.present)
			in.Subscriptions = append(in.Subscriptions, request)
		}
	}
	outcome := resolution.Resolve(ctx, in)[d.subscription.Name]
	if outcome.Install == nil || outcome.Install.Bundle != csv.Name {
		return resolution.Outcome{}
	}
	again := *outcome.Install
	again.Replaces = csv.Spec.Replaces
	outcome.Install = &again
	return outcome
}

// incoming returns the missing versions of the plans in progress.
func incoming(o *namespaceState, decisions []*decision) []incomingVersion {
	var list []incomingVersion
	seen := map[string]bool{}
	for _, d := range decisions {
		if d.inProgress == nil {
			continue
		}
		for _, step := range d.inProgress.Status.Plan {
			name := step.Resource.Name
			if step.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind || seen[name] || exists(o.versions, name) {
				continue
			}
			if a, ok := o.catalogs.incomingVersion(step); ok {
				seen[name] = true
				list = append(list, a)
			}
		}
	}
	slices.SortFunc(list, func(a, b incomingVersion) int { return cmp.Compare(a.operator.Name, b.operator.Name) })
	return list
}

// canStart reports whether the next version of a Subscription may be installed: nothing is in
// progress for it. That is also so for a failed newest version, if the OperatorGroup allows upgrades
// to fail forward, or if the Subscription is pinned to another version.
func (o *namespaceState) canStart(d *decision) bool {
	if o.lacksResources(d) {
		return false
	}
	forward := o.groups.failForward || d.pinnedToOther()
	return (d.present.settled() || (d.present.failed() && forward)) && d.inProgress == nil
}

// lacksResources reports whether the newest version of a Subscription may lack resources that no plan
// creates. Its plan was deleted too early, has lost its steps, or cannot be continued. Only a catalog
// that has the version can provide the resources.
func (o *namespaceState) lacksResources(d *decision) bool {
	csv := d.present.current
	if csv == nil || !o.catalogs.has(originOf(d.subscription), csv.Name) {
		return false
	}
	if p := o.plans.installing(d.subscription, csv.Name); p != nil {
		return lacksSteps(p) || unreadable(p)
	}
	// While its requirements are unknown, the version may continue without help.
	waits := csv.Status.Phase == operatorsv1alpha1.CSVPhasePending && csv.Status.Reason != operatorsv1alpha1.CSVReasonRequirementsUnknown
	installing := func(p *operatorsv1alpha1.InstallPlan) bool {
		return (running(p) || complete(p)) && installs(p, csv.Name)
	}
	return (waits && !o.plans.contains(installing)) || o.plans.interrupted(d.subscription, o.unrecorded)
}

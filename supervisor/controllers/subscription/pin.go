package subscription

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// pinOf names the version that a Subscription is pinned to; empty for none.
func pinOf(sub *operatorsv1alpha1.Subscription) string {
	return api.PinnedVersion(sub.Annotations)
}

// pinnedElsewhere says whether a Subscription is to have another version than the
// newest one that is there.
func (d *decision) pinnedElsewhere() bool {
	wanted := pinOf(d.subscription)
	return wanted != "" && d.present.current != nil && wanted != d.present.current.Name
}

// withdraws says whether the newest version of a Subscription is to go without another
// one taking over from it: it never worked, and the Subscription is to go back. What it
// was about to replace comes into its own again, or else what is older, which is then, is
// installed as if it were the first.
func (o *observation) withdraws(d *decision, outcome resolver.Outcome) (then *resolver.Choice, withdraws bool) {
	current := d.present.current
	if !d.pinnedElsewhere() || d.underWay != nil || wasInstalled(d.subscription, current) {
		return nil, false
	}
	if back := o.version(d, pinOf(d.subscription)); back != nil {
		return nil, !leaving(back)
	}
	choice := outcome.Install
	if choice == nil {
		choice = outcome.Available
	}
	if choice == nil || !choice.Back {
		return nil, false
	}
	return choice, true
}

// version gives a version that is there of the package of a Subscription; nil for none.
func (o *observation) version(d *decision, name string) *operatorsv1alpha1.ClusterServiceVersion {
	mine := o.of(o.claims, d.subscription.Spec.Package)
	i := slices.IndexFunc(mine, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return csv.Name == name })
	if i < 0 {
		return nil
	}
	return mine[i]
}

// leaving says whether a version is on its way out.
func leaving(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return !csv.DeletionTimestamp.IsZero() || csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting
}

// lingers says whether the version that is to be installed is there still: an update
// took over from it a moment ago, and it has not gone yet.
func (o *observation) lingers(d *decision) bool {
	return d.install != nil && d.install.Back && o.isPresent(d.install.Bundle)
}

// crossed gives the versions that say they took over from the one which is to be
// installed. That one is to take over from them now, and two versions that take over
// from each other would both wait for ever.
func (o *observation) crossed(d *decision) []*operatorsv1alpha1.ClusterServiceVersion {
	if d.install == nil {
		return nil
	}
	return slices.DeleteFunc(o.of(o.claims, d.subscription.Spec.Package), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Name == d.install.Bundle || csv.Spec.Replaces != d.install.Bundle
	})
}

// checked says whether what an older version would do was looked at before: its plan is
// made. It looks again itself, right before it changes anything.
func (o *observation) checked(d *decision) bool {
	for _, p := range o.plans {
		if d.install != nil && installs(p, d.install.Bundle) && isOwner(p, d.subscription) && open(p) && !unmade(p) {
			return true
		}
	}
	return false
}

// refuseBack turns a decision to go to the pinned version into what speaks against it.
func (d *decision) refuseBack(obstacles []string) {
	wanted := pinOf(d.subscription)
	slices.Sort(obstacles)
	reasons := append(slices.Compact(obstacles), "subscription "+d.subscription.Name+" is pinned to "+wanted)
	const most = 20
	otherwise := "have the newest version"
	if d.present.current != nil {
		otherwise = "stay at " + d.present.current.Name
	}
	d.failBack(&resolver.UnsatisfiableError{
		Reason:  api.ReasonConstraintsNotSatisfiable,
		Reasons: reasons[max(0, len(reasons)-most):],
		Remedy: "nothing was changed; fix what is named and this goes on by itself, or name another version in annotation " + api.AnnotationPin +
			", or remove it to " + otherwise,
	})
}

// failBack turns a decision to go back into the failure to do so.
func (d *decision) failBack(err error) {
	d.fail(err)
	d.withdraw, d.then = nil, nil
}

package subscription

import (
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// pinOf names the version that a Subscription is pinned to; empty for none.
func pinOf(sub *operatorsv1alpha1.Subscription) string {
	return api.PinnedVersion(sub.Annotations)
}

// pinnedToOther reports whether a Subscription is pinned to another version than its newest one.
func (d *decision) pinnedToOther() bool {
	wanted := pinOf(d.subscription)
	return wanted != "" && d.present.current != nil && wanted != d.present.current.Name
}

// withdrawal reports whether the newest version of a Subscription has to be deleted without a
// successor: it never worked, and the Subscription is pinned to an older version. That version
// becomes current again if it exists. Otherwise it is the fallback, which is installed as a first
// version.
func withdrawal(d *decision, outcome resolution.Outcome) (fallback *resolution.Choice, withdraws bool) {
	if !d.pinnedToOther() || d.inProgress != nil || wasInstalled(d.subscription, d.present.current) {
		return nil, false
	}
	if older := d.present.named(pinOf(d.subscription)); older != nil {
		return nil, !beingDeleted(older)
	}
	choice := outcome.Install
	if choice == nil {
		choice = outcome.Available
	}
	if choice == nil || !choice.Downgrade {
		return nil, false
	}
	return choice, true
}

// olderVersion returns the version whose definitions replace newer ones, as the Subscription is
// pinned to it; nil for none. The newer definitions may belong to an existing version, to one that
// will be deleted, or to one that was deleted.
func (d *decision) olderVersion() *resolution.Choice {
	if d.withdraw != nil {
		return d.fallback
	}
	if d.install != nil && (d.install.Downgrade || (d.present.current == nil && d.install.Bundle == pinOf(d.subscription))) {
		return d.install
	}
	return nil
}

// replacing returns the existing versions whose spec.replaces names the version to install. That
// version will replace them. Versions that replace each other would both wait for ever.
func (d *decision) replacing() []*operatorsv1alpha1.ClusterServiceVersion {
	if d.install == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.present.versions), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Name == d.install.Bundle || csv.Spec.Replaces != d.install.Bundle
	})
}

// alreadyChecked reports whether the rollback to an older version was checked before: its plan
// exists. The plan checks again right before it changes anything.
func alreadyChecked(plans planSet, d *decision) bool {
	return d.install != nil && plans.contains(func(p *operatorsv1alpha1.InstallPlan) bool {
		return installs(p, d.install.Bundle) && isOwner(p, d.subscription) && open(p) && !lacksSteps(p)
	})
}

// rollbackKey identifies the requested rollback of a Subscription. A change of the pin or of the
// content of the bundle changes the key, and causes a check at once.
func (d *decision) rollbackKey() string {
	parts := []string{d.subscription.Annotations[api.AnnotationPin]}
	if d.present.current != nil {
		parts = append(parts, string(d.present.current.UID))
	}
	if older := d.olderVersion(); older != nil {
		parts = append(parts, older.Bundle)
	}
	for _, identity := range d.identities {
		parts = append(parts, identity.Content)
	}
	return strings.Join(parts, "\n")
}

// withBlockers returns a decision with the blockers of the pinned version as an error.
func (d *decision) withBlockers(blockers []string) *decision {
	wanted := pinOf(d.subscription)
	blockers = slices.Sorted(slices.Values(blockers))
	reasons := append(slices.Compact(blockers), "subscription "+d.subscription.Name+" is pinned to "+wanted)
	const maxReasons = 20
	otherwise := "have the newest version"
	if d.present.current != nil {
		otherwise = "stay at " + d.present.current.Name
	}
	return d.withoutRollback(&resolution.UnsatisfiableError{
		Reason:  api.ReasonConstraintsNotSatisfiable,
		Reasons: reasons[max(0, len(reasons)-maxReasons):],
		Remedy: "nothing was changed; fix what is named, and the supervisor continues automatically; or name another version in annotation " + api.AnnotationPin +
			", or remove it to " + otherwise,
	})
}

// withoutRollback returns a decision with an error instead of a rollback.
func (d *decision) withoutRollback(err error) *decision {
	next := d.failed(err)
	next.withdraw, next.fallback = nil, nil
	return next
}

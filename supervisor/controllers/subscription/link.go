package subscription

import (
	"cmp"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// installation is what is present of one Subscription's package.
type installation struct {
	// current is the newest version present: no other one takes over from it.
	// Nil when nothing is present.
	current *operatorsv1alpha1.ClusterServiceVersion
	// installed is the newest version that has been installed with success, be
	// it well now or not; on an update that is under way it is the one that
	// current takes over from.
	installed *operatorsv1alpha1.ClusterServiceVersion
}

// settled says that nothing is under way: there is nothing, or the newest
// version is installed and well.
func (i installation) settled() bool {
	return i.current == nil || i.current.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
}

// failed says that the newest version has failed.
func (i installation) failed() bool {
	return i.current != nil && i.current.Status.Phase == operatorsv1alpha1.CSVPhaseFailed
}

// installationOf finds what is present for a Subscription among the versions of
// its package. The link is the package, which versions record themselves, so that
// a status that was lost, or a Subscription that was recreated, finds its operator
// again.
func installationOf(sub *operatorsv1alpha1.Subscription, csvs []*operatorsv1alpha1.ClusterServiceVersion) installation {
	mine := map[string]*operatorsv1alpha1.ClusterServiceVersion{}
	for _, csv := range csvs {
		mine[csv.Name] = csv
	}
	tips := tips(csvs)
	if len(tips) == 0 {
		return installation{}
	}
	// More than one tip means that somebody created versions by hand: the one
	// that the Subscription was working on counts, then the newest.
	current := slices.MaxFunc(tips, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int {
		return cmp.Or(
			boolCompare(a.Name == sub.Status.CurrentCSV, b.Name == sub.Status.CurrentCSV),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return installation{current: current, installed: lastInstalled(sub, current, mine)}
}

// tips gives the versions that none of the others takes over from.
func tips(csvs []*operatorsv1alpha1.ClusterServiceVersion) []*operatorsv1alpha1.ClusterServiceVersion {
	replaced := map[string]bool{}
	for _, csv := range csvs {
		if csv.Spec.Replaces != csv.Name {
			replaced[csv.Spec.Replaces] = true
		}
	}
	var found []*operatorsv1alpha1.ClusterServiceVersion
	for _, csv := range csvs {
		if !replaced[csv.Name] {
			found = append(found, csv)
		}
	}
	return found
}

// holds says whether what is present of a package came from a Subscription: from
// a plan of its own or, where that plan is gone, by its own record.
func (o *observation) holds(sub *operatorsv1alpha1.Subscription, present installation) bool {
	if present.current == nil {
		return false
	}
	for _, csv := range []*operatorsv1alpha1.ClusterServiceVersion{present.current, present.installed} {
		if csv != nil && (o.planFor(sub, csv.Name) != nil || sub.Status.InstalledCSV == csv.Name) {
			return true
		}
	}
	return false
}

// before names the version that a Subscription had, when nothing of its package
// is present any more; empty when it never had one.
func (o *observation) before(sub *operatorsv1alpha1.Subscription, present installation) string {
	if present.current != nil {
		return ""
	}
	var newest *operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		done := p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete && plan.VersionOf(p, sub.Spec.Package) != ""
		if done && servesSubscription(p, sub) && (newest == nil || p.Spec.Generation > newest.Spec.Generation) {
			newest = p
		}
	}
	if newest == nil {
		return sub.Status.InstalledCSV
	}
	return plan.VersionOf(newest, sub.Spec.Package)
}

// lastInstalled walks from a version back along what it takes over from, to the
// first one that is or was installed with success.
func lastInstalled(
	sub *operatorsv1alpha1.Subscription, csv *operatorsv1alpha1.ClusterServiceVersion, mine map[string]*operatorsv1alpha1.ClusterServiceVersion,
) *operatorsv1alpha1.ClusterServiceVersion {
	for seen := map[string]bool{}; csv != nil && !seen[csv.Name]; csv = mine[csv.Spec.Replaces] {
		seen[csv.Name] = true
		if wasInstalled(sub, csv) {
			return csv
		}
	}
	return nil
}

// wasInstalled says whether a version of a Subscription's package has ever been
// installed with success: it has now, it is being replaced, which only such versions
// are, or its history says so. A history is cut after so many phases, and success may be
// among what was dropped: then what the Subscription noted at the time counts.
func wasInstalled(sub *operatorsv1alpha1.Subscription, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	reached := []operatorsv1alpha1.ClusterServiceVersionPhase{
		operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting,
	}
	if slices.Contains(reached, csv.Status.Phase) {
		return true
	}
	succeeded := slices.ContainsFunc(csv.Status.Conditions, func(c operatorsv1alpha1.ClusterServiceVersionCondition) bool {
		return c.Phase == operatorsv1alpha1.CSVPhaseSucceeded
	})
	cut := len(csv.Status.Conditions) >= operatorsv1alpha1.ConditionsLengthLimit
	return succeeded || (cut && sub.Status.InstalledCSV == csv.Name)
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

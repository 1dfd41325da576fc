package subscription

import (
	"cmp"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// installation holds the existing versions of the package of one Subscription.
type installation struct {
	// current is the newest existing version: no other version replaces it. It is nil when no
	// version exists.
	current *operatorsv1alpha1.ClusterServiceVersion
	// installed is the newest version that was installed with success, whatever its phase is now.
	// During an update, it is the version that current replaces.
	installed *operatorsv1alpha1.ClusterServiceVersion
	// versions are all of them.
	versions []*operatorsv1alpha1.ClusterServiceVersion
}

// settled reports whether nothing is in progress: no version exists, or the newest one has
// succeeded.
func (i installation) settled() bool {
	return i.current == nil || i.current.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
}

// failed reports whether the newest version has failed.
func (i installation) failed() bool {
	return i.current != nil && i.current.Status.Phase == operatorsv1alpha1.CSVPhaseFailed
}

// named returns the version of a name; nil for none.
func (i installation) named(name string) *operatorsv1alpha1.ClusterServiceVersion {
	for _, csv := range i.versions {
		if csv.Name == name {
			return csv
		}
	}
	return nil
}

// installationOf returns the existing versions for a Subscription among the versions of its
// package. The versions themselves record their package. A Subscription with a lost status, or a
// recreated one, therefore finds its operator again.
func installationOf(sub *operatorsv1alpha1.Subscription, csvs []*operatorsv1alpha1.ClusterServiceVersion) installation {
	byName := map[string]*operatorsv1alpha1.ClusterServiceVersion{}
	for _, csv := range csvs {
		byName[csv.Name] = csv
	}
	newest := unreplaced(csvs)
	if len(newest) == 0 {
		return installation{versions: csvs}
	}
	// More than one such version means that a user created versions. The one in the status of the
	// Subscription counts, or else the newest.
	current := slices.MaxFunc(newest, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int {
		return cmp.Or(
			boolCompare(a.Name == sub.Status.CurrentCSV, b.Name == sub.Status.CurrentCSV),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return installation{current: current, installed: lastInstalled(sub, current, byName), versions: csvs}
}

// unreplaced returns the versions that no other version replaces.
func unreplaced(csvs []*operatorsv1alpha1.ClusterServiceVersion) []*operatorsv1alpha1.ClusterServiceVersion {
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

// exists reports whether there is a version of a name.
func exists(csvs []*operatorsv1alpha1.ClusterServiceVersion, name string) bool {
	return slices.ContainsFunc(csvs, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return csv.Name == name })
}

// beingDeleted reports whether a version is being deleted.
func beingDeleted(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return !csv.DeletionTimestamp.IsZero() || csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting
}

// lastInstalled follows spec.replaces from a version to the first one that was installed with
// success.
func lastInstalled(
	sub *operatorsv1alpha1.Subscription, csv *operatorsv1alpha1.ClusterServiceVersion, byName map[string]*operatorsv1alpha1.ClusterServiceVersion,
) *operatorsv1alpha1.ClusterServiceVersion {
	for seen := map[string]bool{}; csv != nil && !seen[csv.Name]; csv = byName[csv.Spec.Replaces] {
		seen[csv.Name] = true
		if wasInstalled(sub, csv) {
			return csv
		}
	}
	return nil
}

// wasInstalled reports whether a version has ever been installed with success. The phases
// Succeeded, Replacing and Deleting show that, and so do its conditions. The list of conditions is
// limited and may have lost the success, and OLM does not wait for it. Then the status of the
// Subscription counts, unless it is older than the version.
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
	return succeeded || sub.Status.InstalledCSV == csv.Name && !sub.Status.LastUpdated.Before(&csv.CreationTimestamp)
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

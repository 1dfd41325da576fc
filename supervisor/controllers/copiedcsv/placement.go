package copiedcsv

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// mode is the mode of handling the copies of a version.
type mode string

const (
	// modeSync creates wanted copies and deletes all others.
	modeSync mode = "Sync"
	// modePrune deletes unwanted copies and creates none. The version may not serve the targets of its
	// OperatorGroup, or that is unknown yet.
	modePrune mode = "Prune"
	// modeUpdate updates the existing copies. It is unknown which copies are wanted.
	modeUpdate mode = "Update"
	// modeNone changes nothing. The version is being deleted, and its operator may still need its
	// roles. The cleanup of the version deletes the copies afterwards.
	modeNone mode = "None"
)

// placement describes the namespaces of a version's copies.
type placement struct {
	mode mode
	// wanted are the namespaces that get a copy, without the version's own.
	wanted sets.Set[string]
	// allNamespaces is true if the version serves all namespaces. Cluster roles then cover its
	// permissions.
	allNamespaces bool
	// disabled is true if such versions are copied to a few namespaces only.
	disabled bool
}

// placementOf determines the namespaces of a version's copies.
func placementOf(o *input) placement {
	switch {
	case o.origin == nil:
		return placement{mode: modeSync, wanted: sets.New[string]()}
	case !o.origin.DeletionTimestamp.IsZero():
		return placement{mode: modeNone}
	}
	group := groupOf(o.origin, o.groups)
	if group == nil {
		return placement{mode: modeUpdate}
	}
	p := placement{mode: modeSync, allNamespaces: slices.Contains(group.Status.Namespaces, corev1.NamespaceAll)}
	switch {
	case p.allNamespaces && o.enabled:
		p.wanted = o.namespaces.Clone()
	case p.allNamespaces:
		p.wanted, p.disabled = o.namespaces.Intersection(sets.New(o.protected...)), true
	default:
		p.wanted = o.namespaces.Intersection(sets.New(group.Status.Namespaces...))
	}
	p.wanted.Delete(o.key.Namespace)
	switch {
	case apisRefused(o.origin):
		p.wanted, p.disabled = sets.New[string](), false
	case !api.MayBeCopied(o.origin) || !serves(o.origin, group, o.allGroups):
		p.mode = modePrune
	}
	return p
}

// apisRefused reports whether a version failed because it may not provide its APIs: another OperatorGroup
// has claimed them, or its own group has fixed others. Its operator does not run. Its copies would
// only block a version of the same name.
func apisRefused(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed &&
		(csv.Status.Reason == operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
			csv.Status.Reason == operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}

// serves reports whether a version may serve the current targets of its group. It must support
// them, and the group must have claimed its APIs. The check includes the claims, because the
// version's phase may predate their last change.
func serves(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup, all []operatorsv1.OperatorGroup) bool {
	return providedapis.Supported(group, csv) && providedapis.Evaluate(group, all, csv).Result == providedapis.UpToDate
}

// groupOf returns the OperatorGroup whose targets a version serves: the only one of its namespace.
// It returns nil until the group's status lists the targets and the version's annotations match.
func groupOf(csv *operatorsv1alpha1.ClusterServiceVersion, groups []operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup {
	if len(groups) != 1 || groups[0].Status.LastUpdated == nil {
		return nil
	}
	group := &groups[0]
	targets, found := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !found || targets != group.BuildTargetNamespaces() ||
		csv.Annotations[operatorsv1.OperatorGroupAnnotationKey] != group.Name ||
		csv.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey] != group.Namespace {
		return nil
	}
	return group
}

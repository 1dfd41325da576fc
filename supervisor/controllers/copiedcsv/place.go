package copiedcsv

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// stand is how copies of a version are dealt with.
type stand string

const (
	// spread has copies where they are wanted, and nowhere else.
	spread stand = "Spread"
	// shrink makes no new copies and deletes those that are not wanted: the version may not
	// serve the targets of its OperatorGroup, or it is not known yet that it may.
	shrink stand = "Shrink"
	// keep leaves copies where they are and keeps them up to date: it is not known where
	// they are wanted.
	keep stand = "Keep"
	// leave touches nothing: the version is being deleted, its operator may yet need its
	// rights, and whoever cleans up after it takes copies away when that is done.
	leave stand = "Leave"
)

// place is where copies of a version belong.
type place struct {
	stand stand
	// wanted are the namespaces, without the version's own.
	wanted sets.Set[string]
	// global says that the version serves all namespaces: its rights are the cluster's.
	global bool
	// disabled says that copies of such versions are not wanted but in a few namespaces.
	disabled bool
}

// placeOf says where copies of a version belong.
func placeOf(o *observation) place {
	switch {
	case o.origin == nil:
		return place{stand: spread, wanted: sets.New[string]()}
	case !o.origin.DeletionTimestamp.IsZero():
		return place{stand: leave}
	}
	group := groupOf(o.origin, o.groups)
	if group == nil {
		return place{stand: keep}
	}
	p := place{stand: spread, global: slices.Contains(group.Status.Namespaces, corev1.NamespaceAll)}
	switch {
	case p.global && o.enabled:
		p.wanted = o.namespaces.Clone()
	case p.global:
		p.wanted, p.disabled = o.namespaces.Intersection(sets.New(o.protected...)), true
	default:
		p.wanted = o.namespaces.Intersection(sets.New(group.Status.Namespaces...))
	}
	p.wanted.Delete(o.key.Namespace)
	switch {
	case lost(o.origin):
		p.wanted, p.disabled = sets.New[string](), false
	case excluded(o.origin) || !serves(o.origin, group, o.allGroups):
		p.stand = shrink
	}
	return p
}

// lost reports whether a version failed because another OperatorGroup, or its own fixed
// one, keeps its APIs from it. Its operator does not run, so its copies would only be in
// the way of one that is to be installed under the same name.
func lost(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed &&
		(csv.Status.Reason == operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
			csv.Status.Reason == operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}

// serves reports whether a version may serve the present targets of its group: it can
// watch them, and the group has claimed the APIs that it provides. The claims are compared
// here too, since the phase of the version may be from before they changed.
func serves(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup, all []operatorsv1.OperatorGroup) bool {
	return providedapis.Supported(group, csv) && providedapis.Verdict(group, all, csv).Result == providedapis.Settled
}

// groupOf returns the OperatorGroup whose targets a version serves: the only one of its
// namespace, once its status says what it targets and the version has been told. Until
// then it is not known where the version is to be seen; nil.
func groupOf(csv *operatorsv1alpha1.ClusterServiceVersion, groups []operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup {
	if len(groups) != 1 || groups[0].Status.LastUpdated == nil {
		return nil
	}
	group := &groups[0]
	targets, told := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !told || targets != group.BuildTargetNamespaces() ||
		csv.Annotations[operatorsv1.OperatorGroupAnnotationKey] != group.Name ||
		csv.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey] != group.Namespace {
		return nil
	}
	return group
}

// excluded reports whether a version is not to be copied by its own status: it has not been
// judged yet, or has failed for a reason that lies in its OperatorGroup.
func excluded(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if csv.Status.Phase == operatorsv1alpha1.CSVPhaseNone || csv.Status.Phase == operatorsv1alpha1.CSVPhaseUnknown {
		return true
	}
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseFailed {
		return false
	}
	switch csv.Status.Reason { //nolint:exhaustive // All other reasons have to do with the operator and not with the namespaces that it serves.
	case operatorsv1alpha1.CSVReasonInvalidInstallModes,
		operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup,
		operatorsv1alpha1.CSVReasonNoTargetNamespaces,
		operatorsv1alpha1.CSVReasonNoOperatorGroup,
		operatorsv1alpha1.CSVReasonTooManyOperatorGroups,
		operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict,
		operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs:
		return true
	}
	return false
}

package copiedcsv

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlacementOf(t *testing.T) {
	all, two := []string{""}, []string{"cellar", "pantry"}
	disabled := func(o *input) { o.enabled = false }
	provides := func(o *input) {
		o.origin.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.tea.example.com", Version: "v1", Kind: "Cup"}}
	}
	claimed := func(o *input) { claims(&o.groups[0]) }
	static := func(o *input) { o.groups[0].Spec.StaticProvidedAPIs = true }
	competing := func(o *input) {
		other := groupFor("pantry")
		other.Namespace, other.CreationTimestamp = "bar", metav1.NewTime(noon().Add(-time.Hour))
		claims(&other)
		o.groups[0].CreationTimestamp = metav1.NewTime(noon())
		o.allGroups = append(o.allGroups, other)
	}
	for name, tc := range map[string]struct {
		reason  string
		targets []string
		change  []func(*input)
		mode    mode
		want    []string
	}{
		"All":         {"every namespace but the version's own", all, nil, modeSync, []string{"cellar", "garden", "pantry"}},
		"Listed":      {"those that the group names", two, nil, modeSync, two},
		"Own":         {"the version's own namespace needs no copy", []string{home}, nil, modeSync, nil},
		"OwnAndOther": {"but the others do", []string{home, "pantry"}, nil, modeSync, []string{"pantry"}},
		"NotThere":    {"a target that does not exist waits", []string{"attic", "pantry"}, nil, modeSync, []string{"pantry"}},
		"None":        {"a selector may select none, which no version can serve", []string{}, nil, modePrune, nil},
		"Disabled":    {"copies of global versions may be turned off", all, []func(*input){disabled}, modeSync, nil},
		"Protected": {"but in some namespaces", all, []func(*input){disabled, func(o *input) {
			o.protected = []string{"pantry", home, "attic"}
		}}, modeSync, []string{"pantry"}},
		"DisabledListed": {"turning off is about global versions alone", two, []func(*input){disabled}, modeSync, two},
		"Gone":           {"nothing is wanted of what is gone", all, []func(*input){func(o *input) { o.origin = nil }}, modeSync, nil},
		"Deleting": {"a version that is being deleted may need its copies", all, []func(*input){func(o *input) {
			o.origin.DeletionTimestamp = new(metav1.NewTime(noon()))
		}}, modeNone, nil},
		"NoGroup":     {"no OperatorGroup has targets", all, []func(*input){func(o *input) { o.groups = nil }}, modeUpdate, nil},
		"TwoGroups":   {"two OperatorGroups have targets", all, []func(*input){func(o *input) { o.groups = append(o.groups, groupFor("pantry")) }}, modeUpdate, nil},
		"NotWorked":   {"the group has no status", all, []func(*input){func(o *input) { o.groups[0].Status.LastUpdated = nil }}, modeUpdate, nil},
		"Unannotated": {"the version lacks the annotation", two, []func(*input){func(o *input) { delete(o.origin.Annotations, operatorsv1.OperatorGroupTargetsAnnotationKey) }}, modeUpdate, nil},
		"Outdated":    {"the group has changed since", two, []func(*input){func(o *input) { o.groups[0].Status.Namespaces = all }}, modeUpdate, nil},
		"OtherGroup":  {"the annotations name another group", two, []func(*input){func(o *input) { o.groups[0].Name = "other" }}, modeUpdate, nil},
		"Unseen":      {"the version has no status", two, []func(*input){func(o *input) { o.origin.Status = operatorsv1alpha1.ClusterServiceVersionStatus{} }}, modePrune, two},
		"Unsupported": {"a version that may not serve them is not shown to more", two, []func(*input){
			failed(operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup),
		}, modePrune, two},
		"Claimed":   {"one whose group has claimed its APIs is", two, []func(*input){provides, claimed}, modeSync, two},
		"Unclaimed": {"one whose group has yet to claim them is not yet", two, []func(*input){provides}, modePrune, two},
		"Fixed":     {"one whose APIs are not in a fixed list is not", two, []func(*input){provides, static}, modePrune, two},
		"K1":        {"one whose APIs another group has claimed is not, while it is Pending", two, []func(*input){provides, competing, pendingPhase}, modePrune, two},
		"K3":        {"nor while its group has yet to give them back", two, []func(*input){provides, claimed, competing}, modePrune, two},
		"K3 Failed": {"one that has lost has no copies left", two, []func(*input){failed(operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict)}, modeSync, nil},
		"K4 Failed": {"nor has one that lost to a fixed list", two, []func(*input){failed(operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)}, modeSync, nil},
		"K8":        {"one that cannot watch the targets is not copied before it has failed for it", all, []func(*input){ownOnly}, modePrune, []string{"cellar", "garden", "pantry"}},
		"K11": {"nor in protected namespaces", all, []func(*input){disabled, provides, competing, func(o *input) {
			o.protected = []string{"pantry"}
		}}, modePrune, []string{"pantry"}},
		"Failed": {"one that has failed otherwise is", two, []func(*input){failed(operatorsv1alpha1.CSVReasonInstallCheckFailed)}, modeSync, two},
	} {
		t.Run(name, func(t *testing.T) {
			o := seen(tc.targets, nil, tc.change...)
			if len(o.groups) == 1 {
				o.allGroups[0] = o.groups[0]
			}
			got := placementOf(o)
			if got.mode != tc.mode {
				t.Errorf("%s\nstand %s, want %s", tc.reason, got.mode, tc.mode)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(slices.Values(got.wanted.UnsortedList()))); diff != "" {
				t.Errorf("%s\nwanted: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// failed returns a change after which the version has failed for a reason.
func failed(reason operatorsv1alpha1.ConditionReason) func(*input) {
	return func(o *input) {
		o.origin.Status.Phase, o.origin.Status.Reason = operatorsv1alpha1.CSVPhaseFailed, reason
	}
}

// claims makes an OperatorGroup claim an API.
func claims(group *operatorsv1.OperatorGroup) {
	group.Annotations = map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: "Cup.v1.tea.example.com"}
}

func pendingPhase(o *input) { o.origin.Status.Phase = operatorsv1alpha1.CSVPhasePending }

func ownOnly(o *input) { o.origin.Spec.InstallModes = o.origin.Spec.InstallModes[:1] }

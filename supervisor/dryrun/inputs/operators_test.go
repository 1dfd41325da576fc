package inputs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFutureCopies checks which versions of namespace dock are copied to namespace shop.
func TestFutureCopies(t *testing.T) {
	t.Parallel()
	group := func(name string, targets ...string) operatorsv1.OperatorGroup {
		return operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "dock", Name: name}, Status: operatorsv1.OperatorGroupStatus{Namespaces: targets},
		}
	}
	groups := func(all ...operatorsv1.OperatorGroup) []operatorsv1.OperatorGroup { return all }
	const succeeded = operatorsv1alpha1.CSVPhaseSucceeded
	for name, tt := range map[string]struct {
		groups   []operatorsv1.OperatorGroup
		phase    operatorsv1alpha1.ClusterServiceVersionPhase
		change   func(*operatorsv1alpha1.ClusterServiceVersion)
		disabled bool
		want     bool
	}{
		"AllNamespaces":  {groups: groups(group("all", "")), phase: succeeded, want: true},
		"Named":          {groups: groups(group("some", "cove", "shop")), phase: succeeded, want: true},
		"OtherNamespace": {groups: groups(group("some", "cove")), phase: succeeded},
		"NoTargets":      {groups: groups(group("none")), phase: succeeded},
		"NoGroup":        {phase: succeeded},
		"SeveralGroups":  {groups: groups(group("all", ""), group("some", "shop")), phase: succeeded},
		"Disabled":       {groups: groups(group("all", "")), phase: succeeded, disabled: true},
		"DisabledNamed":  {groups: groups(group("some", "shop")), phase: succeeded, disabled: true, want: true},
		"Installing":     {groups: groups(group("all", "")), phase: operatorsv1alpha1.CSVPhaseInstalling, want: true},
		"Replaced":       {groups: groups(group("all", "")), phase: operatorsv1alpha1.CSVPhaseReplacing},
		"Failed":         {groups: groups(group("all", "")), phase: operatorsv1alpha1.CSVPhaseFailed, want: true},
		"FailedInGroup": {groups: groups(group("all", "")), phase: operatorsv1alpha1.CSVPhaseFailed, change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Status.Reason = operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup
		}},
		"New": {groups: groups(group("all", ""))},
		"Copy": {groups: groups(group("all", "")), phase: succeeded, change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Labels = map[string]string{operatorsv1alpha1.CopiedLabelKey: "far"}
		}},
		"Deleted": {groups: groups(group("all", "")), phase: succeeded, change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			now := metav1.Now()
			csv.DeletionTimestamp = &now
		}},
		"Own": {groups: groups(group("all", "")), phase: succeeded, change: func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Namespace = "shop" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			csv := operatorsv1alpha1.ClusterServiceVersion{
				ObjectMeta: metav1.ObjectMeta{Namespace: "dock", Name: "lamp.v1"}, Status: operatorsv1alpha1.ClusterServiceVersionStatus{Phase: tt.phase},
			}
			if tt.change != nil {
				tt.change(&csv)
			}
			want := map[string]string{}
			if tt.want {
				want["lamp.v1"] = "dock"
			}
			o := &operators{versions: []operatorsv1alpha1.ClusterServiceVersion{csv}, groups: tt.groups, copiesDisabled: tt.disabled}
			if diff := cmp.Diff(want, futureCopies("shop", o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEffectiveGroup checks the targets of the OperatorGroup of a namespace.
func TestEffectiveGroup(t *testing.T) {
	t.Parallel()
	group := func(selector *metav1.LabelSelector, targets ...string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets, Selector: selector}}
	}
	selected := group(&metav1.LabelSelector{})
	selected.Status.Namespaces = []string{"cove"}
	for name, tt := range map[string]struct {
		groups []*operatorsv1.OperatorGroup
		want   []string
	}{
		"None":          {},
		"Several":       {groups: []*operatorsv1.OperatorGroup{group(nil), group(nil, "shop")}},
		"AllNamespaces": {groups: []*operatorsv1.OperatorGroup{group(nil)}, want: []string{""}},
		"Named":         {groups: []*operatorsv1.OperatorGroup{group(nil, "shop")}, want: []string{"shop"}},
		"Selected":      {groups: []*operatorsv1.OperatorGroup{selected}, want: []string{"cove"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			if group := effectiveGroup(tt.groups); group != nil {
				got = group.Status.Namespaces
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

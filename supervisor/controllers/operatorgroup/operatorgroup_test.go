package operatorgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

func TestTargets(t *testing.T) {
	namespaces := []namespace{
		{Name: "pantry", Labels: map[string]string{"room": "warm"}},
		{Name: "kitchen", Labels: map[string]string{"room": "warm"}},
		{Name: "cellar", Labels: map[string]string{"room": "cold"}},
	}
	warm := &metav1.LabelSelector{MatchLabels: map[string]string{"room": "warm"}}
	cases := map[string]struct {
		reason  string
		spec    operatorsv1.OperatorGroupSpec
		want    []string
		wantErr bool
	}{
		"All":           {"nothing said means all", operatorsv1.OperatorGroupSpec{}, []string{""}, false},
		"EmptySelector": {"an empty selector means all", operatorsv1.OperatorGroupSpec{Selector: &metav1.LabelSelector{}}, []string{""}, false},
		"List":          {"sorted, each once, present or not", operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"z", "a", "z"}}, []string{"a", "z"}, false},
		"ListFirst":     {"the list wins", operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"a"}, Selector: warm}, []string{"a"}, false},
		"Selector":      {"sorted", operatorsv1.OperatorGroupSpec{Selector: warm}, []string{"kitchen", "pantry"}, false},
		"None": {"a selector may select none", operatorsv1.OperatorGroupSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"room": "hot"}},
		}, nil, false},
		"EmptyName": {"an empty name in a list is a mistake", operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"a", ""}}, nil, true},
		"BadSelector": {"an unknown operator", operatorsv1.OperatorGroupSpec{
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "room", Operator: "Near"}}},
		}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := targets(tc.spec, namespaces)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s\ntargets(...) error = %v, want one: %t", tc.reason, err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ntargets(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func group(uid types.UID, namespaces ...string) operatorsv1.OperatorGroup {
	return operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "group", UID: uid},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: namespaces},
	}
}

func TestLabelChanges(t *testing.T) {
	named, global, elsewhere := group("one", "kitchen"), group("two", ""), group("three", "cellar")
	const prefix = "olm.operatorgroup.uid/"
	cases := map[string]struct {
		reason string
		labels map[string]string
		groups []operatorsv1.OperatorGroup
		want   map[string]bool
	}{
		"Missing":  {"a target gets its label", nil, []operatorsv1.OperatorGroup{named, global, elsewhere}, map[string]bool{prefix + "one": true}},
		"Present":  {"nothing to do", map[string]string{prefix + "one": "", "x": "y"}, []operatorsv1.OperatorGroup{named}, map[string]bool{}},
		"Valued":   {"the value is empty", map[string]string{prefix + "one": "x"}, []operatorsv1.OperatorGroup{named}, map[string]bool{prefix + "one": true}},
		"Gone":     {"a label of a group that is gone", map[string]string{prefix + "zero": ""}, nil, map[string]bool{prefix + "zero": false}},
		"NotMine":  {"a label of a group that targets others now", map[string]string{prefix + "three": ""}, []operatorsv1.OperatorGroup{elsewhere}, map[string]bool{prefix + "three": false}},
		"Unlabels": {"a group that targets all labels nothing", map[string]string{prefix + "two": ""}, []operatorsv1.OperatorGroup{global}, map[string]bool{prefix + "two": false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := labelChanges(namespace{Name: "kitchen", Labels: tc.labels}, tc.groups)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nlabelChanges(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	g := group("1")
	g.Spec.TargetNamespaces = []string{"kitchen"}
	first := status(statusInput{Group: &g}, noon())
	want := operatorsv1.OperatorGroupStatus{Namespaces: []string{"kitchen"}, LastUpdated: &metav1.Time{Time: noon()}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Fatalf("first status: -want, +got:\n%s", diff)
	}

	g.Status = first
	if diff := cmp.Diff(first, status(statusInput{Group: &g}, noon().Add(time.Hour))); diff != "" {
		t.Errorf("an unchanged status was changed:\n%s", diff)
	}

	crowded := status(statusInput{Group: &g, Siblings: []string{"b", "a"}}, noon().Add(time.Hour))
	if len(crowded.Conditions) != 1 || crowded.Conditions[0].Reason != "MultipleOperatorGroupsFound" ||
		!crowded.LastUpdated.Time.Equal(noon().Add(time.Hour)) {
		t.Errorf("status with siblings = %+v, want the condition and a new time", crowded)
	}
	g.Status = crowded
	if diff := cmp.Diff(crowded, status(statusInput{Group: &g, Siblings: []string{"a", "b"}}, noon().Add(2*time.Hour))); diff != "" {
		t.Errorf("the order of siblings changed the status:\n%s", diff)
	}
	if alone := status(statusInput{Group: &g}, noon().Add(3*time.Hour)); len(alone.Conditions) != 0 {
		t.Errorf("status after the siblings went = %+v, want no condition", alone)
	}

	g.Spec.TargetNamespaces = []string{""}
	bad := status(statusInput{Group: &g}, noon())
	if len(bad.Namespaces) != 1 || bad.Conditions[len(bad.Conditions)-1].Reason != TargetsInvalidReason {
		t.Errorf("status of an impossible spec = %+v, want the last good targets and a condition", bad)
	}
}

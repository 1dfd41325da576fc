package operatorcondition

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// version returns a version with three Deployments, one of which runs as the default account.
func version() *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", UID: "csv"}}
	specs := []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "kettle"}, {Name: "lid"}, {Name: "spout"}}
	specs[0].Spec.Template.Spec.ServiceAccountName = "kettle"
	specs[2].Spec.Template.Spec.DeprecatedServiceAccount = "kettle"
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = specs
	return csv
}

// upToDate returns a version with all wanted objects.
func upToDate() input {
	csv := version()
	c := desiredCondition(csv, nil)
	c.UID, c.Generation = "condition", 2
	return input{csv: csv, condition: c, role: desiredRole(c), binding: desiredBinding(c, []string{"default", "kettle"})}
}

func TestDesired(t *testing.T) {
	o := upToDate()
	want := operatorsv2.OperatorConditionSpec{Deployments: []string{"kettle", "lid", "spout"}, ServiceAccounts: []string{"default", "kettle"}}
	if diff := cmp.Diff(want, o.condition.Spec); diff != "" {
		t.Errorf("the spec of the condition (-want +got):\n%s", diff)
	}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions", "operatorconditions/status"},
		ResourceNames: []string{"kettle.v1"}, Verbs: []string{"get", "update", "patch"},
	}}
	if diff := cmp.Diff(rules, o.role.Rules); diff != "" {
		t.Errorf("the rules (-want +got):\n%s", diff)
	}
	for _, obj := range []client.Object{o.role, o.binding} {
		if diff := cmp.Diff(map[string]string{"olm.managed": "true"}, obj.GetLabels()); diff != "" {
			t.Errorf("labels of %T, whose owner is no version (-want +got):\n%s", obj, diff)
		}
	}
}

func TestDecide(t *testing.T) {
	no := metav1.Condition{Type: "Upgradeable", Status: metav1.ConditionFalse, LastTransitionTime: metav1.Now()}
	shown := no
	shown.ObservedGeneration = 2
	otherOwners := func(meta *metav1.ObjectMeta) { meta.OwnerReferences = nil }
	for name, tt := range map[string]struct {
		change       func(*input)
		apply        string // kinds
		recreate     bool
		updateStatus []metav1.Condition
		otherOwners  string
	}{
		"up to date": {change: func(*input) {}},
		"no version": {change: func(o *input) { o.csv, o.role = nil, nil }},
		"a copy":     {change: func(o *input) { o.csv.Labels, o.condition = map[string]string{"olm.copiedFrom": "x"}, nil }},
		"a version that goes": {change: func(o *input) {
			o.csv.DeletionTimestamp, o.condition = &metav1.Time{}, nil
			*o.csv.DeletionTimestamp = metav1.Now()
		}},
		"a condition that goes": {change: func(o *input) {
			o.condition.DeletionTimestamp, o.role = new(metav1.Now()), nil
		}},
		"nothing yet":       {change: func(o *input) { *o = input{csv: o.csv} }, apply: "OperatorCondition"},
		"no role":           {change: func(o *input) { o.role = nil }, apply: "Role"},
		"no binding":        {change: func(o *input) { o.binding = nil }, apply: "RoleBinding"},
		"other accounts":    {change: func(o *input) { o.condition.Spec.ServiceAccounts = nil }, apply: "OperatorCondition"},
		"other deployments": {change: func(o *input) { o.condition.Spec.Deployments = []string{"kettle"} }, apply: "OperatorCondition"},
		"other accounts of one that is replaced": {change: func(o *input) {
			o.condition.Spec.ServiceAccounts, o.replaced = []string{"other"}, true
		}},
		"other deployments of one that is replaced": {change: func(o *input) {
			o.condition.Spec.Deployments, o.replaced = []string{"kettle"}, true
		}},
		"other subjects of one that is replaced": {change: func(o *input) {
			o.binding.Subjects[0].Name, o.replaced = "thief", true
		}, apply: "RoleBinding"},
		"made for an earlier one": {change: func(o *input) { o.condition.OwnerReferences[0].UID = "gone" }, apply: "OperatorCondition"},
		"without its label":       {change: func(o *input) { o.condition.Labels = nil }, apply: "OperatorCondition"},
		"other rules":             {change: func(o *input) { o.role.Rules = nil }, apply: "Role"},
		"a role made for an earlier condition": {
			change: func(o *input) { o.role.OwnerReferences[0].UID, o.binding.OwnerReferences[0].UID = "gone", "gone" }, apply: "Role RoleBinding",
		},
		"other subjects": {change: func(o *input) { o.binding.Subjects[0].Name = "thief" }, apply: "RoleBinding"},
		"a subject with its group written out": {
			change: func(o *input) { o.binding.Subjects[0].APIGroup = "" },
		},
		"another role":      {change: func(o *input) { o.binding.RoleRef.Name = "admin" }, recreate: true},
		"a foreign role":    {change: func(o *input) { otherOwners(&o.role.ObjectMeta) }, otherOwners: "Role kitchen/kettle.v1"},
		"a foreign binding": {change: func(o *input) { otherOwners(&o.binding.ObjectMeta); o.binding.RoleRef.Name = "x" }, otherOwners: "RoleBinding kitchen/kettle.v1"},
		"both foreign": {
			change:      func(o *input) { otherOwners(&o.role.ObjectMeta); otherOwners(&o.binding.ObjectMeta) },
			otherOwners: "report conditions; RoleBinding",
		},
		"a report": {
			change: func(o *input) {
				o.condition.Spec.Conditions = []metav1.Condition{no}
				o.condition.Annotations = map[string]string{api.AnnotationShownConditions: "Upgradeable"}
			},
			updateStatus: []metav1.Condition{shown},
		},
		"a report that is not marked yet is marked before it is shown": {
			change: func(o *input) { o.condition.Spec.Conditions = []metav1.Condition{no} }, apply: "OperatorCondition",
		},
		"a copy whose original was removed": {
			change: func(o *input) {
				o.condition.Generation, o.condition.Status.Conditions = 3, []metav1.Condition{shown}
				o.condition.Annotations = map[string]string{api.AnnotationShownConditions: "Upgradeable"}
			},
			updateStatus: []metav1.Condition{},
		},
		"the mark of a copy that is removed": {
			change: func(o *input) {
				o.condition.Annotations = map[string]string{api.AnnotationShownConditions: "Upgradeable"}
			},
			apply: "OperatorCondition",
		},
		"a report that is shown": {change: func(o *input) {
			o.condition.Spec.Conditions, o.condition.Status.Conditions = []metav1.Condition{no}, []metav1.Condition{shown}
			o.condition.Annotations = map[string]string{api.AnnotationShownConditions: "Upgradeable"}
		}},
		"the accounts in another order": {change: func(o *input) { slices.Reverse(o.condition.Spec.ServiceAccounts) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := upToDate()
			tt.change(&o)
			d := decide(o)
			var kinds []string
			for _, obj := range d.apply {
				kinds = append(kinds, obj.GetObjectKind().GroupVersionKind().Kind)
			}
			if got := strings.Join(kinds, " "); got != tt.apply {
				t.Errorf("applies %q, want %q", got, tt.apply)
			}
			if (d.recreate != nil) != tt.recreate {
				t.Errorf("remakes %v", d.recreate)
			}
			if d.updateStatus != (tt.updateStatus != nil) || d.updateStatus && !cmp.Equal(tt.updateStatus, d.conditions, cmpopts.EquateEmpty()) {
				t.Errorf("shows %v: %v; want %v", d.updateStatus, d.conditions, tt.updateStatus)
			}
			if !strings.Contains(d.otherOwners, tt.otherOwners) || (d.otherOwners == "") != (tt.otherOwners == "") {
				t.Errorf("in the way is %q, want %q", d.otherOwners, tt.otherOwners)
			}
		})
	}
}

// TestApplied checks the applied form for a version without Deployments.
func TestApplied(t *testing.T) {
	csv := version()
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
	u, err := applied(desiredCondition(csv, nil))
	if err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{"deployments": []any{}, "serviceAccounts": []any{}}
	if diff := cmp.Diff(spec, u.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if _, has := u.Object["status"]; has {
		t.Error("the status is sent as well")
	}
}

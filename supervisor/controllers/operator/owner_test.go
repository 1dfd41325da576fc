package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const (
	kettle = "operators.coreos.com/kettle.kitchen"
	lid    = "operators.coreos.com/lid.kitchen"
)

func version(labels map[string]string) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", UID: "v1", Labels: labels}}
}

func subscription(pkg, installed string, latest types.UID) operatorsv1alpha1.Subscription {
	sub := operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: pkg},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: pkg},
		Status:     operatorsv1alpha1.SubscriptionStatus{InstalledCSV: installed},
	}
	if latest != "" {
		sub.Status.InstallPlanRef = &corev1.ObjectReference{UID: latest}
	}
	return sub
}

func TestKeysOf(t *testing.T) {
	for name, tt := range map[string]struct {
		labels        map[string]string
		subscriptions []operatorsv1alpha1.Subscription
		want          []string
	}{
		"no Subscription has installed it":          {subscriptions: []operatorsv1alpha1.Subscription{subscription("lid", "lid.v1", ""), {}}},
		"its labels stay":                           {labels: map[string]string{kettle: "", "app": "x"}, want: []string{kettle}},
		"of the Subscription that has installed it": {subscriptions: []operatorsv1alpha1.Subscription{subscription("kettle", "kettle.v1", "")}, want: []string{kettle}},
		"each once":                 {labels: map[string]string{kettle: ""}, subscriptions: []operatorsv1alpha1.Subscription{subscription("kettle", "kettle.v1", "")}, want: []string{kettle}},
		"of two packages, in order": {labels: map[string]string{lid: ""}, subscriptions: []operatorsv1alpha1.Subscription{subscription("kettle", "kettle.v1", "")}, want: []string{kettle, lid}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, keysOf(version(tt.labels), tt.subscriptions)); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	object := func(namespace string, labels map[string]string, refs ...metav1.OwnerReference) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels, OwnerReferences: refs}}
	}
	csv := metav1.OwnerReference{Kind: "ClusterServiceVersion", Name: "kettle.v1", UID: "v1"}
	earlier := csv
	earlier.UID = "v0"
	own := types.NamespacedName{Namespace: "kitchen", Name: "kettle.v1"}
	for name, tt := range map[string]struct {
		object client.Object
		owned  bool
		asks   []types.NamespacedName
	}{
		"no owner":                       {object: object("kitchen", nil)},
		"by reference":                   {object: object("kitchen", nil, csv), owned: true, asks: []types.NamespacedName{own}},
		"by labels":                      {object: object("", plansteps.OwnerLabels("kettle.v1", "kitchen")), owned: true, asks: []types.NamespacedName{own}},
		"by both":                        {object: object("kitchen", plansteps.OwnerLabels("kettle.v1", "kitchen"), csv), owned: true, asks: []types.NamespacedName{own}},
		"of one of its name before it":   {object: object("kitchen", nil, earlier), asks: []types.NamespacedName{own}},
		"of its namesake elsewhere":      {object: object("pantry", plansteps.OwnerLabels("kettle.v1", "pantry")), asks: []types.NamespacedName{{Namespace: "pantry", Name: "kettle.v1"}}},
		"another kind owns it":           {object: object("kitchen", nil, metav1.OwnerReference{Kind: "Deployment", Name: "kettle.v1", UID: "d"})},
		"labels that name another kind":  {object: object("", map[string]string{"olm.owner": "kettle.v1", "olm.owner.namespace": "kitchen", "olm.owner.kind": "OperatorGroup"})},
		"labels that do not say it all":  {object: object("", map[string]string{"olm.owner": "kettle.v1", "olm.owner.kind": "ClusterServiceVersion"})},
		"a reference that cannot be one": {object: object("", nil, earlier)},
	} {
		t.Run(name, func(t *testing.T) {
			if owned := owns(version(nil), tt.object); owned != tt.owned {
				t.Errorf("owned: %v, want %v", owned, tt.owned)
			}
			if diff := cmp.Diff(tt.asks, owners(tt.object)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuperseded(t *testing.T) {
	const complete, failed, installing = operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseFailed, operatorsv1alpha1.InstallPlanPhaseInstalling
	install := func(uid types.UID, generation int, phase operatorsv1alpha1.InstallPlanPhase, labels ...string) operatorsv1alpha1.InstallPlan {
		p := operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: "plan-" + string(uid), UID: uid, Labels: map[string]string{}}}
		for _, l := range labels {
			p.Labels[l] = ""
		}
		p.Spec.Generation, p.Status.Phase = generation, phase
		return p
	}
	type list = []operatorsv1alpha1.InstallPlan
	for name, tt := range map[string]struct {
		sub    operatorsv1alpha1.Subscription
		beside []operatorsv1alpha1.Subscription
		plans  list
		want   []string
	}{
		"no plan yet":                 {sub: subscription("kettle", "", ""), plans: list{install("1", 1, complete, kettle)}},
		"a plan that is not there":    {sub: subscription("kettle", "", "9"), plans: list{install("1", 1, complete, kettle)}},
		"the latest":                  {sub: subscription("kettle", "", "1"), plans: list{install("1", 1, complete, kettle)}},
		"an older one":                {sub: subscription("kettle", "", "2"), plans: list{install("1", 1, complete, kettle), install("2", 2, complete, kettle)}, want: []string{"plan-1"}},
		"an older one that failed":    {sub: subscription("kettle", "", "2"), plans: list{install("1", 1, failed, kettle), install("2", 2, installing, kettle)}, want: []string{"plan-1"}},
		"an older one in progress":    {sub: subscription("kettle", "", "2"), plans: list{install("1", 1, installing, kettle), install("2", 2, complete, kettle)}},
		"a newer one":                 {sub: subscription("kettle", "", "1"), plans: list{install("1", 1, complete, kettle), install("2", 2, complete, kettle)}},
		"one beside it":               {sub: subscription("kettle", "", "1"), plans: list{install("1", 1, complete, kettle), install("2", 1, complete, kettle)}},
		"one of another package":      {sub: subscription("kettle", "", "2"), plans: list{install("1", 1, complete, lid), install("2", 2, complete, kettle)}},
		"one that has lost it before": {sub: subscription("kettle", "", "2"), plans: list{install("1", 1, complete), install("2", 2, complete, kettle)}},
		"one that another Subscription for it refers to": {
			sub: subscription("kettle", "", "2"), beside: []operatorsv1alpha1.Subscription{subscription("kettle", "", "1")},
			plans: list{install("1", 1, complete, kettle), install("2", 2, complete, kettle)},
		},
		"one that a Subscription for something else refers to": {
			sub: subscription("kettle", "", "2"), beside: []operatorsv1alpha1.Subscription{subscription("lid", "", "1"), {}},
			plans: list{install("1", 1, complete, kettle, lid), install("2", 2, complete, kettle)}, want: []string{"plan-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range superseded(&tt.sub, append(tt.beside, tt.sub), tt.plans) {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("superseded (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelIsRemovedOnce checks that the label of a plan is removed only once.
func TestLabelIsRemovedOnce(t *testing.T) {
	r := &planReconciler{removed: map[types.NamespacedName]map[types.UID]bool{}}
	key := types.NamespacedName{Namespace: "kitchen", Name: "kettle"}
	plans := []operatorsv1alpha1.InstallPlan{{ObjectMeta: metav1.ObjectMeta{UID: "1"}}}
	if !r.recordRemoval(key, "1") || r.recordRemoval(key, "1") {
		t.Error("the label of a plan is removed twice")
	}
	r.forgetRemoval(key, "1")
	if !r.recordRemoval(key, "1") {
		t.Error("a failed removal is not tried again")
	}
	r.forget(key, plans)
	if r.recordRemoval(key, "1") {
		t.Error("the record of an existing plan is deleted")
	}
	r.forget(key, nil)
	if len(r.removed) != 0 {
		t.Errorf("records of deleted plans: %v", r.removed)
	}
}

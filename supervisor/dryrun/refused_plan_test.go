package dryrun

import (
	"fmt"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// TestRunAPIs predicts versions whose APIs another OperatorGroup provides. Version 2 of the torch adds an API.
func TestRunAPIs(t *testing.T) {
	provides := func(kind string) constraint.Property {
		return constraint.Property{Type: bundles.TypeGVK, Value: fmt.Sprintf(`{"group":"torch.example","version":"v1","kind":%q}`, kind)}
	}
	b := content.NewBuilder(1 << 20)
	for _, entry := range []content.ChannelEntry{
		bundle("torch", "1.0.0", "", provides("Torch")), bundle("torch", "2.0.0", "1.0.0", provides("Torch"), provides("Wick")),
	} {
		if err := b.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	b.Describe("torch", "stable", "")
	torches := b.Build()
	group := func(namespace, claims string, targets ...string) operatorsv1.OperatorGroup {
		return operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group", Annotations: map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: claims}},
			Status:     operatorsv1.OperatorGroupStatus{Namespaces: targets},
		}
	}
	own := group("home", "", "home")
	fixed := own.DeepCopy()
	fixed.Spec.StaticProvidedAPIs = true
	groups := func(own *operatorsv1.OperatorGroup, others ...operatorsv1.OperatorGroup) func(*Request) {
		return func(r *Request) {
			r.Input.Catalogs[shop] = resolution.Catalog{Content: torches}
			r.Groups = Groups{Own: own, All: others}
		}
	}
	first := func(s *resolution.Subscription) { s.StartingCSV = "torch.v1.0.0" }
	const (
		torch, wick = "Torch.v1.torch.example", "Wick.v1.torch.example"
		taken       = " provided in a common namespace by OperatorGroup far/group already > let the two groups target different namespaces, or remove one of the operators"
		installed   = "1 wave 1 plan 1 install torch.v2.0.0 for my, automatic"
	)
	subs := []resolution.Subscription{sub("my", "torch")}
	runAll(t, map[string]runCase{
		"Free":    {reason: "no group claims it", subs: subs, change: groups(&own, own), want: []string{installed}},
		"Unknown": {reason: "the own group is unknown", subs: subs, change: groups(nil, group("far", torch, "")), want: []string{installed}},
		"Apart":   {reason: "the groups have no common target", subs: subs, change: groups(&own, group("far", torch, "far")), want: []string{installed}},
		"Taken": {
			reason: "a group for all namespaces claims it", subs: subs, change: groups(&own, group("far", torch, "")),
			want: []string{`no my at "": ClusterServiceVersion home/torch.v2.0.0 would fail: ` + torch + taken},
		},
		"Later": {
			reason: "the update would fail, unlike one that a copy holds back",
			subs:   []resolution.Subscription{sub("my", "torch", first)}, change: groups(&own, group("far", wick, "")),
			want: []string{
				"1 wave 1 plan 1 install torch.v1.0.0 for my, automatic",
				`no my at "torch.v1.0.0": ClusterServiceVersion home/torch.v2.0.0 would fail: ` + wick + taken,
			},
		},
		"Static": {
			reason: "the own group has fixed APIs", subs: subs, change: groups(fixed),
			want: []string{`no my at "": ClusterServiceVersion home/torch.v2.0.0 would fail: ` + torch + ", " + wick +
				" not in the annotation olm.providedAPIs of an OperatorGroup with spec.staticProvidedAPIs > add it there, or set staticProvidedAPIs to false"},
		},
	})
}

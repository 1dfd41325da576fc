package subscription_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// dice generates random namespaces.
type dice struct{ *rand.Rand }

// one returns true once in n calls, on average.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

// pkg returns the name of one of a few packages.
func (d dice) pkg() string { return string(rune('a' + d.IntN(5))) }

func record(pkg string, version int) string {
	return fmt.Sprintf(`{"packageName":%q,"version":"%d.0.0"}`, pkg, version)
}

// catalog returns a catalog with some of the packages. They have up to three versions in two
// channels, and some need another package.
func (d dice) catalog(t *testing.T, namespace, name string) subscription.Catalog {
	t.Helper()
	b := content.NewBuilder(1 << 20)
	for _, pkg := range []string{"a", "b", "c", "d", "e"} {
		if d.one(4) {
			continue
		}
		for _, channel := range []string{"stable", "beta"}[:1+d.IntN(2)] {
			for i := range 1 + d.IntN(3) {
				l := content.ChannelEntry{Package: pkg, Channel: channel, Bundle: fmt.Sprintf("%s.v%d", pkg, i+1)}
				l.Properties = []constraint.Property{{Type: "olm.package", Value: record(pkg, i+1)}}
				if i > 0 {
					l.Replaces = fmt.Sprintf("%s.v%d", pkg, i)
				}
				// A version is the same in every channel.
				if need := string(rune('a' + (int(pkg[0])+i*3)%5)); need != pkg && (int(pkg[0])+i)%2 == 0 {
					l.Properties = append(l.Properties, constraint.Property{Type: "olm.package.required", Value: fmt.Sprintf(`{"packageName":%q,"versionRange":">=1.0.0"}`, need)})
				}
				if err := b.Add(l); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.Describe(pkg, "stable", "")
	}
	c := subscription.Catalog{Source: &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
	c.Source.Spec.Priority = d.IntN(2)
	c.State.Snapshot = &catalogs.Snapshot{Content: b.Build()}
	return c
}

// objects returns the objects of a namespace.
func (d dice) objects(t *testing.T) subscription.Objects {
	t.Helper()
	o := subscription.Objects{Namespace: "home", Global: "olm", Catalogs: []subscription.Catalog{d.catalog(t, "home", "own"), d.catalog(t, "olm", "shop")}}
	for i := range []int{1, 1, 1, 1, 1, 1, 1, 1, 0, 2}[d.IntN(10)] {
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("group-%d", i)}}
		if d.one(4) {
			group.Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
		}
		if d.one(2) {
			group.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
		}
		o.Groups = append(o.Groups, group)
	}
	for i := range 1 + d.IntN(4) {
		o.Subscriptions = append(o.Subscriptions, d.subscription(i))
	}
	for range d.IntN(4) {
		csv := d.version()
		o.Versions = append(o.Versions, csv)
		if d.one(2) {
			o.Plans = append(o.Plans, d.plan(o.Subscriptions[d.IntN(len(o.Subscriptions))], csv.Name, len(o.Plans)))
		}
	}
	if d.one(3) {
		o.Plans = append(o.Plans, d.plan(o.Subscriptions[0], o.Subscriptions[0].Spec.Package+".v1", len(o.Plans)))
	}
	return o
}

func (d dice) subscription(i int) *operatorsv1alpha1.Subscription {
	name := fmt.Sprintf("sub-%d", i)
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, UID: types.UID(name)},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: d.pkg(), CatalogSource: "shop", CatalogSourceNamespace: "olm"},
	}
	if d.one(3) {
		sub.Spec.CatalogSource, sub.Spec.CatalogSourceNamespace = "own", "home"
	}
	sub.Spec.Channel = []string{"", "stable", "beta"}[d.IntN(3)]
	if d.one(4) {
		sub.Spec.StartingCSV = sub.Spec.Package + ".v1"
	}
	if d.one(3) {
		sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
	}
	if d.one(4) {
		sub.Status.InstalledCSV = sub.Spec.Package + ".v1"
	}
	if d.one(6) {
		sub.Annotations = map[string]string{api.AnnotationGeneratedBy: "plan-0"}
	}
	return sub
}

func (d dice) version() *operatorsv1alpha1.ClusterServiceVersion {
	pkg, n := d.pkg(), 1+d.IntN(3)
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: fmt.Sprintf("%s.v%d", pkg, n), Annotations: map[string]string{}}}
	if !d.one(4) {
		csv.Annotations[api.AnnotationProperties] = `{"properties":[{"type":"olm.package","value":` + record(pkg, n) + `}]}`
	} else if d.one(2) {
		csv.Labels = api.CatalogLabels(types.NamespacedName{Namespace: "olm", Name: "shop"})
	}
	if d.one(2) {
		csv.Spec.Replaces = fmt.Sprintf("%s.v%d", pkg, n-1)
	}
	csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
	if d.one(6) {
		csv.Status.Phase = []operatorsv1alpha1.ClusterServiceVersionPhase{operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhasePending}[d.IntN(3)]
	}
	return csv
}

func (d dice) plan(sub *operatorsv1alpha1.Subscription, csv string, i int) *operatorsv1alpha1.InstallPlan {
	return &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: fmt.Sprintf("plan-%d", i), OwnerReferences: []metav1.OwnerReference{{UID: sub.UID}}},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{csv}, Generation: i},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: []operatorsv1alpha1.InstallPlanPhase{operatorsv1alpha1.InstallPlanPhaseComplete, operatorsv1alpha1.InstallPlanPhaseInstalling}[d.IntN(8)/7]},
	}
}

// firstWave returns the plans of the first wave of a dry run, in the form of Decided.
func firstWave(f *dryrun.Result) []string {
	plans := map[int][]string{}
	for i := range f.Steps {
		s := &f.Steps[i]
		if s.Wave != 1 {
			continue
		}
		what := s.Catalog + " " + s.Channel + " " + s.Bundle
		if s.Generated {
			what += " along"
		}
		plans[s.Plan] = append(plans[s.Plan], what, string(s.Approval))
		if s.Generated {
			continue
		}
		for _, name := range s.Subscriptions {
			plans[s.Plan] = append(plans[s.Plan], "for "+name)
		}
	}
	var out []string
	for _, text := range plans {
		slices.Sort(text)
		out = append(out, strings.Join(slices.Compact(text), ", "))
	}
	slices.Sort(out)
	return out
}

// TestDryRunMatchesDecision checks that a dry run begins with the decisions of the controller, and
// returns the same errors.
func TestDryRunMatchesDecision(t *testing.T) {
	const rounds = 1000
	begun, blocked, underWay, refused := 0, 0, 0, 0
	for seed := range uint64(rounds) {
		objects := dice{rand.New(rand.NewPCG(seed, 1))}.objects(t)
		request := dryrun.NewRequest(objects)
		f, err := dryrun.Run(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		plans, failed := subscription.Decided(t.Context(), objects)
		refused += len(request.Refused)
		for _, r := range request.Refused {
			i := slices.IndexFunc(f.Refusals, func(shown dryrun.Refusal) bool { return shown.Subscription == r.Subscription })
			if f.Blocked == "" && (i < 0 || failed[r.Subscription] == nil || failed[r.Subscription].Error() != f.Refusals[i].Reason+"; "+f.Refusals[i].Remedy) {
				t.Errorf("seed %d: %s is refused because of %v, and the dry run says %+v", seed, r.Subscription, failed[r.Subscription], f.Refusals)
			}
		}
		switch {
		case f.Blocked != "":
			blocked++
			for _, sub := range objects.Subscriptions {
				if got := failed[sub.Name]; got == nil || got.Error() != f.Blocked {
					t.Errorf("seed %d: blocked by %q, and %s has error %v", seed, f.Blocked, sub.Name, got)
				}
			}
			if len(plans) > 0 {
				t.Errorf("seed %d: blocked by %q, and yet there are plans %q", seed, f.Blocked, plans)
			}
		case len(f.UnderWay) > 0:
			// The dry run begins after the plan in progress; until then no other plan is begun for
			// the Subscription.
			underWay++
			for _, now := range f.UnderWay {
				for _, p := range plans {
					if list := strings.Split(p, ", "); slices.Contains(list, "for "+now.Subscription) && !strings.Contains(p+",", " "+now.Bundle+",") {
						t.Errorf("seed %d: %s is under way for %s, which gets %s", seed, now.Bundle, now.Subscription, p)
					}
				}
			}
		default:
			begun += len(plans)
			if diff := cmp.Diff(plans, firstWave(f)); diff != "" {
				t.Errorf("seed %d (-controller +dry run):\n%s", seed, diff)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d plans, %d namespaces blocked, %d with something under way, %d Subscriptions refused", begun, blocked, underWay, refused)
	if begun < rounds/4 || blocked == 0 || underWay == 0 || refused == 0 {
		t.Error("the namespaces are not odd enough")
	}
}

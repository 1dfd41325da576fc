package subscription

import (
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// bulbs returns two packages: lamp, which needs bulb in a range of versions, and bulb with two
// versions.
func bulbs(ranged string) []fakecatalog.Package {
	needs := &api.Property{Type: "olm.package.required", Value: `{"packageName":"bulb","versionRange":"` + ranged + `"}`}
	return []fakecatalog.Package{
		fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Objects: []string{"{1}"}, Properties: []*api.Property{needs}}),
		fakecatalog.Simple(
			"bulb",
			fakecatalog.Entry{Name: "bulb.v1", Version: "1.0.0", Objects: []string{"{2}"}},
			fakecatalog.Entry{Name: "bulb.v2", Version: "2.0.0", Replaces: "bulb.v1", Objects: []string{"{3}"}},
		),
	}
}

// carried adds to a plan a step that installs a version of bulb, by a manifest or by a reference to
// the catalog.
func carried(p *operatorsv1alpha1.InstallPlan, name, manifest string) *operatorsv1alpha1.InstallPlan {
	p.Labels = map[string]string{plansteps.ComponentLabel("bulb", "home"): ""}
	p.Status.Plan = []*operatorsv1alpha1.Step{{Resolving: name, Resource: operatorsv1alpha1.StepResource{
		Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: name, Manifest: manifest, CatalogSource: shop.Name, CatalogSourceNamespace: shop.Namespace,
	}}}
	return p
}

// TestIncomingVersions checks that the version that a plan installs counts as existing: no other version of
// the package is installed, and dependents do not install it again.
func TestIncomingVersions(t *testing.T) {
	const (
		inline    = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"bulb.v2","annotations":{"operatorframework.io/properties":"{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"bulb\",\"version\":\"2.0.0\"}}]}"}},"spec":{"replaces":"bulb.v1"}}`
		reference = `{"kind":"BundleObject","package":"bulb","channel":"stable","bundle":"bulb.v2","replaces":"bulb.v1"}`
	)
	lamp, bulb := subscription("a", "lamp"), subscription("x", "bulb")
	for name, tt := range map[string]struct {
		manifest string
		ranged   string
		csvs     []*operatorsv1alpha1.ClusterServiceVersion
		install  string
	}{
		"a fresh one":                        {manifest: inline, ranged: ">=2.0.0", install: "lamp.v1"},
		"a fresh one by reference":           {manifest: reference, ranged: ">=2.0.0", install: "lamp.v1"},
		"an update":                          {manifest: inline, ranged: ">=2.0.0", csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("bulb.v1", "bulb", succeeded)}, install: "lamp.v1"},
		"what it takes over from is no more": {manifest: inline, ranged: "<2.0.0", csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("bulb.v1", "bulb", succeeded)}},
	} {
		t.Run(name, func(t *testing.T) {
			p := carried(installPlan("p", "bulb.v2", operatorsv1alpha1.InstallPlanPhaseInstalling, 2, bulb), "bulb.v2", tt.manifest)
			decisions := decided(t, observed(readFrom(t, bulbs(tt.ranged)...), lamp, bulb).with(tt.csvs, p))
			var got []string
			for _, c := range decisions[0].choices() {
				got = append(got, c.Bundle)
			}
			if strings.Join(got, " ") != tt.install || len(decisions[1].choices()) > 0 {
				t.Errorf("installs %q and %+v (errors %v, %v), want %q", got, decisions[1].choices(), decisions[0].err, decisions[1].err, tt.install)
			}
			if status := statusOf(observed(readFrom(t), lamp, bulb).with(tt.csvs, p), decisions[1], nil, at(1)); status.CurrentCSV != "bulb.v2" || status.InstallPlanRef == nil {
				t.Errorf("the one that is being served: %+v", status)
			}
		})
	}
}

// TestPlansAreNotMadeBesideOthers has a plan whose version does not exist yet while the catalog has
// a newer one.
func TestPlansAreNotMadeBesideOthers(t *testing.T) {
	sub := subscription("my", "lamp", knows("lamp.v2", "lamp.v1"))
	o := observed(readFrom(t, fakecatalog.Simple(
		"lamp",
		fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Objects: []string{"{1}"}},
		fakecatalog.Entry{Name: "lamp.v2", Version: "2.0.0", Replaces: "lamp.v1", Objects: []string{"{2}"}},
		fakecatalog.Entry{Name: "lamp.v3", Version: "3.0.0", Replaces: "lamp.v1", Skips: []string{"lamp.v2"}, Objects: []string{"{3}"}},
	)), sub)
	for phase, current := range map[operatorsv1alpha1.InstallPlanPhase]string{"Installing": "lamp.v2", "Planning": "lamp.v1"} {
		second := installPlan("second", "lamp.v2", phase, 2, sub)
		second.Spec.Approved = true
		second.Status.Plan = []*operatorsv1alpha1.Step{{}}
		o.with(
			[]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", succeeded)},
			installPlan("first", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, sub), second,
		)
		d := decided(t, o)[0]
		if d.install != nil {
			t.Errorf("%s: installs %s beside lamp.v2", phase, d.install.Bundle)
		}
		if status := statusOf(o, d, nil, at(1)); status.CurrentCSV != current || status.InstalledCSV != "lamp.v1" || status.State != operatorsv1alpha1.SubscriptionStateUpgradePending {
			t.Errorf("%s: status %+v", phase, status)
		}
	}
}

// TestApprovalOfWhatIsNeeded has an operator with automatic approval that needs the package of a
// Subscription with manual approval.
func TestApprovalOfWhatIsNeeded(t *testing.T) {
	o := observed(readFrom(t, bulbs(">=1.0.0")...), subscription("a", "lamp"), subscription("x", "bulb", manual))
	plans := desiredPlans(decided(t, o))
	if len(plans) != 1 || !slices.Equal(plans[0].names(), []string{"lamp.v1", "bulb.v2"}) || approvalOf(plans[0].served) != operatorsv1alpha1.ApprovalManual {
		t.Errorf("plans %+v", plans)
	}
}

// TestPlanWithoutSteps has a plan whose creator died before it wrote the steps, and a newer version
// that exists now.
func TestPlanWithoutSteps(t *testing.T) {
	sub := subscription("my", "lamp", knows("lamp.v2", "lamp.v2"))
	o := observed(read(t), sub).with(
		[]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", succeeded)},
		installPlan("done", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseComplete, 2, sub),
		installPlan("unmade", "lamp.v1", "", 3, sub),
		installPlan("overtaken", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, 1, sub),
	)
	var retired []string
	for _, p := range (&planState{namespaceState: o, decisions: decided(t, o), ensured: nil}).superseded() {
		retired = append(retired, p.Name)
	}
	slices.Sort(retired)
	if !slices.Equal(retired, []string{"overtaken", "unmade"}) {
		t.Errorf("retires %q", retired)
	}
	delete(o.catalogs, shop)
	status := statusOf(o, decided(t, o)[0], nil, at(5))
	if status.CurrentCSV != "lamp.v2" || status.State != operatorsv1alpha1.SubscriptionStateAtLatest || status.InstallPlanRef.Name != "done" {
		t.Errorf("status %+v", status)
	}
}

// TestPlanOfOthersIsTheirsAlone has a plan that installs a package to one Subscription. Another asks
// a missing catalog for it. That Subscription must not refer to the plan, which would make it an
// owner.
func TestPlanOfOthersIsTheirsAlone(t *testing.T) {
	good, lost := subscription("x", "bulb"), subscription("a", "bulb")
	lost.Spec.CatalogSource = "gone"
	p := carried(installPlan("p", "bulb.v2", operatorsv1alpha1.InstallPlanPhaseInstalling, 2, good), "bulb.v2", "{}")
	o := observed(readFrom(t, bulbs(">=2.0.0")...), good, lost).with(nil, p)
	for _, d := range decided(t, o) {
		status := statusOf(o, d, nil, metav1.Time{})
		refers := status.InstallPlanRef != nil
		if want := d.subscription == good; refers != want {
			t.Errorf("Subscription %s refers to the plan: %v, want %v (error %v)", d.subscription.Name, refers, want, d.err)
		}
	}
}

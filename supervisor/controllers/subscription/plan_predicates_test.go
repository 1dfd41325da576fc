package subscription

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// strippedPlan returns a plan that installs lamp.v1 and tray.v1, without labels, annotations and
// owners.
func strippedPlan(name string) *operatorsv1alpha1.InstallPlan {
	p := installPlan(name, "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1)
	p.Spec.ClusterServiceVersionNames = []string{"lamp.v1", "tray.v1"}
	p.CreationTimestamp = metav1.Unix(1000, 0)
	for _, pkg := range []string{"lamp", "tray"} {
		p.Status.Plan = append(p.Status.Plan, &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{
			Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: pkg + ".v1", CatalogSource: shop.Name, CatalogSourceNamespace: shop.Namespace,
			Manifest: fmt.Sprintf(`{"kind":"BundleObject","package":%q,"channel":"stable","bundle":"%s.v1"}`, pkg, pkg),
		}})
	}
	return p
}

// TestStrippedPlanFindsItsOwners strips a plan before a Subscription refers to it, after one refers
// to it, and after one is restored.
func TestStrippedPlanFindsItsOwners(t *testing.T) {
	born := func(seconds int64) func(*operatorsv1alpha1.Subscription) {
		return func(sub *operatorsv1alpha1.Subscription) { sub.CreationTimestamp = metav1.Unix(seconds, 0) }
	}
	const ours = "install-abcdefghij"
	for name, tt := range map[string]struct {
		plan   string
		change func(p *operatorsv1alpha1.InstallPlan, lamp, tray *operatorsv1alpha1.Subscription)
		want   []string
	}{
		"nobody refers": {want: []string{"lamp", "tray"}},
		"one refers": {want: []string{"lamp", "tray"}, change: func(p *operatorsv1alpha1.InstallPlan, lamp, _ *operatorsv1alpha1.Subscription) {
			lamp.Status.InstallPlanRef = &corev1.ObjectReference{Name: p.Name, UID: p.UID}
		}},
		"one is restored": {want: []string{"tray"}, change: func(p *operatorsv1alpha1.InstallPlan, lamp, _ *operatorsv1alpha1.Subscription) {
			p.OwnerReferences = []metav1.OwnerReference{ownerReference(lamp)}
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.PrefixServes+string(lamp.UID), lamp.Name)
		}},
		"only the annotations are gone": {want: []string{"lamp", "tray"}, change: func(p *operatorsv1alpha1.InstallPlan, lamp, tray *operatorsv1alpha1.Subscription) {
			p.OwnerReferences = []metav1.OwnerReference{ownerReference(lamp), ownerReference(tray)}
		}},
		"one came later": {want: []string{"lamp", "tray"}, change: func(p *operatorsv1alpha1.InstallPlan, _, tray *operatorsv1alpha1.Subscription) {
			tray.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(time.Second))
		}},
		"one asks for another package": {want: []string{"lamp"}, change: func(_ *operatorsv1alpha1.InstallPlan, _, tray *operatorsv1alpha1.Subscription) {
			tray.Spec.Package = "chair"
		}},
		"one asks another catalog": {want: []string{"lamp"}, change: func(_ *operatorsv1alpha1.InstallPlan, _, tray *operatorsv1alpha1.Subscription) {
			tray.Spec.CatalogSource = "market"
		}},
		"it has its record": {change: func(p *operatorsv1alpha1.InstallPlan, _, _ *operatorsv1alpha1.Subscription) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationApproval, "Manual")
		}},
		"of another lifecycle manager": {plan: "install-abcde"},
	} {
		t.Run(name, func(t *testing.T) {
			lamp, tray := subscription("lamp", "lamp", born(900)), subscription("tray", "tray", born(900))
			p := strippedPlan(ours)
			if tt.plan != "" {
				p.Name = tt.plan
			}
			if tt.change != nil {
				tt.change(p, lamp, tray)
			}
			o := observed(read(t), lamp, tray)
			p = withRecord(p)
			o.plans[p.Name] = p
			var lost []string
			for _, sub := range missingOwners(o, p) {
				lost = append(lost, sub.Name)
			}
			slices.Sort(lost)
			if diff := cmp.Diff(tt.want, lost); diff != "" {
				t.Errorf("lost owners (-want +got):\n%s", diff)
			}
			if surplus := surplusOwners(o.subscriptions, p); len(surplus) > 0 {
				t.Errorf("owners %v are taken from it", surplus)
			}
		})
	}
}

// TestPlanWithRecord checks that a stripped plan still has its versions by package, and that the
// restored record is the original one.
func TestPlanWithRecord(t *testing.T) {
	p := withRecord(strippedPlan("install-abcdefghij"))
	if got := plansteps.VersionOf(p, "tray"); got != "tray.v1" {
		t.Errorf("the version of tray is %q, want tray.v1", got)
	}
	if !stripped(p) {
		t.Error("it does not count as stripped any more before its owners are back")
	}
	made := []plansteps.Identity{{Package: "lamp", Bundle: "lamp.v1"}, {Package: "tray", Bundle: "tray.v1"}}
	if diff := cmp.Diff(planRecord("home", made, "Manual"), planRecord("home", versionsInSteps(p), "Manual")); diff != "" {
		t.Errorf("the record (-made +written back):\n%s", diff)
	}
}

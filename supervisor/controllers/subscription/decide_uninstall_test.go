package subscription

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// uninstalling requests the uninstallation of the operator with its Subscription.
func uninstalling(sub *operatorsv1alpha1.Subscription) {
	metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationOnDelete, onDeleteUninstall)
	sub.Finalizers = []string{api.FinalizerUninstall}
}

// deleted marks a Subscription as deleted, and records its dependents.
func deleted(with string) func(*operatorsv1alpha1.Subscription) {
	return func(sub *operatorsv1alpha1.Subscription) {
		uninstalling(sub)
		now := at(5)
		sub.DeletionTimestamp = &now
		if with != "-" {
			metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationUninstalls, with)
		}
	}
}

func generated(sub *operatorsv1alpha1.Subscription) {
	metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationGeneratedBy, "p")
}

// needing adds required packages to a version.
func needing(packages ...string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		parts := []string{strings.TrimSuffix(csv.Annotations[api.AnnotationProperties], "]}")}
		for _, pkg := range packages {
			parts = append(parts, fmt.Sprintf(`{"type":"olm.package.required","value":{"packageName":%q,"versionRange":">=0.1.0"}}`, pkg))
		}
		csv.Annotations[api.AnnotationProperties] = strings.Join(parts, ",") + "]}"
	}
}

// bearing labels a plan for a package.
func bearing(p *operatorsv1alpha1.InstallPlan, pkg string) *operatorsv1alpha1.InstallPlan {
	p.Labels = map[string]string{plansteps.ComponentLabel(pkg, p.Namespace): ""}
	return p
}

// leave returns the next step of the first of some Subscriptions.
func leave(subs []*operatorsv1alpha1.Subscription, csvs []*operatorsv1alpha1.ClusterServiceVersion, plans ...*operatorsv1alpha1.InstallPlan) uninstallStep {
	objects := Objects{Namespace: "home", Global: "olm", Subscriptions: subs, Versions: csvs, Plans: plans}
	return nextUninstallStep(objects.observe(&propertyCache{}), subs[0], at(5).Add(time.Second))
}

func TestNextUninstallStep(t *testing.T) {
	type (
		subs     = []*operatorsv1alpha1.Subscription
		versions = []*operatorsv1alpha1.ClusterServiceVersion
	)
	gone := subscription("my-lamp", "lamp", deleted("-"))
	noted := subscription("my-lamp", "lamp", deleted(""))
	v1, v2 := version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", pending, replaces("lamp.v1"))
	bulb := subscription("bulb", "bulb", generated)
	const deleting = operatorsv1alpha1.CSVPhaseDeleting
	const installing, asking, broken = operatorsv1alpha1.InstallPlanPhaseInstalling, operatorsv1alpha1.InstallPlanPhaseRequiresApproval, operatorsv1alpha1.InstallPlanPhaseFailed
	lampPlan := func(phase operatorsv1alpha1.InstallPlanPhase, owners ...*operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
		return bearing(installPlan("p", "lamp.v1", phase, 1, owners...), "lamp")
	}
	wiring := func(name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Status.Reason, csv.Status.Message = api.ReasonWaitingOnCleanup, name
		}
	}
	for _, tt := range []struct {
		step  string
		subs  subs
		csvs  versions
		plans []*operatorsv1alpha1.InstallPlan
		want  string // the departure, in one line
	}{
		{step: "nothing is there", subs: subs{noted}, want: ""},
		{step: "the annotation was taken back", subs: subs{subscription("my-lamp", "lamp", deleted(""), func(sub *operatorsv1alpha1.Subscription) { sub.Annotations = nil })}, csvs: versions{v1}, want: "why annotation chandlery.dev/on-delete no longer requests it"},
		{step: "another one keeps the package", subs: subs{noted, subscription("other", "lamp")}, csvs: versions{v1}, want: "why subscription other also uses package lamp"},
		{step: "another one that departs too does not", subs: subs{noted, subscription("other", "lamp", deleted(""))}, csvs: versions{v1}, want: "delete lamp.v1, WaitingOnCleanup"},
		{step: "what goes with it is noted first", subs: subs{gone}, csvs: versions{v1, v2}, want: "note ''"},
		{step: "the whole chain goes", subs: subs{noted}, csvs: versions{v1, v2, version("fan.v1", "fan", succeeded)}, want: "delete lamp.v1, delete lamp.v2, WaitingOnCleanup waiting for clusterserviceversion lamp.v1, lamp.v2"},
		{step: "what is being deleted is waited for", subs: subs{noted}, csvs: versions{version("lamp.v1", "lamp", succeeded, going, wiring("40 of kind Lamp are left"))}, want: "WaitingOnCleanup waiting for clusterserviceversion lamp.v1 (40 of kind Lamp are left)"},
		{step: "a version without record that it knows", subs: subs{subscription("my-lamp", "lamp", deleted(""), knows("lamp.v1", ""))}, csvs: versions{version("lamp.v1", "", succeeded)}, want: "delete lamp.v1, WaitingOnCleanup"},
		{step: "a plan that waits for approval goes first", subs: subs{noted}, csvs: versions{v1}, plans: []*operatorsv1alpha1.InstallPlan{lampPlan(asking, noted)}, want: "delete plan p"},
		{step: "so does one that failed and may go on", subs: subs{noted}, csvs: versions{v1}, plans: []*operatorsv1alpha1.InstallPlan{lampPlan(broken, noted)}, want: "delete plan p"},
		{step: "one that is being carried out may come to its end", subs: subs{noted}, csvs: versions{v1}, plans: []*operatorsv1alpha1.InstallPlan{lampPlan(installing, noted)}, want: "WaitingOnInstallPlan waiting for InstallPlan p, which installs lamp.v1"},
		{
			step: "but not for ever", subs: subs{subscription("my-lamp", "lamp", deleted(""), func(sub *operatorsv1alpha1.Subscription) { sub.DeletionTimestamp = new(at(4)) })},
			csvs: versions{v1}, plans: []*operatorsv1alpha1.InstallPlan{lampPlan(installing, noted)}, want: "delete plan p",
		},
		{
			step: "one that serves another too is left", subs: subs{noted, subscription("my-fan", "fan")}, csvs: versions{v1},
			plans: []*operatorsv1alpha1.InstallPlan{lampPlan(asking, noted, subscription("my-fan", "fan"))}, want: "delete lamp.v1, WaitingOnCleanup",
		},
		{step: "one of another package is not looked at", subs: subs{noted}, csvs: versions{v1}, plans: []*operatorsv1alpha1.InstallPlan{bearing(installPlan("p", "fan.v1", installing, 1), "fan")}, want: "delete lamp.v1, WaitingOnCleanup"},
		{step: "one that is done is left", subs: subs{noted}, csvs: versions{v1}, plans: []*operatorsv1alpha1.InstallPlan{lampPlan(operatorsv1alpha1.InstallPlanPhaseComplete, noted)}, want: "delete lamp.v1, WaitingOnCleanup"},
		{step: "another operator needs it", subs: subs{gone}, csvs: versions{v1, version("fan.v1", "fan", succeeded, needing("lamp"))}, want: "StillRequired clusterserviceversion fan.v1 requires an operator with package: lamp"},
		{step: "another operator needs it and its own clean-up has begun", subs: subs{noted}, csvs: versions{version("lamp.v1", "lamp", succeeded, going), version("fan.v1", "fan", succeeded, needing("lamp"))}, want: "WaitingOnCleanup"},
		{
			step: "an older version that goes after an update begins nothing", subs: subs{gone}, want: "StillRequired clusterserviceversion fan.v1",
			csvs: versions{version("lamp.v1", "lamp", deleting, going), version("lamp.v2", "lamp", succeeded, replaces("lamp.v1")), version("fan.v1", "fan", succeeded, needing("lamp"))},
		},
		{
			step: "not even when all is noted", subs: subs{noted}, want: "StillRequired clusterserviceversion fan.v1",
			csvs: versions{version("lamp.v1", "lamp", deleting, going), version("lamp.v2", "lamp", succeeded, replaces("lamp.v1")), version("fan.v1", "fan", succeeded, needing("lamp"))},
		},
		{
			step: "a version that somebody else deletes begins nothing", subs: subs{gone}, want: "StillRequired clusterserviceversion fan.v1",
			csvs: versions{version("lamp.v1", "lamp", succeeded, going), version("fan.v1", "fan", succeeded, needing("lamp"))},
		},
		{
			step: "another operator that departs needs it", subs: subs{gone, subscription("my-fan", "fan", deleted(""))},
			csvs: versions{v1, version("fan.v1", "fan", succeeded, needing("lamp"))}, want: "StillRequired clusterserviceversion fan.v1",
		},
		{
			step: "two that need each other depart", subs: subs{noted, subscription("my-fan", "fan", deleted(""))},
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("fan")), version("fan.v1", "fan", succeeded, needing("lamp"))}, want: "delete lamp.v1, WaitingOnCleanup",
		},
		{
			step: "three that need each other in a ring depart", subs: subs{noted, subscription("my-fan", "fan", deleted("")), subscription("my-oil", "oil", deleted(""))},
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("fan")), version("fan.v1", "fan", succeeded, needing("oil")), version("oil.v1", "oil", succeeded, needing("lamp"))},
			want: "delete lamp.v1, WaitingOnCleanup",
		},
		{
			step: "one stays that needs another one of the ring", subs: subs{noted, subscription("my-fan", "fan", deleted("")), subscription("my-oil", "oil", deleted("")), subscription("my-stove", "stove")},
			csvs: versions{
				version("lamp.v1", "lamp", succeeded, needing("fan")), version("fan.v1", "fan", succeeded, needing("oil")), version("oil.v1", "oil", succeeded, needing("lamp")),
				version("stove.v1", "stove", succeeded, needing("oil")),
			},
			want: "StillRequired clusterserviceversion stove.v1 requires an operator",
		},
		{
			step: "one that departs needs it, and is not needed", subs: subs{noted, subscription("my-fan", "fan", deleted("")), subscription("my-oil", "oil", deleted(""))},
			csvs: versions{version("lamp.v1", "lamp", succeeded), version("fan.v1", "fan", succeeded, needing("oil")), version("oil.v1", "oil", succeeded, needing("lamp"))},
			want: "StillRequired clusterserviceversion oil.v1",
		},
		{
			step: "an operator requires its CustomResourceDefinition", subs: subs{gone},
			csvs: versions{version("lamp.v1", "lamp", succeeded, ownsCRD("lamps.x")), version("fan.v1", "fan", succeeded, requiresCRD("lamps.x"))}, want: "StillRequired clusterserviceversion fan.v1 requires CustomResourceDefinition lamps.x",
		},
		{
			step: "an operator requires a CustomResourceDefinition that another has too", subs: subs{noted},
			csvs: versions{version("lamp.v1", "lamp", succeeded, ownsCRD("lamps.x")), version("torch.v1", "torch", succeeded, ownsCRD("lamps.x")), version("fan.v1", "fan", succeeded, requiresCRD("lamps.x"))},
			want: "delete lamp.v1, WaitingOnCleanup",
		},
		{step: "what it needs is noted", subs: subs{gone, bulb}, csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded)}, want: "note 'bulb'"},
		{
			step: "and what that needs", subs: subs{gone, subscription("wire", "wire", generated), bulb},
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded, needing("wire")), version("wire.v1", "wire", succeeded)}, want: "note 'bulb,wire'",
		},
		{
			step: "and what that needs in turn", subs: subs{gone, bulb, subscription("wire", "wire", generated)}, want: "note 'bulb,wire'",
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded, needing("wire")), version("wire.v1", "wire", succeeded, needing("bulb"))},
		},
		{
			step: "but none of it when something else needs a part", subs: subs{gone, bulb, subscription("wire", "wire", generated)}, want: "note ''",
			csvs: versions{
				version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded, needing("wire")), version("wire.v1", "wire", succeeded, needing("bulb")),
				version("fan.v1", "fan", succeeded, needing("wire")),
			},
		},
		{
			step: "also what another that departs needs", subs: subs{gone, subscription("my-fan", "fan", deleted("")), bulb}, want: "note 'bulb'",
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded), version("fan.v1", "fan", succeeded, needing("bulb"))},
		},
		{
			step: "it is noted when no plan brings more", subs: subs{gone, bulb}, csvs: versions{version("bulb.v1", "bulb", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{lampPlan(installing, gone)}, want: "WaitingOnInstallPlan waiting for InstallPlan p",
		},
		{
			step: "what a plan has brought that failed is noted", subs: subs{gone, bulb}, csvs: versions{version("bulb.v1", "bulb", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{lampPlan(broken, gone)}, want: "note 'bulb'",
		},
		{
			step: "not so if it was for somebody else too", subs: subs{gone, bulb, subscription("my-fan", "fan")}, csvs: versions{version("bulb.v1", "bulb", succeeded)},
			plans: []*operatorsv1alpha1.InstallPlan{lampPlan(broken, gone, subscription("my-fan", "fan"))}, want: "note ''",
		},
		{step: "then the plan goes", subs: subs{subscription("my-lamp", "lamp", deleted("bulb")), bulb}, plans: []*operatorsv1alpha1.InstallPlan{lampPlan(broken, gone)}, want: "delete plan p"},
		{
			step: "not what another operator needs", subs: subs{gone, bulb},
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded), version("fan.v1", "fan", succeeded, needing("bulb"))}, want: "note ''",
		},
		{step: "not what a user asked for", subs: subs{gone, subscription("bulb", "bulb")}, csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded)}, want: "note ''"},
		{
			step: "not what a user asks for as well", subs: subs{gone, bulb, subscription("mine", "bulb")},
			csvs: versions{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded)}, want: "note ''",
		},
		{step: "not what it never needed", subs: subs{gone, bulb}, csvs: versions{v1, version("bulb.v1", "bulb", succeeded)}, want: "note ''"},
		{
			step: "when it is gone, what it needed goes", subs: subs{subscription("my-lamp", "lamp", deleted("bulb")), bulb}, csvs: versions{version("bulb.v1", "bulb", succeeded)},
			want: "delete subscription bulb, WaitingOnDependencies waiting for the removal of unused dependencies: subscription bulb",
		},
		{
			step: "both of which one needs the other", subs: subs{subscription("my-lamp", "lamp", deleted("bulb,wire")), bulb, subscription("wire", "wire", generated)},
			csvs: versions{version("bulb.v1", "bulb", succeeded, needing("wire")), version("wire.v1", "wire", succeeded)},
			want: "delete subscription bulb, delete subscription wire, WaitingOnDependencies",
		},
		{
			step: "what is on its way is waited for", subs: subs{subscription("my-lamp", "lamp", deleted("bulb")), subscription("bulb", "bulb", generated, deleted(""))}, csvs: versions{version("bulb.v1", "bulb", succeeded, going)},
			want: "WaitingOnDependencies",
		},
		{
			step: "what somebody needs meanwhile stays", subs: subs{subscription("my-lamp", "lamp", deleted("bulb")), bulb},
			csvs: versions{version("bulb.v1", "bulb", succeeded), version("fan.v1", "fan", succeeded, needing("bulb"))}, want: "",
		},
		{step: "what was noted and made by a user since stays", subs: subs{subscription("my-lamp", "lamp", deleted("bulb")), subscription("bulb", "bulb")}, csvs: versions{version("bulb.v1", "bulb", succeeded)}, want: ""},
	} {
		t.Run(tt.step, func(t *testing.T) {
			got := inALine(leave(tt.subs, tt.csvs, tt.plans...))
			if !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("step is %q, want %q", got, tt.want)
			}
		})
	}
}

func ownsCRD(name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{Name: name, Version: "v1", Kind: "K"})
	}
}

func requiresCRD(name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Required = append(csv.Spec.CustomResourceDefinitions.Required, operatorsv1alpha1.CRDDescription{Name: name, Version: "v1", Kind: "K"})
	}
}

// inALine returns a step as one line.
func inALine(d uninstallStep) string {
	var parts []string
	if d.record != nil {
		parts = append(parts, "note '"+*d.record+"'")
	}
	for _, p := range d.plans {
		parts = append(parts, "delete plan "+p.Name)
	}
	for _, csv := range d.versions {
		parts = append(parts, "delete "+csv.Name)
	}
	var names []string
	for _, sub := range d.dependents {
		names = append(names, "delete subscription "+sub.Name)
	}
	slices.Sort(names)
	parts = append(parts, names...)
	if d.reason != "" {
		parts = append(parts, d.reason+" "+d.message)
	}
	if d.kept != "" {
		parts = append(parts, "why "+d.kept)
	}
	return strings.Join(parts, ", ")
}

// TestUninstallEnds simulates an uninstallation in which every step is done, and checks
// that it ends.
func TestUninstallEnds(t *testing.T) {
	sub, bulb := subscription("my-lamp", "lamp", deleted("-")), subscription("bulb", "bulb", generated)
	objects := Objects{
		Namespace: "home", Global: "olm", Subscriptions: []*operatorsv1alpha1.Subscription{sub, bulb},
		Versions: []*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", succeeded, needing("bulb")), version("bulb.v1", "bulb", succeeded)},
		Plans:    []*operatorsv1alpha1.InstallPlan{bearing(installPlan("p", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, 1, sub), "lamp")},
	}
	var steps []string
	for range 10 {
		d := nextUninstallStep(objects.observe(&propertyCache{}), sub, at(6).Time)
		steps = append(steps, inALine(d))
		if len(d.plans) == 0 && d.reason == "" && d.record == nil {
			break
		}
		if d.record != nil {
			sub.Annotations[api.AnnotationUninstalls] = *d.record
		}
		if len(d.plans) > 0 {
			objects.Plans = nil
		}
		objects.Versions = slices.DeleteFunc(objects.Versions, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return slices.Contains(d.versions, csv) })
		if len(d.dependents) > 0 {
			objects.Subscriptions, objects.Versions = objects.Subscriptions[:1], nil
		}
	}
	want := []string{"note 'bulb'", "delete plan p", "delete lamp.v1, Waiting", "delete subscription bulb, Waiting", ""}
	if len(steps) != len(want) {
		t.Fatalf("steps %q", steps)
	}
	for i := range want {
		if !strings.HasPrefix(steps[i], want[i]) {
			t.Errorf("step %d is %q, want %q", i, steps[i], want[i])
		}
	}
}

// TestUninstallConditions checks that the condition stands beside the earlier ones, once, and that a
// second write changes nothing.
func TestUninstallConditions(t *testing.T) {
	sub := subscription("my", "lamp", deleted(""))
	d := uninstallStep{reason: api.ReasonWaitingOnCleanup, message: "waiting for clusterserviceversion lamp.v1"}
	for i, waits := range []string{d.message, d.message, "waiting for clusterserviceversion lamp.v2"} {
		d.message = waits
		sub.Status.Conditions = d.conditions(sub, at(i))
		found := retained(sub.Status.Conditions, []operatorsv1alpha1.SubscriptionConditionType{api.ConditionUninstalling})
		if len(found) != 1 || found[0].Message != waits || found[0].Reason != api.ReasonWaitingOnCleanup {
			t.Errorf("conditions %+v", sub.Status.Conditions)
		}
		if since := map[bool]metav1.Time{true: at(0), false: at(2)}[i < 2]; !found[0].LastTransitionTime.Equal(&since) {
			t.Errorf("since %v", found[0].LastTransitionTime)
		}
	}
	sub.Status.Conditions = append(sub.Status.Conditions, isTrue(api.ConditionVersionUnhealthy, "x", "y"), isTrue(api.ConditionNewerVersionHeld, api.ReasonPinned, "nobody wants it"))
	if got := d.conditions(sub, at(3)); len(got) != 2 {
		t.Errorf("conditions %+v", got)
	}
}

// TestDeletedSubscriptionIsNotResolved checks that a departing Subscription is not resolved.
func TestDeletedSubscriptionIsNotResolved(t *testing.T) {
	objects := Objects{Namespace: "home", Subscriptions: []*operatorsv1alpha1.Subscription{subscription("my", "lamp", deleted("")), subscription("other", "fan")}}
	o := objects.observe(&propertyCache{})
	if len(o.subscriptions) != 1 || o.subscriptions[0].Name != "other" || len(o.deleting) != 1 {
		t.Errorf("serves %d, departs %d", len(o.subscriptions), len(o.deleting))
	}
}

package compat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/pause"
)

// subscriptionFixture waits for the plans and the conditions of Subscriptions.
type subscriptionFixture struct {
	*compattest.Cluster

	t *testing.T
}

// bundleFixture publishes bundles of package mill in a catalog, and installs them.
type bundleFixture struct {
	subscriptionFixture
}

func newBundleFixture(t *testing.T, c *compattest.Cluster) *bundleFixture {
	t.Helper()
	return &bundleFixture{subscriptionFixture{c, t}}
}

// bundleCSV returns the manifest of a ClusterServiceVersion as a map.
func (b *bundleFixture) bundleCSV(name string) map[string]any {
	b.t.Helper()
	var manifest map[string]any
	if err := json.Unmarshal([]byte(b.Manifest(b.CSV(name))), &manifest); err != nil {
		b.t.Fatal(err)
	}
	delete(manifest, "status")
	setMetadata(manifest, "namespace", "")
	delete(manifest["metadata"].(map[string]any), "namespace") //nolint:forcetypeassert // encoded above
	return manifest
}

// entry returns a bundle of package mill with inline manifests.
func (b *bundleFixture) entry(name, version string, objects ...any) fakecatalog.Entry {
	b.t.Helper()
	e := fakecatalog.Entry{Name: name, Version: version}
	for _, o := range objects {
		text, is := o.(string)
		if !is {
			text = b.Manifest(o)
		}
		e.Objects = append(e.Objects, text)
	}
	return e
}

// imageEntry returns version 1.0.0 of package mill with an image.
func (b *bundleFixture) imageEntry(objects ...any) fakecatalog.Entry {
	b.t.Helper()
	const name, version = "mill.v1", "1.0.0"
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	b.t.Cleanup(server.Close)
	files := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte("annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n" +
		"  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  operators.operatorframework.io.bundle.metadata.v1: metadata/\n" +
		"  operators.operatorframework.io.bundle.package.v1: mill\n  operators.operatorframework.io.bundle.channels.v1: stable\n")}}
	for i, text := range b.entry(name, version, objects...).Objects {
		files[fmt.Sprintf("manifests/%d.yaml", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	image, err := images.Bundle(files)
	if err != nil {
		b.t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/mill"
	digest, err := images.Push(b.t.Context(), reference+":"+version, image)
	if err != nil {
		b.t.Fatal(err)
	}
	return fakecatalog.Entry{Name: name, Version: version, Image: reference + "@" + digest.String()}
}

// subscribe serves a bundle and subscribes to it.
func (b *bundleFixture) subscribe(e fakecatalog.Entry, change ...func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
	b.t.Helper()
	b.Catalog("shelf", fakecatalog.Simple("mill", e))
	return b.Subscribe("shelf", "mill", change...)
}

// installed waits a minute until a version of a Subscription has succeeded, and returns its plan.
func (f *subscriptionFixture) installed(sub *operatorsv1alpha1.Subscription, name string) *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}}
	f.Eventually(compattest.Limit(time.Minute, compattest.Patience), func() string {
		if left := f.Read(csv); left != "" {
			f.Read(sub)
			return left + ": " + f.Manifest(sub.Status.Conditions)
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("ClusterServiceVersion %s is in phase %s: %s", name, csv.Status.Phase, csv.Status.Message)
		}
		return ""
	})
	p := f.planOf(sub)
	f.inPhase(p, operatorsv1alpha1.InstallPlanPhaseComplete)
	return p
}

// planOf waits until a Subscription refers to an existing plan, and returns it.
func (f *subscriptionFixture) planOf(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	p := &operatorsv1alpha1.InstallPlan{}
	f.Eventually(compattest.Patience, func() string {
		if left := f.Read(sub); left != "" {
			return left
		}
		ref := sub.Status.InstallPlanRef
		if ref == nil {
			return "the Subscription refers to no plan"
		}
		p.Namespace, p.Name = f.Namespace, ref.Name
		if left := f.Read(p); left != "" {
			return left
		}
		if p.UID != ref.UID {
			return "the Subscription refers to a former plan"
		}
		return ""
	})
	return p
}

// inPhase waits until a plan is in a phase.
func (f *subscriptionFixture) inPhase(p *operatorsv1alpha1.InstallPlan, phase operatorsv1alpha1.InstallPlanPhase) {
	f.t.Helper()
	f.Eventually(compattest.Patience, func() string {
		if left := f.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != phase {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
}

// condition waits until a condition of a Subscription is true with a reason and texts in its message.
func (f *subscriptionFixture) condition(sub *operatorsv1alpha1.Subscription, kind operatorsv1alpha1.SubscriptionConditionType, reason string, texts ...string) {
	f.t.Helper()
	f.Eventually(compattest.Patience, func() string {
		if left := f.Read(sub); left != "" {
			return left
		}
		c := sub.Status.GetCondition(kind)
		if c.Status != "True" || c.Reason != reason {
			return "the conditions are " + f.Manifest(sub.Status.Conditions)
		}
		return lacks(c.Message, texts...)
	})
}

// noPlan waits until the namespace has no plan, and the Subscription refers to none.
func (f *subscriptionFixture) noPlan(sub *operatorsv1alpha1.Subscription) {
	f.t.Helper()
	f.Eventually(compattest.Patience, func() string {
		if left := f.Read(sub); left != "" {
			return left
		}
		if ref := sub.Status.InstallPlanRef; ref != nil {
			return "the Subscription refers to InstallPlan " + ref.Name
		}
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := f.List(f.t.Context(), plans, client.InNamespace(f.Namespace)); err != nil {
			return err.Error()
		}
		for _, p := range plans.Items {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
}

func checkBundle(t *testing.T, id string, run func(t *testing.T, b *bundleFixture)) {
	t.Helper()
	compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) { run(t, newBundleFixture(t, c)) })
}

// with sets a field of a manifest; nil removes it.
func with(manifest map[string]any, field string, value any) map[string]any {
	manifest[field] = value
	if value == nil {
		delete(manifest, field)
	}
	return manifest
}

// TestBundleCSVs checks which ClusterServiceVersions of bundles are installed.
func TestBundleCSVs(t *testing.T) {
	t.Parallel()
	checkBundle(t, "G1", func(t *testing.T, b *bundleFixture) {
		p := b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", with(b.bundleCSV("mill.v1"), "apiVersion", "v1alpha1"))), "mill.v1")
		if group := p.Status.Plan[0].Resource.Group; group != "operators.coreos.com" {
			t.Errorf("the group of the step is %q", group)
		}
	})
	checkBundle(t, "G2", func(_ *testing.T, b *bundleFixture) {
		b.installed(b.subscribe(b.imageEntry(with(b.bundleCSV("mill.v1"), "apiVersion", "v1alpha1"))), "mill.v1")
	})
	checkBundle(t, "G3", func(t *testing.T, b *bundleFixture) {
		p := b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", with(b.bundleCSV("mill.v1"), "apiVersion", "operators.coreos.com/v1alpha2"))), "mill.v1")
		b.Eventually(compattest.Patience, func() string {
			for _, e := range b.Events(p) {
				if e.Reason == "AppliedWithWarnings" && strings.Contains(e.Message, "operators.coreos.com/v1alpha2") {
					return ""
				}
			}
			return "the plan has no Event about the apiVersion"
		})
	})
	checkBundle(t, "G4", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(b.imageEntry(with(b.bundleCSV("mill.v1"), "apiVersion", nil)))
		b.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "ErrorPreventedUnpacking", "missing APIVersion", "mill.v1")
		b.noPlan(sub)
	})
	checkBundle(t, "G5", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(b.imageEntry(with(b.bundleCSV("mill.v1"), "kind", nil)))
		b.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "ErrorPreventedUnpacking", "missing Kind", "mill.v1")
		b.noPlan(sub)
	})
	checkBundle(t, "G6", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", with(b.bundleCSV("mill.v1"), "apiVersion", nil)))
		b.condition(sub, operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution", "failed to turn bundle into steps: ", "bundle CSV mill.v1 missing APIVersion")
		b.noPlan(sub)
	})
	checkBundle(t, "G7", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), b.bundleCSV("mill.v2")))
		b.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "EnsureInstallPlanFailed", "two ClusterServiceVersions", "mill.v1", "mill.v2")
		b.noPlan(sub)
	})
	checkBundle(t, "G8", func(t *testing.T, b *bundleFixture) {
		manifest := b.bundleCSV("mill.v1")
		for field, value := range map[string]any{
			"uid": "11111111-1111-1111-1111-111111111111", "resourceVersion": "1", "creationTimestamp": "2020-01-01T00:00:00Z",
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "operators.coreos.com/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}},
		} {
			setMetadata(manifest, field, value)
		}
		manifest["status"] = map[string]any{"phase": "Failed", "reason": "Unknown"}
		b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", manifest)), "mill.v1")
	})
	checkBundle(t, "G9-Refused", func(_ *testing.T, b *bundleFixture) {
		widget := map[string]any{"kind": "Widget", "metadata": map[string]any{"name": "hook"}}
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), widget))
		b.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "EnsureInstallPlanFailed", "Widget hook lacks apiVersion", "mill.v1")
		b.noPlan(sub)
	})
	checkBundle(t, "G9", func(t *testing.T, b *bundleFixture) {
		role := map[string]any{"apiVersion": "v1", "kind": "Role", "metadata": map[string]any{"name": "hook"}, "rules": []any{}}
		settings := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "hook"}, "data": map[string]any{"a": "b"}}
		b.installed(b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), role, settings)), "mill.v1")
		for _, name := range []string{"Role", "ConfigMap"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(kindNamed(name).gvk())
			if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.Namespace, Name: "hook"}, u); err != nil {
				t.Error(err)
			}
		}
	})
}

func approvedByHand(s *operatorsv1alpha1.Subscription) {
	s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
}

// remove deletes an object.
func (f *subscriptionFixture) remove(o client.Object) {
	f.t.Helper()
	if err := f.Delete(f.t.Context(), o); err != nil {
		f.t.Fatal(err)
	}
}

// replaceTime returns how long a Subscription may refer to a deleted plan. OLM is slower.
func replaceTime() time.Duration { return compattest.Limit(10*time.Second, compattest.Patience) }

// replacedBy waits until a Subscription refers to another plan than some former ones, whose name is new.
func (f *subscriptionFixture) replacedBy(sub *operatorsv1alpha1.Subscription, former ...*operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	next := &operatorsv1alpha1.InstallPlan{}
	f.Eventually(replaceTime(), func() string {
		if left := f.Read(sub); left != "" || sub.Status.InstallPlanRef == nil {
			return "the Subscription refers to no plan " + left
		}
		next.Namespace, next.Name = f.Namespace, sub.Status.InstallPlanRef.Name
		if left := f.Read(next); left != "" {
			return left
		}
		if slices.ContainsFunc(former, func(p *operatorsv1alpha1.InstallPlan) bool { return p.UID == next.UID }) {
			return "the Subscription refers to the former plan " + next.Name
		}
		return ""
	})
	if slices.ContainsFunc(former, func(p *operatorsv1alpha1.InstallPlan) bool { return p.Name == next.Name }) {
		f.t.Errorf("the new plan has the name of a former one, %s", next.Name)
	}
	return next
}

// onlyPlan fails if the namespace has another plan.
func (f *subscriptionFixture) onlyPlan(p *operatorsv1alpha1.InstallPlan) {
	f.t.Helper()
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := f.List(f.t.Context(), plans, client.InNamespace(f.Namespace)); err != nil {
		f.t.Fatal(err)
	}
	if len(plans.Items) != 1 || plans.Items[0].Name != p.Name {
		f.t.Errorf("the namespace has %d plans, want %s only", len(plans.Items), p.Name)
	}
}

// update changes a Subscription.
func (f *subscriptionFixture) update(sub *operatorsv1alpha1.Subscription, change func(*operatorsv1alpha1.Subscription)) {
	f.t.Helper()
	f.Read(sub)
	base := sub.DeepCopy()
	change(sub)
	if err := f.Patch(f.t.Context(), sub, client.MergeFrom(base)); err != nil {
		f.t.Fatal(err)
	}
}

// waiting waits until the plan of a Subscription waits for approval and the Subscription shows that. OLM may not notice
// the deletion of a plan that no condition shows.
func (f *subscriptionFixture) waiting(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) {
	f.t.Helper()
	f.inPhase(p, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
	f.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "RequiresApproval")
}

// firstBundle returns version 1.0.0 with nothing else.
func firstBundle(b *bundleFixture) fakecatalog.Entry {
	return b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"))
}

// TestDeletedPlans checks what follows when a plan is deleted.
func TestDeletedPlans(t *testing.T) {
	t.Parallel()
	const waits = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	checkBundle(t, "G10", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(firstBundle(b), approvedByHand)
		p := b.planOf(sub)
		b.waiting(sub, p)
		b.remove(p)
		next := b.replacedBy(sub, p)
		b.inPhase(next, waits)
		b.onlyPlan(next)
	})
	checkBundle(t, "G11", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(firstBundle(b), approvedByHand)
		p := b.planOf(sub)
		b.waiting(sub, p)
		b.remove(p)
		b.update(sub, func(s *operatorsv1alpha1.Subscription) {
			s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalAutomatic
		})
		next := b.replacedBy(sub, p)
		b.inPhase(next, operatorsv1alpha1.InstallPlanPhaseComplete)
		b.onlyPlan(next)
	})
	checkBundle(t, "G12", func(_ *testing.T, b *bundleFixture) {
		sub := b.subscribe(firstBundle(b), approvedByHand)
		former := []*operatorsv1alpha1.InstallPlan{b.planOf(sub)}
		for range 3 {
			last := former[len(former)-1]
			b.waiting(sub, last)
			b.remove(last)
			former = append(former, b.replacedBy(sub, former...))
		}
		b.onlyPlan(former[3])
	})
	checkBundle(t, "G13", func(_ *testing.T, b *bundleFixture) {
		f := b.planFixture()
		definition := f.manifestOf(kindNamed("CustomResourceDefinition"))
		spec := definition["spec"].(map[string]any) //nolint:forcetypeassert // manifestOf sets it
		spec["scope"] = "Nowhere"
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), definition))
		p := b.planOf(sub)
		f.fails(compattest.Patience+compattest.RetryWindow(), p, "Nowhere")
		b.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanFailed, "InstallComponentFailed")
		b.remove(p)
		next := b.replacedBy(sub, p)
		f.fails(compattest.Patience+compattest.RetryWindow(), next, "Nowhere")
	})
	checkBundle(t, "G14", func(t *testing.T, b *bundleFixture) {
		// A missing right keeps the plan in phase Installing.
		f := b.planFixture()
		account := newInstallerAccount(t, f.Cluster, ruleFor("operators.coreos.com", "clusterserviceversions", "get", "create", "update"))
		account.use()
		settings := f.manifestOf(kindNamed("ConfigMap"))
		sub := b.subscribe(b.entry("mill.v1", "1.0.0", b.bundleCSV("mill.v1"), settings))
		p := b.planOf(sub)
		f.retrying(p, "forbidden")
		b.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "Installing")
		b.remove(p)
		next := b.replacedBy(sub, p)
		account.grant(ruleFor("", "configmaps", "get", "create", "update"))
		b.inPhase(next, operatorsv1alpha1.InstallPlanPhaseComplete)
	})
}

// TestReplacedPlans checks the deletion of a complete plan, and another channel before a plan is approved.
func TestReplacedPlans(t *testing.T) {
	t.Parallel()
	const waits = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	checkBundle(t, "G15", func(t *testing.T, b *bundleFixture) {
		sub := b.subscribe(firstBundle(b))
		p := b.installed(sub, "mill.v1")
		b.Eventually(compattest.Patience, func() string {
			b.Read(sub)
			if sub.Status.InstalledCSV != "mill.v1" {
				return "status.installedCSV is " + sub.Status.InstalledCSV
			}
			return ""
		})
		b.remove(p)
		b.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanMissing, operatorsv1alpha1.ReferencedInstallPlanNotFound)
		pause.For(t.Context(), 5*time.Second)
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := b.List(t.Context(), plans, client.InNamespace(b.Namespace)); err != nil || len(plans.Items) > 0 {
			t.Errorf("%d plans exist, error %v", len(plans.Items), err)
		}
	})
	channels := func(b *bundleFixture) fakecatalog.Package {
		return fakecatalog.Package{Name: "mill", Channels: []fakecatalog.Channel{
			{Name: "stable", Entries: []fakecatalog.Entry{firstBundle(b)}},
			{Name: "fast", Entries: []fakecatalog.Entry{b.entry("mill.v2", "2.0.0", b.bundleCSV("mill.v2"))}},
		}}
	}
	inChannel := func(name string) func(*operatorsv1alpha1.Subscription) {
		return func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = name }
	}
	checkBundle(t, "G16", func(_ *testing.T, b *bundleFixture) {
		b.Catalog("shelf", channels(b))
		sub := b.Subscribe("shelf", "mill", approvedByHand, inChannel("stable"))
		p := b.planOf(sub)
		b.inPhase(p, waits)
		b.update(sub, inChannel("fast"))
		next := b.replacedBy(sub, p)
		b.inPhase(next, waits)
		b.Gone(compattest.Patience, p)
	})
	checkBundle(t, "G17", func(t *testing.T, b *bundleFixture) {
		b.Catalog("shelf", channels(b))
		sub := b.Subscribe("shelf", "mill", approvedByHand, inChannel("stable"))
		first := b.planOf(sub)
		b.inPhase(first, waits)
		b.update(sub, inChannel("fast"))
		second := b.replacedBy(sub, first)
		b.inPhase(second, waits)
		b.update(sub, inChannel("stable"))
		third := b.replacedBy(sub, first, second)
		b.inPhase(third, waits)
		if names := third.Spec.ClusterServiceVersionNames; !slices.Equal(names, []string{"mill.v1"}) {
			t.Errorf("the third plan installs %q", names)
		}
	})
}

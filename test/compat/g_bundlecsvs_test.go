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

// mill is the namespace of one case, with a catalog of package mill.
type mill struct {
	*compattest.Cluster

	t *testing.T
}

// bundleCSV returns the manifest of a ClusterServiceVersion as a map.
func (m *mill) bundleCSV(name string) map[string]any {
	m.t.Helper()
	var manifest map[string]any
	if err := json.Unmarshal([]byte(m.Manifest(m.CSV(name))), &manifest); err != nil {
		m.t.Fatal(err)
	}
	delete(manifest, "status")
	setMetadata(manifest, "namespace", "")
	delete(manifest["metadata"].(map[string]any), "namespace") //nolint:forcetypeassert // encoded above
	return manifest
}

// entry returns a bundle of package mill with inline manifests.
func (m *mill) entry(name, version string, objects ...any) fakecatalog.Entry {
	m.t.Helper()
	e := fakecatalog.Entry{Name: name, Version: version}
	for _, o := range objects {
		text, is := o.(string)
		if !is {
			text = m.Manifest(o)
		}
		e.Objects = append(e.Objects, text)
	}
	return e
}

// imageEntry returns version 1.0.0 of package mill with an image.
func (m *mill) imageEntry(objects ...any) fakecatalog.Entry {
	m.t.Helper()
	const name, version = "mill.v1", "1.0.0"
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	m.t.Cleanup(server.Close)
	files := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte("annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n" +
		"  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  operators.operatorframework.io.bundle.metadata.v1: metadata/\n" +
		"  operators.operatorframework.io.bundle.package.v1: mill\n  operators.operatorframework.io.bundle.channels.v1: stable\n")}}
	for i, text := range m.entry(name, version, objects...).Objects {
		files[fmt.Sprintf("manifests/%d.yaml", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	image, err := images.Bundle(files)
	if err != nil {
		m.t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/mill"
	digest, err := images.Push(m.t.Context(), reference+":"+version, image)
	if err != nil {
		m.t.Fatal(err)
	}
	return fakecatalog.Entry{Name: name, Version: version, Image: reference + "@" + digest.String()}
}

// subscribe serves a bundle and subscribes to it.
func (m *mill) subscribe(e fakecatalog.Entry, change ...func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
	m.t.Helper()
	m.Catalog("shelf", fakecatalog.Simple("mill", e))
	return m.Subscribe("shelf", "mill", change...)
}

// installed waits until a version of a Subscription has succeeded, and returns its plan.
func (m *mill) installed(sub *operatorsv1alpha1.Subscription, name string) *operatorsv1alpha1.InstallPlan {
	m.t.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name}}
	m.Eventually(compattest.Patience, func() string {
		if left := m.Read(csv); left != "" {
			m.Read(sub)
			return left + ": " + m.Manifest(sub.Status.Conditions)
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("ClusterServiceVersion %s is in phase %s: %s", name, csv.Status.Phase, csv.Status.Message)
		}
		return ""
	})
	p := m.planOf(sub)
	m.inPhase(p, operatorsv1alpha1.InstallPlanPhaseComplete)
	return p
}

// planOf waits until a Subscription refers to an existing plan, and returns it.
func (m *mill) planOf(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
	m.t.Helper()
	p := &operatorsv1alpha1.InstallPlan{}
	m.Eventually(compattest.Patience, func() string {
		if left := m.Read(sub); left != "" {
			return left
		}
		ref := sub.Status.InstallPlanRef
		if ref == nil {
			return "the Subscription refers to no plan"
		}
		p.Namespace, p.Name = m.Namespace, ref.Name
		if left := m.Read(p); left != "" {
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
func (m *mill) inPhase(p *operatorsv1alpha1.InstallPlan, phase operatorsv1alpha1.InstallPlanPhase) {
	m.t.Helper()
	m.Eventually(compattest.Patience, func() string {
		if left := m.Read(p); left != "" {
			return left
		}
		if p.Status.Phase != phase {
			return fmt.Sprintf("InstallPlan %s is in phase %q: %s", p.Name, p.Status.Phase, p.Status.Message)
		}
		return ""
	})
}

// condition waits until a condition of a Subscription is true with a reason and texts in its message.
func (m *mill) condition(sub *operatorsv1alpha1.Subscription, kind operatorsv1alpha1.SubscriptionConditionType, reason string, texts ...string) {
	m.t.Helper()
	m.Eventually(compattest.Patience, func() string {
		if left := m.Read(sub); left != "" {
			return left
		}
		c := sub.Status.GetCondition(kind)
		if c.Status != "True" || c.Reason != reason {
			return "the conditions are " + m.Manifest(sub.Status.Conditions)
		}
		return lacks(c.Message, texts...)
	})
}

func checkMill(t *testing.T, id string, run func(t *testing.T, m *mill)) {
	t.Helper()
	compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) { run(t, &mill{Cluster: c, t: t}) })
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
	checkMill(t, "G1", func(t *testing.T, m *mill) {
		p := m.installed(m.subscribe(m.entry("mill.v1", "1.0.0", with(m.bundleCSV("mill.v1"), "apiVersion", "v1alpha1"))), "mill.v1")
		if group := p.Status.Plan[0].Resource.Group; group != "operators.coreos.com" {
			t.Errorf("the group of the step is %q", group)
		}
	})
	checkMill(t, "G2", func(_ *testing.T, m *mill) {
		m.installed(m.subscribe(m.imageEntry(with(m.bundleCSV("mill.v1"), "apiVersion", "v1alpha1"))), "mill.v1")
	})
	checkMill(t, "G3", func(t *testing.T, m *mill) {
		p := m.installed(m.subscribe(m.entry("mill.v1", "1.0.0", with(m.bundleCSV("mill.v1"), "apiVersion", "operators.coreos.com/v1alpha2"))), "mill.v1")
		m.Eventually(compattest.Patience, func() string {
			for _, e := range m.Events(p) {
				if e.Reason == "AppliedWithWarnings" && strings.Contains(e.Message, "operators.coreos.com/v1alpha2") {
					return ""
				}
			}
			return "the plan has no Event about the apiVersion"
		})
	})
	checkMill(t, "G4", func(_ *testing.T, m *mill) {
		sub := m.subscribe(m.imageEntry(with(m.bundleCSV("mill.v1"), "apiVersion", nil)))
		m.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "ErrorPreventedUnpacking", "missing APIVersion", "mill.v1")
	})
	checkMill(t, "G5", func(_ *testing.T, m *mill) {
		sub := m.subscribe(m.imageEntry(with(m.bundleCSV("mill.v1"), "kind", nil)))
		m.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "ErrorPreventedUnpacking", "missing Kind", "mill.v1")
	})
	checkMill(t, "G6", func(_ *testing.T, m *mill) {
		sub := m.subscribe(m.entry("mill.v1", "1.0.0", with(m.bundleCSV("mill.v1"), "apiVersion", nil)))
		m.condition(sub, operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution", "missing APIVersion", "mill.v1")
	})
	checkMill(t, "G7", func(_ *testing.T, m *mill) {
		sub := m.subscribe(m.entry("mill.v1", "1.0.0", m.bundleCSV("mill.v1"), m.bundleCSV("mill.v2")))
		m.condition(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed, "EnsureInstallPlanFailed", "two ClusterServiceVersions", "mill.v1", "mill.v2")
	})
	checkMill(t, "G8", func(t *testing.T, m *mill) {
		manifest := m.bundleCSV("mill.v1")
		for field, value := range map[string]any{
			"uid": "11111111-1111-1111-1111-111111111111", "resourceVersion": "1", "creationTimestamp": "2020-01-01T00:00:00Z",
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "operators.coreos.com/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}},
		} {
			setMetadata(manifest, field, value)
		}
		manifest["status"] = map[string]any{"phase": "Failed", "reason": "Unknown"}
		m.installed(m.subscribe(m.entry("mill.v1", "1.0.0", manifest)), "mill.v1")
	})
	checkMill(t, "G9", func(t *testing.T, m *mill) {
		role := map[string]any{"apiVersion": "v1", "kind": "Role", "metadata": map[string]any{"name": "hook"}, "rules": []any{}}
		settings := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "hook"}, "data": map[string]any{"a": "b"}}
		m.installed(m.subscribe(m.entry("mill.v1", "1.0.0", m.bundleCSV("mill.v1"), role, settings)), "mill.v1")
		for _, name := range []string{"Role", "ConfigMap"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(kindNamed(name).gvk())
			if err := m.Get(t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: "hook"}, u); err != nil {
				t.Error(err)
			}
		}
	})
}

func approvedByHand(s *operatorsv1alpha1.Subscription) {
	s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
}

// remove deletes an object.
func (m *mill) remove(o client.Object) {
	m.t.Helper()
	if err := m.Delete(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
}

// replacedBy waits until a Subscription refers to another plan than some former ones, whose name is new.
func (m *mill) replacedBy(sub *operatorsv1alpha1.Subscription, former ...*operatorsv1alpha1.InstallPlan) *operatorsv1alpha1.InstallPlan {
	m.t.Helper()
	var next *operatorsv1alpha1.InstallPlan
	m.Eventually(compattest.Patience, func() string {
		next = m.planOf(sub)
		if slices.ContainsFunc(former, func(p *operatorsv1alpha1.InstallPlan) bool { return p.UID == next.UID }) {
			return "the Subscription refers to the former plan " + next.Name
		}
		return ""
	})
	if slices.ContainsFunc(former, func(p *operatorsv1alpha1.InstallPlan) bool { return p.Name == next.Name }) {
		m.t.Errorf("the new plan has the name of a former one, %s", next.Name)
	}
	return next
}

// onlyPlan fails if the namespace has another plan.
func (m *mill) onlyPlan(p *operatorsv1alpha1.InstallPlan) {
	m.t.Helper()
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := m.List(m.t.Context(), plans, client.InNamespace(m.Namespace)); err != nil {
		m.t.Fatal(err)
	}
	if len(plans.Items) != 1 || plans.Items[0].Name != p.Name {
		m.t.Errorf("the namespace has %d plans, want %s only", len(plans.Items), p.Name)
	}
}

// update changes a Subscription.
func (m *mill) update(sub *operatorsv1alpha1.Subscription, change func(*operatorsv1alpha1.Subscription)) {
	m.t.Helper()
	m.Read(sub)
	base := sub.DeepCopy()
	change(sub)
	if err := m.Patch(m.t.Context(), sub, client.MergeFrom(base)); err != nil {
		m.t.Fatal(err)
	}
}

// waiting waits until the plan of a Subscription waits for approval and the Subscription shows that. OLM may not notice
// the deletion of a plan that no condition shows.
func (m *mill) waiting(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) {
	m.t.Helper()
	m.inPhase(p, operatorsv1alpha1.InstallPlanPhaseRequiresApproval)
	m.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "RequiresApproval")
}

// TestDeletedPlans checks what follows when a plan is deleted.
func TestDeletedPlans(t *testing.T) {
	t.Parallel()
	const waits = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	simple := func(m *mill) fakecatalog.Entry { return m.entry("mill.v1", "1.0.0", m.bundleCSV("mill.v1")) }
	checkMill(t, "G10", func(_ *testing.T, m *mill) {
		sub := m.subscribe(simple(m), approvedByHand)
		p := m.planOf(sub)
		m.waiting(sub, p)
		m.remove(p)
		next := m.replacedBy(sub, p)
		m.inPhase(next, waits)
		m.onlyPlan(next)
	})
	checkMill(t, "G11", func(_ *testing.T, m *mill) {
		sub := m.subscribe(simple(m), approvedByHand)
		p := m.planOf(sub)
		m.waiting(sub, p)
		m.remove(p)
		m.update(sub, func(s *operatorsv1alpha1.Subscription) {
			s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalAutomatic
		})
		next := m.replacedBy(sub, p)
		m.inPhase(next, operatorsv1alpha1.InstallPlanPhaseComplete)
		m.onlyPlan(next)
	})
	checkMill(t, "G12", func(_ *testing.T, m *mill) {
		sub := m.subscribe(simple(m), approvedByHand)
		former := []*operatorsv1alpha1.InstallPlan{m.planOf(sub)}
		for range 3 {
			last := former[len(former)-1]
			m.waiting(sub, last)
			m.remove(last)
			former = append(former, m.replacedBy(sub, former...))
		}
		m.onlyPlan(former[3])
	})
	checkMill(t, "G13", func(_ *testing.T, m *mill) {
		f := m.planFixture()
		definition := f.manifestOf(kindNamed("CustomResourceDefinition"))
		spec := definition["spec"].(map[string]any) //nolint:forcetypeassert // manifestOf sets it
		spec["scope"] = "Nowhere"
		sub := m.subscribe(m.entry("mill.v1", "1.0.0", m.bundleCSV("mill.v1"), definition))
		p := m.planOf(sub)
		f.fails(compattest.Patience+compattest.RetryWindow(), p, "Nowhere")
		m.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanFailed, "InstallComponentFailed")
		m.remove(p)
		next := m.replacedBy(sub, p)
		f.fails(compattest.Patience+compattest.RetryWindow(), next, "Nowhere")
	})
	checkMill(t, "G14", func(t *testing.T, m *mill) {
		// A missing right keeps the plan in phase Installing.
		f := m.planFixture()
		account := newInstallerAccount(t, f.Cluster, ruleFor("operators.coreos.com", "clusterserviceversions", "get", "create", "update"))
		account.use()
		settings := f.manifestOf(kindNamed("ConfigMap"))
		sub := m.subscribe(m.entry("mill.v1", "1.0.0", m.bundleCSV("mill.v1"), settings))
		p := m.planOf(sub)
		f.retrying(p, "forbidden")
		m.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanPending, "Installing")
		m.remove(p)
		next := m.replacedBy(sub, p)
		account.grant(ruleFor("", "configmaps", "get", "create", "update"))
		m.inPhase(next, operatorsv1alpha1.InstallPlanPhaseComplete)
	})
	checkMill(t, "G15", func(t *testing.T, m *mill) {
		sub := m.subscribe(simple(m))
		p := m.installed(sub, "mill.v1")
		m.Eventually(compattest.Patience, func() string {
			m.Read(sub)
			if sub.Status.InstalledCSV != "mill.v1" {
				return "status.installedCSV is " + sub.Status.InstalledCSV
			}
			return ""
		})
		m.remove(p)
		m.condition(sub, operatorsv1alpha1.SubscriptionInstallPlanMissing, operatorsv1alpha1.ReferencedInstallPlanNotFound)
		pause.For(t.Context(), 5*time.Second)
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := m.List(t.Context(), plans, client.InNamespace(m.Namespace)); err != nil || len(plans.Items) > 0 {
			t.Errorf("%d plans exist, error %v", len(plans.Items), err)
		}
	})
	channels := func(m *mill) fakecatalog.Package {
		return fakecatalog.Package{Name: "mill", Channels: []fakecatalog.Channel{
			{Name: "stable", Entries: []fakecatalog.Entry{simple(m)}},
			{Name: "fast", Entries: []fakecatalog.Entry{m.entry("mill.v2", "2.0.0", m.bundleCSV("mill.v2"))}},
		}}
	}
	inChannel := func(name string) func(*operatorsv1alpha1.Subscription) {
		return func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = name }
	}
	checkMill(t, "G16", func(_ *testing.T, m *mill) {
		m.Catalog("shelf", channels(m))
		sub := m.Subscribe("shelf", "mill", approvedByHand, inChannel("stable"))
		p := m.planOf(sub)
		m.inPhase(p, waits)
		m.update(sub, inChannel("fast"))
		next := m.replacedBy(sub, p)
		m.inPhase(next, waits)
		m.Gone(compattest.Patience, p)
	})
	checkMill(t, "G17", func(t *testing.T, m *mill) {
		m.Catalog("shelf", channels(m))
		sub := m.Subscribe("shelf", "mill", approvedByHand, inChannel("stable"))
		first := m.planOf(sub)
		m.inPhase(first, waits)
		m.update(sub, inChannel("fast"))
		second := m.replacedBy(sub, first)
		m.inPhase(second, waits)
		m.update(sub, inChannel("stable"))
		third := m.replacedBy(sub, first, second)
		m.inPhase(third, waits)
		if names := third.Spec.ClusterServiceVersionNames; !slices.Equal(names, []string{"mill.v1"}) {
			t.Errorf("the third plan installs %q", names)
		}
	})
}

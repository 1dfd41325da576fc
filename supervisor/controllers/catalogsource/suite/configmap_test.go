package suite_test

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// goods returns a ConfigMap with a catalog.
func goods(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{
		"customResourceDefinitions": "[]",
		"clusterServiceVersions":    "- {apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: lamp.v1}, spec: {version: 1.0.0, install: {strategy: deployment}}}",
		"packages":                  "- {packageName: lamp, channels: [{name: stable, currentCSV: lamp.v1}]}",
	}}
}

func ofConfigMap(name, configMap string, changes ...func(*operatorsv1alpha1.CatalogSource)) *operatorsv1alpha1.CatalogSource {
	return catalog(name, "", append(changes, func(s *operatorsv1alpha1.CatalogSource) {
		s.Spec.SourceType, s.Spec.ConfigMap = operatorsv1alpha1.SourceTypeInternal, configMap
	})...)
}

// TestConfigMapOwner checks the owner references of ConfigMaps, and that metadata is no reason for a rollout.
func TestConfigMapOwner(t *testing.T) {
	w := newWorld(t)
	held, other, kept := goods("goods"), goods("other"), goods("kept")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	w.Create(secret)
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID, Controller: new(true)}
	held.OwnerReferences = []metav1.OwnerReference{foreign}
	keep := func(s *operatorsv1alpha1.CatalogSource) {
		s.Annotations = map[string]string{"chandlery.dev/keep-config-map": "true"}
	}
	w.Create(held, other, kept, ofConfigMap("goods", "goods"), ofConfigMap("kept", "kept", keep))
	w.supervise()
	first := w.rolledOut("goods", 2)
	w.rolledOut("kept", 2)
	source := &operatorsv1alpha1.CatalogSource{}
	w.get(w, "goods", source)
	want := metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "goods", UID: source.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
	owners := func(name string) func() []metav1.OwnerReference {
		return func() []metav1.OwnerReference {
			found := &corev1.ConfigMap{}
			w.get(w, name, found)
			return found.OwnerReferences
		}
	}
	w.Expect(owners("goods")()).To(gomega.ConsistOf(foreign, want))
	w.Expect(owners("kept")()).To(gomega.BeEmpty())

	// A label is no new content.
	w.get(w, "goods", source)
	before := source.Status.ConfigMapResource
	w.get(w, "goods", held)
	held.Labels["team"] = "a"
	if err := w.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.ConfigMapResource.ResourceVersion).To(gomega.Equal(held.ResourceVersion))
		g.Expect(s.Status.ConfigMapResource.LastUpdateTime.Equal(&before.LastUpdateTime)).To(gomega.BeTrue())
	})
	if d := w.rolledOut("goods", 2); d.Generation != first.Generation {
		t.Error("a label of the ConfigMap caused a rollout")
	}

	// Another ConfigMap releases the first one.
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		s.Spec.ConfigMap = "other"
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	})
	w.Eventually(owners("other")).Should(gomega.ConsistOf(want))
	w.Eventually(owners("goods")).Should(gomega.ConsistOf(foreign))
	// The annotation, and another source type, too.
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		keep(s)
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	})
	w.Eventually(owners("other")).Should(gomega.BeEmpty())
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		delete(s.Annotations, "chandlery.dev/keep-config-map")
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	})
	w.Eventually(owners("other")).Should(gomega.ConsistOf(want))
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		s.Spec.SourceType, s.Spec.ConfigMap, s.Spec.Address = operatorsv1alpha1.SourceTypeGrpc, "", "127.0.0.1:1"
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	})
	w.Eventually(owners("other")).Should(gomega.BeEmpty())
}

// TestConfigMapWarnings serves a ConfigMap with problems that do not prevent that.
func TestConfigMapWarnings(t *testing.T) {
	w := newWorld(t)
	held := goods("goods")
	held.Data["packages"] = "- {packageName: Lamp, channels: [{name: stable, currentCSV: lamp.v1}]}"
	w.Create(held, ofConfigMap("goods", "goods"))
	w.supervise()
	w.rolledOut("goods", 2)
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Reason).To(gomega.BeEmpty(), s.Status.Message)
		g.Expect(s.Status.Conditions).To(gomega.ContainElement(gomega.And(
			gomega.HaveField("Type", "ContentWarnings"), gomega.HaveField("Status", metav1.ConditionTrue), gomega.HaveField("Reason", "ValidationWarnings"),
			gomega.HaveField("Message", gomega.ContainSubstring(`is served with problems (1): packages[0]: package "Lamp": the package name is not a DNS label`)),
		)))
	})
	w.Eventually(func() int {
		var list corev1.EventList
		w.Expect(w.List(t.Context(), &list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		n := 0
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "CatalogWarnings" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "DNS label") {
				n++
			}
		}
		return n
	}).Should(gomega.Equal(1))
	w.get(w, "goods", held)
	held.Data["packages"] = "- {packageName: lamp, channels: [{name: stable, currentCSV: lamp.v1}]}"
	if err := w.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.rolledOut("goods", 2, func(g gomega.Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Labels["olm.configMapResourceVersion"]).To(gomega.Equal(held.ResourceVersion))
	})
	w.becomes("goods", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Conditions).NotTo(gomega.ContainElement(gomega.HaveField("Type", "ContentWarnings")))
	})
}

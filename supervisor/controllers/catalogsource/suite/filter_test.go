package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// serves checks the arguments of the registry in the replicas.
func serves(arguments ...any) func(gomega.Gomega, *appsv1.Deployment) {
	return func(g gomega.Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Spec.Containers[0].Args).To(gomega.ConsistOf(arguments...))
	}
}

// TestCatalogFilter serves different parts of a catalog, one after the other, with the same image.
func TestCatalogFilter(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	_, digest := registry.push("shop:1", nil)
	selected := &corev1.ConfigMap{Data: map[string]string{"selection.yaml": "packages: [{name: lamp}]"}}
	selected.Name = "part"
	filtered := func(value string) func(*operatorsv1alpha1.CatalogSource) {
		return func(s *operatorsv1alpha1.CatalogSource) {
			s.Annotations = map[string]string{api.AnnotationCatalogFilter: value}
			s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs"}}
		}
	}
	plain := catalog("plain", registry.host+"/shop:1", filtered(`{"heads":true}`))
	plain.Spec.GrpcPodConfig = nil
	w.Create(selected,
		catalog("shop", registry.host+"/shop:1", filtered("part")), catalog("inline", registry.host+"/shop:1", filtered(`{heads: true}`)),
		catalog("gone", registry.host+"/shop:1", filtered("gone")), plain)
	w.supervise()

	const lamp = `--selection={"packages":[{"name":"lamp"}]}`
	first := w.rolledOut("shop", 2, serves("serve", gomega.HavePrefix("/extracted-catalog/"), lamp))
	if got := first.Annotations["chandlery.dev/image-digest"]; got != digest {
		t.Errorf("the image is pinned to %s, want %s", got, digest)
	}
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Reason).To(gomega.BeEmpty(), s.Status.Message)
		g.Expect(condition(s, "Available")).To(gomega.ContainSubstring("; filtered by annotation chandlery.dev/catalog-filter; image "))
	})
	w.rolledOut("inline", 2, serves("serve", gomega.HavePrefix("/extracted-catalog/"), `--selection={"heads":true}`))
	w.becomes("gone", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Message).To(gomega.Equal("ConfigMap " + w.Namespace + "/gone of annotation chandlery.dev/catalog-filter does not exist; create it"))
	})
	w.becomes("plain", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(string(s.Status.Reason)).To(gomega.Equal("SpecInvalidError"))
		g.Expect(s.Status.Message).To(gomega.Equal("annotation chandlery.dev/catalog-filter cannot be applied, because the replicas run the image unchanged; " +
			"set spec.grpcPodConfig.extractContent, or remove the annotation"))
	})
	for _, named := range []string{"gone", "plain"} {
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: named}, &appsv1.Deployment{}); err == nil {
			t.Errorf("CatalogSource %s serves more than it may", named)
		}
	}

	// An invalid selection does not change the running replicas.
	w.get(w, "part", selected)
	selected.Data["selection.yaml"] = "packages: [{name: lamp, version: 1.0.0}]"
	if err := w.Update(t.Context(), selected); err != nil {
		t.Fatal(err)
	}
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(string(s.Status.Reason)).To(gomega.Equal("SpecInvalidError"))
		g.Expect(s.Status.Message).To(gomega.Equal("annotation chandlery.dev/catalog-filter names ConfigMap " + w.Namespace +
			`/part, which contains no selection: reading the selection: json: unknown field "version"; correct it`))
		g.Expect(condition(s, "Progressing")).To(gomega.Equal("False Blocked " + s.Status.Message))
	})
	now := &appsv1.Deployment{}
	w.get(w, "shop", now)
	if now.Generation != first.Generation {
		t.Error("a selection that makes no sense was rolled out")
	}
	// Another valid selection is rolled out.
	selected.Data["selection.yaml"] = "packages: [{name: oil}]"
	if err := w.Update(t.Context(), selected); err != nil {
		t.Fatal(err)
	}
	w.rolledOut("shop", 2, serves("serve", gomega.HavePrefix("/extracted-catalog/"), `--selection={"packages":[{"name":"oil"}]}`))
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Reason).To(gomega.BeEmpty(), s.Status.Message)
	})
}

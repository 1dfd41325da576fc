package suite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// settingsValid returns the value of the metric about the settings for image registries.
func settingsValid(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "chandlery_image_settings_valid" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no metric")
	return 0
}

// TestInvalidImageSettings breaks a drop-in file of registries.conf, and corrects it. One catalog has invalid settings of its
// own from the start.
func TestInvalidImageSettings(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "mirrors.registries.conf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rules"}, Data: map[string]string{"registries.conf": text}}
	}
	const valid, broken = "[[registry]]\nlocation = \"source.test\"\n", "[[registry]]\nlocation = \"source.test\"\n[[registry\n"
	write(valid)
	own := fixtures.ServedCatalog(w.Namespace, "own", "127.0.0.1:1")
	own.Annotations = map[string]string{api.AnnotationImageConfig: "rules"}
	w.Create(rules(broken), own, goods("goods"), ofConfigMap("inline", "goods"),
		catalog("shop", registry.host+"/shop:1"), fixtures.ServedCatalog(w.Namespace, "remote", "127.0.0.1:1"))
	w.supervise(func(c *catalogsource.Config) { c.Registries.Config = dir })
	has := func(named string, want gomega.OmegaMatcher) {
		t.Helper()
		w.becomes(named, func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
			g.Expect(condition(s, api.ConditionImageSettingsInvalid)).To(want, named)
		})
	}
	has("own", gomega.And(gomega.HavePrefix("True InvalidFiles settings for image registries are invalid, so that no images of the catalog are pulled: "),
		gomega.ContainSubstring("ConfigMap "+w.Namespace+"/rules")))
	for _, named := range []string{"shop", "inline"} {
		w.rolledOut(named, 2)
		has(named, gomega.BeEmpty())
	}
	w.Expect(settingsValid(t)).To(gomega.BeEquivalentTo(1))
	corrected := rules("")
	corrected.Namespace = w.Namespace
	w.Modify(corrected, func() { corrected.Data = rules(valid).Data })
	has("own", gomega.BeEmpty())

	write(broken)
	for _, named := range []string{"shop", "remote", "own"} {
		has(named, gomega.And(gomega.HavePrefix("True InvalidFiles settings for image registries are invalid, and the last valid ones stay in use: "),
			gomega.MatchRegexp(`mirrors\.registries\.conf, line \d+: `)))
	}
	w.Expect(settingsValid(t)).To(gomega.BeZero())
	has("inline", gomega.BeEmpty())
	w.rolledOut("shop", 2)

	write(valid)
	for _, named := range []string{"shop", "remote", "own"} {
		has(named, gomega.BeEmpty())
	}
	w.Expect(settingsValid(t)).To(gomega.BeEquivalentTo(1))
}

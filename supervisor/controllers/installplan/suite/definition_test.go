package suite_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/controlplane"
)

// lamps returns the definition of a test with a schema of spec for each version.
func (w *world) lamps(specs map[string]string) *apiextensionsv1.CustomResourceDefinition {
	group := w.Namespace + ".example"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "lamps." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps", Kind: "lamp"},
		},
	}
	for _, version := range []string{"v1", "v2"} {
		if _, ok := specs[version]; ok {
			crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
				Name: version, Served: true, Storage: len(crd.Spec.Versions) == 0,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": schemaOf(w.T, specs[version])},
				}},
			})
		}
	}
	return crd
}

// served creates a definition and waits until its kind is served.
func (w *world) served(crd *apiextensionsv1.CustomResourceDefinition) {
	w.T.Helper()
	w.Create(crd)
	w.Eventually(func(g gomega.Gomega) {
		found := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(w.Get(w.T.Context(), client.ObjectKeyFromObject(crd), found)).To(gomega.Succeed())
		g.Expect(found.Status.Conditions).To(gomega.ContainElement(gomega.And(
			gomega.HaveField("Type", apiextensionsv1.Established), gomega.HaveField("Status", apiextensionsv1.ConditionTrue))))
	}).Should(gomega.Succeed())
}

func (w *world) lamp(name, colour string) *unstructured.Unstructured {
	w.T.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"colour": colour}}}
	u.SetAPIVersion(w.Namespace + ".example/v1")
	u.SetKind("lamp")
	u.SetNamespace(w.Namespace)
	u.SetName(name)
	w.Eventually(func() error { return w.Client.Create(w.T.Context(), u) }).Should(gomega.Succeed())
	return u
}

func (w *world) definition() *apiextensionsv1.CustomResourceDefinition {
	w.T.Helper()
	found := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(w.T.Context(), client.ObjectKey{Name: "lamps." + w.Namespace + ".example"}, found); err != nil {
		w.T.Fatal(err)
	}
	return found
}

const (
	anything = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	coloured = `{"type":"object","required":["colour","power"],"properties":{"colour":{"type":"string","enum":["red","green"]},"power":{"type":"integer","default":1}}}`
)

// expectNothingCreated checks that a refused plan has changed nothing.
func (w *world) expectNothingCreated() {
	w.T.Helper()
	versions := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := w.List(w.T.Context(), versions, client.InNamespace(w.Namespace)); err != nil || len(versions.Items) != 0 {
		w.T.Errorf("versions %v, error %v", versions.Items, err)
	}
}

// TestStoredVersionIsNotDropped brings a definition that lacks a stored version.
func TestStoredVersionIsNotDropped(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.served(w.lamps(map[string]string{"v1": anything}))
	w.supervise(time.Second)
	w.plan(w.bundle(text(t, w.lamps(map[string]string{"v2": anything}))), true, plansteps.MaxInline)
	p := w.reaches(failed)
	if c := installed(p); !strings.Contains(c.Message, fmt.Sprintf(`risk of data loss updating "lamps.%s.example": new CRD removes version v1 that is listed as a stored version on the existing CRD`, w.Namespace)) {
		t.Errorf("condition %+v", c)
	}
	w.expectNothingCreated()
}

// TestExistingObjectsStayValid brings a schema that rejects an existing object, until the object is
// fixed. The controller may list objects of the kind only for the check.
func TestExistingObjectsStayValid(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		t.Run(fmt.Sprintf("trusted %v", trusted), func(t *testing.T) {
			w := newWorld(t)
			w.Create(w.group("group"))
			w.served(w.lamps(map[string]string{"v1": anything}))
			w.lamp("good", "red")
			bad := w.lamp("bad", "blue")
			if !trusted {
				w.UseDeployedRole()
			}
			w.supervise(time.Second)
			w.plan(w.bundle(text(t, w.lamps(map[string]string{"v1": coloured}))), true, plansteps.MaxInline)
			says := fmt.Sprintf(`error validating existing CRs against new CRD's schema for "lamps.%[1]s.example": error validating %[1]s.example/v1, Kind=lamp "%[1]s/bad": updated validation is too restrictive: spec.colour`, w.Namespace)
			w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool { return strings.Contains(p.Status.Message, says) })
			w.expectNothingCreated()
			p := w.reaches(failed)
			if !strings.Contains(installed(p).Message, says) {
				t.Errorf("condition %+v", installed(p))
			}
			if err := w.Patch(t.Context(), bad, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"colour":"green"}}`))); err != nil {
				t.Fatal(err)
			}
			w.reaches(complete)
			roles := &rbacv1.ClusterRoleList{}
			if err := w.List(t.Context(), roles, client.HasLabels{"chandlery.dev/borrowed"}); err != nil || len(roles.Items) > 0 {
				t.Errorf("rights that are left: %v, error %v", roles.Items, err)
			}
		})
	}
}

// TestConversionIsKept brings a definition without conversion over one whose webhook works.
func TestConversionIsKept(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	crd := w.lamps(map[string]string{"v1": anything, "v2": anything})
	certificate := controlplane.Get(t).Config().CAData
	url := "https://hook.example/convert"
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: certificate},
		},
	}
	w.served(crd)
	w.supervise(time.Minute)
	bundled := w.lamps(map[string]string{"v1": anything, "v2": anything})
	bundled.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	bundled.Labels = map[string]string{"bundled": "yes"}
	w.plan(w.bundle(text(t, bundled)), true, plansteps.MaxInline)
	w.reaches(complete)
	found := w.definition()
	if c := found.Spec.Conversion; c == nil || c.Strategy != apiextensionsv1.WebhookConverter || !bytes.Equal(c.Webhook.ClientConfig.CABundle, certificate) || found.Labels["bundled"] != "yes" {
		t.Errorf("labels %v, conversion %+v", found.Labels, c)
	}
}

// TestDefinitionNamesItsVersions has a definition that two versions and a deleted one
// share.
func TestDefinitionNamesItsVersions(t *testing.T) {
	w := newWorld(t)
	w.version("tray.v1", "tray")
	w.Create(w.group("group"))
	crd := w.lamps(map[string]string{"v1": anything})
	w.served(crd)
	w.supervise(time.Minute)
	// An earlier installation wrote this.
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	u.SetName(crd.Name)
	u.SetAnnotations(map[string]string{
		"operatorframework.io/installed-alongside-1": w.Namespace + "/tray.v1",
		"operatorframework.io/installed-alongside-2": w.Namespace + "/gone.v1",
	})
	if err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("chandlery-supervisor")); err != nil {
		t.Fatal(err)
	}
	w.plan(w.bundle(text(t, crd)), true, plansteps.MaxInline)
	w.reaches(complete)
	var got []string
	for key, value := range w.definition().Annotations {
		if strings.HasPrefix(key, "operatorframework.io/installed-alongside-") {
			got = append(got, value)
		}
	}
	w.Expect(got).To(gomega.ConsistOf(w.Namespace+"/tray.v1", w.Namespace+"/lamp.v1"))
}

// TestNewerDefinitionStays installs an older version of an operator whose newer version is in
// another namespace. The older definition lacks fields that the newer one stores. A second bundle
// asks for a version of the API that the newer one has dropped.
func TestNewerDefinitionStays(t *testing.T) {
	w := newWorld(t)
	elsewhere := w.Namespace + "-newer"
	newer := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: elsewhere, Name: "lamp.v2",
		Annotations: map[string]string{api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"2.0.0"}}]}`},
	}}
	newer.Spec.DisplayName, newer.Spec.InstallStrategy.StrategyName = "Lamp", "deployment"
	newer.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{}
	newer.Spec.Version.Version = semver.MustParse("2.0.0")
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}}, newer, w.group("group"))
	const full, half = `{"type":"object","properties":{"colour":{"type":"string"},"watts":{"type":"integer"}}}`, `{"type":"object","properties":{"watts":{"type":"integer"}}}`
	crd := w.lamps(map[string]string{"v1": full})
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": elsewhere + "/lamp.v2"}
	w.served(crd)
	mine := w.lamp("mine", "green")
	w.supervise(time.Minute)
	older := w.bundle(text(t, w.lamps(map[string]string{"v1": half})))
	older.Properties = []plansteps.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}}
	w.plan(older, true, plansteps.MaxInline)
	w.reaches(complete)
	w.Expect(w.definition().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties).To(gomega.HaveKey("colour"))
	var with []string
	for key, value := range w.definition().Annotations {
		if strings.HasPrefix(key, "operatorframework.io/installed-alongside-") {
			with = append(with, value)
		}
	}
	w.Expect(with).To(gomega.ContainElements(elsewhere+"/lamp.v2", w.Namespace+"/lamp.v1"))
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(mine), mine)).To(gomega.Succeed())
	w.Expect(mine.Object["spec"]).To(gomega.HaveKeyWithValue("colour", "green"))

	w.Expect(w.Delete(t.Context(), w.read())).To(gomega.Succeed())
	older.Objects[1] = text(t, w.lamps(map[string]string{"v1": half, "v2": half}))
	w.plan(older, true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "serves v1 for ClusterServiceVersion "+elsewhere+"/lamp.v2, and not v2, which lamp.v1 needs")
	})
}

// TestOldDefinitionIsRefused brings a definition of the removed API version.
func TestOldDefinitionIsRefused(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.supervise(time.Hour)
	w.plan(w.bundle(strings.Replace(w.crd(), "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1)), true, plansteps.MaxInline)
	p := w.reaches(failed)
	for _, text := range []string{
		"GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition not found on the cluster.",
		"; ask the author of lamp.v1 for a bundle whose CustomResourceDefinitions are of apiextensions.k8s.io/v1",
	} {
		if !strings.Contains(installed(p).Message, text) {
			t.Errorf("condition %+v, want %q", installed(p), text)
		}
	}
	w.expectNothingCreated()
}

package suite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// ownNamespace creates an OperatorGroup that targets its own namespace.
func (w *world) ownNamespace() {
	w.T.Helper()
	group := w.group("group")
	group.Spec.TargetNamespaces = []string{w.Namespace}
	w.Create(group)
}

// hooked gives a definition a conversion webhook.
func hooked(crd *apiextensionsv1.CustomResourceDefinition, to apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"}, ClientConfig: &to},
	}
	return crd
}

// specOf returns the spec of a definition; empty where there is none.
func (w *world) specOf(name string) apiextensionsv1.CustomResourceDefinitionSpec {
	w.T.Helper()
	found := &apiextensionsv1.CustomResourceDefinition{}
	err := client.IgnoreNotFound(w.Get(w.T.Context(), client.ObjectKey{Name: name}, found))
	if err != nil {
		w.T.Fatal(err)
	}
	return found.Spec
}

// ofTray creates a definition of another package, and returns the one of a bundle.
func ofTray(w *world) *apiextensionsv1.CustomResourceDefinition {
	w.version("tray.v1", "tray")
	crd := w.lamps(map[string]string{"v1": anything})
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": w.Namespace + "/tray.v1"}
	w.createCRD(crd, "catalog")
	return w.lamps(map[string]string{"v1": coloured})
}

// TestBoundedBundleCannotRewriteCRDs has bundles in a group for one namespace that bring foreign
// definitions. Their plans fail at once, and nothing changes. The controller has the permissions of
// deploy/rbac, with which it could change them.
func TestBoundedBundleCannotRewriteCRDs(t *testing.T) {
	attacker := "https://attacker.example/convert"
	for name, tt := range map[string]struct {
		// brings creates the live definition and returns the one in the bundle.
		brings func(w *world) *apiextensionsv1.CustomResourceDefinition
		// replaces is the version that the bundle replaces.
		replaces string
		says     string
	}{
		"the supervisor's own": {
			brings: func(w *world) *apiextensionsv1.CustomResourceDefinition {
				crd := &apiextensionsv1.CustomResourceDefinition{}
				if err := w.Get(w.T.Context(), client.ObjectKey{Name: "subscriptions.operators.coreos.com"}, crd); err != nil {
					w.T.Fatal(err)
				}
				return hooked(crd, apiextensionsv1.WebhookClientConfig{URL: &attacker})
			},
			says: "a bundle must not define kinds of the group operators.coreos.com, on which the supervisor depends; ask the author of lamp.v1 to remove it",
		},
		"a conversion at a URL": {
			brings: func(w *world) *apiextensionsv1.CustomResourceDefinition {
				return hooked(w.lamps(map[string]string{"v1": anything}), apiextensionsv1.WebhookClientConfig{URL: &attacker})
			},
			says: "spec.conversion.webhook.clientConfig.url is set",
		},
		"a conversion in another namespace": {
			brings: func(w *world) *apiextensionsv1.CustomResourceDefinition {
				to := apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "kube-system", Name: "hook"}}
				return hooked(w.lamps(map[string]string{"v1": anything}), to)
			},
			says: "spec.conversion.webhook names Service kube-system/hook, which is outside the namespace",
		},
		"an administrator's": {
			brings: func(w *world) *apiextensionsv1.CustomResourceDefinition {
				w.served(w.lamps(map[string]string{"v1": anything}))
				return w.lamps(map[string]string{"v1": coloured})
			},
			says: "not by a lifecycle manager of operators; install lamp.v1 where the OperatorGroup targets all namespaces and names no service account",
		},
		"another package's": {brings: ofTray, says: "/tray.v1; install lamp.v1 where"},
		"that of another package which it says it replaces": {brings: ofTray, replaces: "tray.v1", says: "/tray.v1; install lamp.v1 where"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ownNamespace()
			bundled := tt.brings(w)
			before := w.specOf(bundled.Name)
			w.UseDeployedRole()
			w.supervise(time.Hour)
			b := w.bundle(text(t, bundled))
			b.Replaces = tt.replaces
			w.plan(b, true, plansteps.MaxInline)
			p := w.reaches(failed)
			says := "error applying CustomResourceDefinition " + bundled.Name + " of lamp.v1: CustomResourceDefinition " + bundled.Name + " is refused ("
			if c := installed(p); !strings.HasPrefix(c.Message, says) || !strings.Contains(c.Message, tt.says) {
				t.Errorf("condition %+v", c)
			}
			if diff := cmp.Diff(before, w.specOf(bundled.Name)); diff != "" {
				t.Errorf("the definition has changed (-before +after):\n%s", diff)
			}
			versions := &operatorsv1alpha1.ClusterServiceVersionList{}
			if err := w.List(t.Context(), versions, client.InNamespace(w.Namespace)); err != nil {
				t.Fatal(err)
			}
			for i := range versions.Items {
				if versions.Items[i].Name == "lamp.v1" {
					t.Error("the ClusterServiceVersion was made")
				}
			}
		})
	}
}

// createCRD creates a definition as another field manager.
func (w *world) createCRD(crd *apiextensionsv1.CustomResourceDefinition, manager string) {
	w.T.Helper()
	if err := w.Client.Create(w.T.Context(), crd, client.FieldOwner(manager)); err != nil {
		w.T.Fatal(err)
	}
}

// TestRefusedCRDContinuesAfterRelease installs beside the definition of another package, which is
// then uninstalled.
func TestRefusedCRDContinuesAfterRelease(t *testing.T) {
	w := newWorld(t)
	w.ownNamespace()
	tray := w.version("tray.v1", "tray")
	crd := w.lamps(map[string]string{"v1": anything})
	crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": w.Namespace + "/tray.v1"}
	w.createCRD(crd, "catalog")
	w.supervise(time.Hour)
	w.plan(w.bundle(text(t, w.lamps(map[string]string{"v1": coloured}))), true, plansteps.MaxInline)
	w.reaches(failed)
	w.Expect(w.Delete(t.Context(), tray)).To(gomega.Succeed())
	w.reaches(complete)
}

// TestForeignCRDIsUsedAsItIs has bundles that bring a definition of an administrator. An equal one
// stays the administrator's in a bounded group. A different one is written in a group that targets
// all namespaces.
func TestForeignCRDIsUsedAsItIs(t *testing.T) {
	t.Run("bounded", func(t *testing.T) {
		w := newWorld(t)
		w.ownNamespace()
		w.served(w.lamps(map[string]string{"v1": anything}))
		before := w.definition()
		w.supervise(time.Hour)
		w.plan(w.bundle(text(t, w.lamps(map[string]string{"v1": anything}))), true, plansteps.MaxInline)
		if got := statuses(w.reaches(complete)); got[1] != "CustomResourceDefinition=Present" {
			t.Errorf("steps %v", got)
		}
		if after := w.definition(); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("annotations %v", after.Annotations)
		}
	})
	t.Run("unbounded", func(t *testing.T) {
		w := newWorld(t)
		w.Create(w.group("group"))
		w.served(w.lamps(map[string]string{"v1": anything}))
		w.supervise(time.Hour)
		w.plan(w.bundle(text(t, w.lamps(map[string]string{"v1": coloured}))), true, plansteps.MaxInline)
		w.reaches(complete)
		if _, has := w.definition().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["colour"]; !has {
			t.Error("the definition has not changed")
		}
	})
}

// TestBundleCannotConvertForeignCRDs declares a conversion webhook for a definition of an
// administrator that the bundle lacks, in a group with a service account.
func TestBundleCannotConvertForeignCRDs(t *testing.T) {
	w := newWorld(t)
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.Create(group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}})
	w.served(w.lamps(map[string]string{"v1": anything}))
	w.UseDeployedRole()
	w.supervise(time.Hour)
	b := w.bundle()
	b.Objects[0] = strings.Replace(b.Objects[0], `"version":"1.0.0"`,
		`"version":"1.0.0","webhookdefinitions":[{"type":"ConversionWebhook","generateName":"c","conversionCRDs":["lamps.`+w.Namespace+`.example"]}]`, 1)
	w.plan(b, true, plansteps.MaxInline)
	c := installed(w.reaches(failed))
	if says := "CustomResourceDefinition lamps." + w.Namespace + ".example is refused (ForeignManager): it was created by field manager "; !strings.Contains(c.Message, says) {
		t.Errorf("condition %+v", c)
	}
	w.expectNothingCreated()
}

// TestCRDAsServiceAccount writes definitions with the account of a group, as with the flag
// --crd-as-service-account.
func TestCRDAsServiceAccount(t *testing.T) {
	w := newWorld(t)
	w.crdAsAccount = true
	group := w.group("group")
	group.Spec.ServiceAccountName = "installer"
	w.Create(group, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "installer"}})
	w.grant("installer",
		rule(operatorsv1alpha1.GroupName, "clusterserviceversions", "create"),
		rule("", "serviceaccounts", "create", "update", "patch"), rule("", "pods", "get"),
		rule(rbacv1.GroupName, "roles", "create", "update", "patch"), rule(rbacv1.GroupName, "rolebindings", "create", "update", "patch"))
	w.UseDeployedRole()
	w.supervise(time.Hour)
	w.plan(w.bundle(w.crd()), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == working && strings.Contains(p.Status.Message, `resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`) &&
			strings.Contains(p.Status.Message, "system:serviceaccount:"+w.Namespace+":installer") && causedBy(p, refusal.PermissionDenied, "grant ServiceAccount "+w.Namespace+"/installer this permission, or remove spec.serviceAccountName from OperatorGroup "+w.Namespace+"/group; the plan then continues automatically")
	})
	w.Create(fixtures.ClusterRole("definer-"+w.Namespace, fixtures.ServiceAccount(w.Namespace, "installer"),
		rule("apiextensions.k8s.io", "customresourcedefinitions", "create", "update", "patch"))...)
	w.reaches(complete)
}

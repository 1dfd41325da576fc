package inventory_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/inventory"
	"github.com/chandlery/chandlery/test/testenv"
)

// TestSeesWhatIsLeft leaves traces as an operator could, without an operator, and checks that the
// inventory shows them.
func TestSeesWhatIsLeft(t *testing.T) {
	b := connect(t)
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "traces", Name: name} }
	kept, goes := &corev1.ConfigMap{ObjectMeta: in("kept")}, &corev1.ConfigMap{ObjectMeta: in("goes")}
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "traces"}}, kept, goes, cups())
	testenv.Until(b.t, patience, "the namespace to be complete", func(ctx context.Context) string {
		now, err := b.lister.List(ctx)
		if err != nil {
			return err.Error()
		}
		for _, name := range []string{"ServiceAccount traces/default", "ConfigMap traces/kube-root-ca.crt", "APIService.apiregistration.k8s.io v1.traces.example"} {
			if _, there := now[name]; !there {
				return "there is no " + name
			}
		}
		return ""
	})
	before, err := b.lister.List(t.Context())
	must(t, err)
	said, err := b.lister.ListContents(t.Context())
	must(t, err)

	cup := object("traces.example/v1", "Cup", "traces", "left")
	silent := object("apiregistration.k8s.io/v1", "APIService", "", "v1.silent.example")
	silent.Object["spec"] = map[string]any{
		"group": "silent.example", "version": "v1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "traces", "name": "nobody"},
	}
	b.create(cup, silent,
		&corev1.Secret{ObjectMeta: in("left")},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "left"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "left"}})
	t.Cleanup(func() { must(t, client.IgnoreNotFound(b.Delete(context.WithoutCancel(t.Context()), silent))) })
	must(t, b.Delete(t.Context(), goes))
	kept.Labels = map[string]string{"marked": ""}
	kept.Data = map[string]string{"written": "to"}
	must(t, b.Update(t.Context(), kept))

	expected := map[string]bool{"Secret traces/left": true, "Secret traces/missed": true}
	want := []string{
		"left over: APIGroup silent.example/v1", "left over: APIService.apiregistration.k8s.io v1.silent.example",
		"left over: ClusterRole.rbac.authorization.k8s.io left", "changed: ConfigMap traces/kept", "left over: Cup.traces.example traces/left",
		"left over: ValidatingWebhookConfiguration.admissionregistration.k8s.io left",
		"gone: ConfigMap traces/goes", "gone, though it ought to stay: Secret traces/missed",
	}
	testenv.Until(b.t, patience, "all of it to be seen", func(ctx context.Context) string {
		now, err := b.lister.List(ctx)
		if err != nil {
			return err.Error()
		}
		return unlike(inventory.Difference(before, now, expected), want)
	})
	now, err := b.lister.ListContents(t.Context())
	must(t, err)
	if changes := inventory.Difference(said, now, nil); !strings.Contains(changes, `changed: ConfigMap traces/kept from {"apiVersion":"v1","kind":"ConfigMap"} to {`) {
		t.Errorf("of what was written to a ConfigMap the contents say\n%s", changes)
	}
}

// unlike returns how a difference deviates from the wanted one; empty for nothing.
func unlike(difference string, want []string) string {
	lines := strings.Split(difference, "\n")
	same := func(line, wanted string) bool { return strings.HasPrefix(line+" ", wanted+" ") }
	if slices.EqualFunc(lines, want, same) {
		return ""
	}
	return "the difference is\n" + difference
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func cups() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "cups.traces.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "traces.example", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "cups", Singular: "cup", Kind: "Cup", ListKind: "CupList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

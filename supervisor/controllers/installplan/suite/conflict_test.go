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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// version creates a ClusterServiceVersion of a package that owns some definitions.
func (w *world) version(name, pkg string, owned ...string) *operatorsv1alpha1.ClusterServiceVersion {
	w.T.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: name,
		Annotations: map[string]string{api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`},
	}}
	csv.Spec.DisplayName = name
	csv.Spec.InstallStrategy.StrategyName = "deployment"
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{}
	for _, crd := range owned {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{Name: crd, Kind: "lamp", Version: "v1"})
	}
	w.Create(csv)
	return csv
}

func ownedBy(csv *operatorsv1alpha1.ClusterServiceVersion) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: csv.Name, UID: csv.UID,
	}}
}

// TestObjectOfAnotherOperatorIsLeftAlone has a ConfigMap of the bundle that another operator owns
// until it is deleted.
func TestObjectOfAnotherOperatorIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	tray := w.version("tray.v1", "tray")
	w.Create(w.group("group"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings", OwnerReferences: ownedBy(tray)}})
	w.supervise(time.Second)
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	const says = "error applying ConfigMap settings of lamp.v1: it does not belong to this operator: ConfigMap "
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, says) && strings.Contains(p.Status.Message, "belongs to ClusterServiceVersion "+w.Namespace+"/tray.v1")
	})
	if p := w.reaches(failed); !strings.Contains(installed(p).Message, says) || !strings.Contains(installed(p).Message, "remove one of the two operators") {
		t.Errorf("condition %+v", installed(p))
	}
	if found := w.settings(); len(found.OwnerReferences) != 1 || found.Data != nil {
		t.Errorf("the object was touched: %+v", found)
	}
	// A failed plan continues too.
	if err := w.Delete(t.Context(), tray); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

// TestVersionThatReplacesTakesOver has a ConfigMap that the replaced version owns.
func TestVersionThatReplacesTakesOver(t *testing.T) {
	for _, tt := range []struct{ name, pkg, replaces string }{{"lamp.v0", "lamp", ""}, {"light.v0", "", "light.v0"}} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			before := w.version(tt.name, tt.pkg)
			held := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings", OwnerReferences: ownedBy(before)},
				Data:       map[string]string{"a": "old", "dropped": "by the new version"},
			}
			w.Create(w.group("group"), held)
			// A client that does not manage operators adds a key.
			held.Data["theirs"] = "kept"
			if err := w.Update(t.Context(), held, client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
			w.supervise(time.Minute)
			b := w.bundle(settings)
			b.Replaces = tt.replaces
			b.Properties = []plansteps.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}}
			w.plan(b, true, plansteps.MaxInline)
			w.reaches(complete)
			found := w.settings()
			if diff := cmp.Diff(map[string]string{"a": "b", "theirs": "kept"}, found.Data); diff != "" || len(found.OwnerReferences) != 2 {
				t.Errorf("owners %v, data (-want +got):\n%s", found.OwnerReferences, diff)
			}
		})
	}
}

// TestDefinitionOfAnotherOperatorIsLeftAlone has another operator that owns the definition of the
// new one: the plan creates nothing.
func TestDefinitionOfAnotherOperatorIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	name := "lamps." + w.Namespace + ".example"
	tray := w.version("tray.v1", "tray", name)
	w.Create(w.group("group"))
	w.supervise(time.Hour)
	b := w.bundle(w.crd())
	b.Objects[0] = strings.Replace(b.Objects[0], `"displayName"`, `"customresourcedefinitions":{"owned":[{"name":"`+name+`","kind":"lamp","version":"v1"}]},"displayName"`, 1)
	w.plan(b, true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "pre-existing CRD owners found for owned CRD(s) of dependent CSV lamp.v1: "+name+" is owned by ClusterServiceVersion tray.v1")
	})
	versions := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := w.List(t.Context(), versions, client.InNamespace(w.Namespace)); err != nil || len(versions.Items) != 1 {
		t.Errorf("versions %v, error %v", versions.Items, err)
	}
	if err := w.Delete(t.Context(), tray); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
}

// TestFieldsOfOtherClientsAreKept applies objects over existing ones that other clients created or changed.
func TestFieldsOfOtherClientsAreKept(t *testing.T) {
	w := newWorld(t)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Annotations: map[string]string{"theirs": "kept"}}
	}
	service := &corev1.Service{ObjectMeta: meta("lamp"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	w.Create(w.group("group"), service,
		&corev1.ServiceAccount{ObjectMeta: meta("lamp"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}, Secrets: []corev1.ObjectReference{{Name: "token"}}},
		&rbacv1.RoleBinding{ObjectMeta: meta("reads"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "theirs"}},
	)
	w.supervise(time.Hour)
	w.plan(w.bundle(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lamp"},"spec":{"clusterIP":"None","ports":[{"port":80},{"port":81,"name":"more"}]}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"lamp"},"imagePullSecrets":[{"name":"ours"}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"reads"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"ours"}}`,
	), true, plansteps.MaxInline)
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "error applying RoleBinding reads of lamp.v1: it does not belong to this operator: its roleRef cannot be changed")
	})
	if err := w.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "reads"}}); err != nil {
		t.Fatal(err)
	}
	// The API server refuses a Service port without a name beside another. The mistake is in the
	// bundle, and a user fixes it here.
	w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
		return strings.Contains(p.Status.Message, "error applying Service lamp of lamp.v1") && strings.Contains(p.Status.Message, "name: Required value")
	})
	if err := w.Patch(t.Context(), service, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/ports/0/name","value":"first"}]`))); err != nil {
		t.Fatal(err)
	}
	w.reaches(complete)
	w.Eventually(func(g gomega.Gomega) {
		account, found := &corev1.ServiceAccount{}, &corev1.Service{}
		key := client.ObjectKey{Namespace: w.Namespace, Name: "lamp"}
		g.Expect(w.Get(t.Context(), key, account)).To(gomega.Succeed())
		g.Expect(w.Get(t.Context(), key, found)).To(gomega.Succeed())
		g.Expect(account.ImagePullSecrets).To(gomega.ConsistOf(gomega.HaveField("Name", "ours"), gomega.HaveField("Name", "theirs")))
		g.Expect(account.Secrets).To(gomega.HaveLen(1))
		g.Expect(account.Annotations).To(gomega.HaveKeyWithValue("theirs", "kept"))
		g.Expect(found.Spec.ClusterIP).To(gomega.Equal(service.Spec.ClusterIP))
		g.Expect(found.Spec.Ports).To(gomega.HaveLen(2))
	}).Should(gomega.Succeed())
}

// TestOwnBindingIsRecreated changes the role of a binding between two versions, which the API
// does not allow.
func TestOwnBindingIsRecreated(t *testing.T) {
	w := newWorld(t)
	before := w.version("lamp.v0", "lamp")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "reads", OwnerReferences: ownedBy(before)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "old"},
	}
	w.Create(w.group("group"), binding)
	w.supervise(time.Hour)
	b := w.bundle(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"reads"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"new"}}`)
	b.Replaces = "lamp.v0"
	w.plan(b, true, plansteps.MaxInline)
	w.reaches(complete)
	found := &rbacv1.RoleBinding{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(binding), found); err != nil || found.RoleRef.Name != "new" || found.UID == binding.UID {
		t.Errorf("binding %+v, error %v", found, err)
	}
}

// TestOutsideTheNamespace has a ClusterRole with the name in the bundle that a version elsewhere
// owns.
func TestOutsideTheNamespace(t *testing.T) {
	for _, tt := range []struct {
		reason, pkg string
		refused     bool
	}{{reason: "the same operator shares it", pkg: "lamp"}, {reason: "another operator keeps it", pkg: "tray", refused: true}} {
		t.Run(tt.reason, func(t *testing.T) {
			elsewhere, w := newWorld(t), newWorld(t)
			other := elsewhere.version("other.v1", tt.pkg)
			name := "metrics-" + w.Namespace
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: plansteps.OwnerLabels(other.Name, elsewhere.Namespace)}}
			w.Create(w.group("group"), role)
			w.supervise(time.Hour)
			b := w.bundle(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"` + name + `"},"rules":[]}`)
			b.Properties = []plansteps.Property{{Type: "olm.package", Value: `{"packageName":"lamp","version":"1.0.0"}`}}
			w.plan(b, true, plansteps.MaxInline)
			if !tt.refused {
				w.reaches(complete)
				return
			}
			w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
				return strings.Contains(p.Status.Message, "ClusterRole "+name+" belongs to ClusterServiceVersion "+elsewhere.Namespace+"/other.v1")
			})
		})
	}
}

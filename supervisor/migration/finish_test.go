package migration

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// helmRecord returns a Secret in which Helm records a release of a chart.
func helmRecord(t *testing.T, name, chart string) *corev1.Secret {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"name":"olm","chart":{"metadata":{"name":"` + chart + `"}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"owner": "helm", "name": "olm"}},
		Type:       helmSecret, Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

// TestFinishObjects checks which objects a removal of OLM deletes: its package server only while supervisors serve the API, and
// Helm's records only of its own chart.
func TestFinishObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, operatorsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	deployment := func(namespace, name string, labels, annotations map[string]string, args ...string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Args: args}}
		return d
	}
	release := map[string]string{"meta.helm.sh/release-name": "olm", "meta.helm.sh/release-namespace": "default"}
	taken := deployment("olm", "olm-operator", map[string]string{api.LabelTakenOver: "1"}, release)
	server := deployment("olm", competing.OLMPackageServer, nil, nil)
	server.OwnerReferences = []metav1.OwnerReference{{Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: "packageserver"}}
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "packageserver"}}
	service := func(labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1.packages.operators.coreos.com", "labels": labels},
		}}
	}
	ours := map[string]any{"app.kubernetes.io/part-of": "chandlery"}
	supervisors := func(args ...string) *appsv1.Deployment {
		return deployment("chandlery-system", "chandlery-supervisor", map[string]string{labelSupervisor: api.LeaseName}, nil, args...)
	}
	const removed, recorded, operator = "ClusterServiceVersion olm/packageserver", "Secret default/release", "Deployment olm/olm-operator"
	for name, tt := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"Served":       {[]client.Object{supervisors(), service(ours)}, []string{removed, operator}},
		"NotYetServed": {[]client.Object{supervisors(), service(nil)}, []string{operator}},
		"Disabled":     {[]client.Object{supervisors("--packagemanifests=disabled"), service(ours)}, []string{operator}},
		"Apart": {
			[]client.Object{
				supervisors("--packagemanifests=disabled"), service(ours), deployment("chandlery-system", "packages", nil, nil, "--packagemanifests=only"),
			},
			[]string{removed, operator},
		},
		"Helm":       {[]client.Object{supervisors(), helmRecord(t, "release", "olm")}, []string{recorded, operator}},
		"OtherChart": {[]client.Object{supervisors(), helmRecord(t, "release", "platform")}, []string{operator}},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tt.objects, taken.DeepCopy(), server.DeepCopy(), version.DeepCopy())...).Build()
		f := &Finish{Options: Options{Config: competing.Config{Client: c, Namespace: "chandlery-system"}}}
		found, err := f.objects(t.Context(), &Record{Deployments: []ScaledDeployment{{Namespace: "olm", Name: "olm-operator"}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range found {
			got = append(got, objectKey(o))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if chartOf([]byte("no base64")) != "" || chartOf([]byte(base64.StdEncoding.EncodeToString([]byte("no gzip")))) != "" {
		t.Error("a damaged record has a chart")
	}
}

// guardedOLM returns the objects of OLM v0.46.0 after a takeover, with its NetworkPolicies and permissions, and those of others.
func guardedOLM() []client.Object {
	policy := func(namespace, name string, selector metav1.LabelSelector) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: networkingv1.NetworkPolicySpec{PodSelector: selector}}
	}
	app := func(name string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	deployment := func(name string, labels map[string]string) *appsv1.Deployment {
		selector := app(name)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{Selector: &selector}}
		d.Spec.Template.Spec.ServiceAccountName = "olm-operator-serviceaccount"
		return d
	}
	binding := func(name, account string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:controller:operator-lifecycle-manager"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "olm", Name: account}},
		}
	}
	delegator := binding("packageserver-service.olm-system:auth-delegator", "olm-operator-serviceaccount")
	delegator.RoleRef.Name = "system:auth-delegator"
	delegator.Labels = map[string]string{
		api.LabelOwner: "packageserver", api.LabelOwnerNamespace: "olm", api.LabelOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind,
	}
	supervisors := deployment("chandlery-supervisor", map[string]string{labelSupervisor: api.LeaseName})
	supervisors.Namespace = "chandlery-system"
	server := deployment(competing.OLMPackageServer, nil)
	server.OwnerReferences = []metav1.OwnerReference{{Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: "packageserver"}}
	catalogs := policy("olm", "shop-grpc-server", app("shop"))
	catalogs.OwnerReferences = []metav1.OwnerReference{{Kind: operatorsv1alpha1.CatalogSourceKind, Name: "shop"}}
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.packages.operators.coreos.com", "labels": map[string]any{"app.kubernetes.io/part-of": "chandlery"}},
	}}
	exists := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: api.LabelUnpackRef, Operator: metav1.LabelSelectorOpExists}}}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator-serviceaccount"}},
		supervisors, server, service, deployment("olm-operator", map[string]string{api.LabelTakenOver: "1"}), catalogs,
		policy("olm", "olm-operator", app("olm-operator")), policy("olm", "packageserver", app("packageserver")),
		policy("olm", "default-deny-all-traffic", metav1.LabelSelector{}), policy("olm", "bundle-unpack-egress", exists),
		policy("lamps", "default-deny", metav1.LabelSelector{}),
		binding("olm-operator-binding-olm", "olm-operator-serviceaccount"), binding("lamp", "lamp"), delegator,
	}
}

// TestFinishGuards checks which NetworkPolicies and permissions of OLM v0.46.0 a removal deletes, and that the plan states
// what stays.
func TestFinishGuards(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme, operatorsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	common := guardedOLM()
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "packageserver"}}
	const (
		operator, around = "Deployment olm/olm-operator", "NetworkPolicy olm/olm-operator"
		stays            = "ServiceAccount olm/olm-operator-serviceaccount stays, because other pods may use it; it keeps the permissions of ClusterRole system:controller:operator-lifecycle-manager by ClusterRoleBinding olm-operator-binding-olm"
		account          = stays + "; to revoke them, run: kubectl delete clusterrolebinding olm-operator-binding-olm"
		both             = stays + ", and of ClusterRole system:auth-delegator by ClusterRoleBinding packageserver-service.olm-system:auth-delegator" +
			"; to revoke them, run: kubectl delete clusterrolebinding olm-operator-binding-olm packageserver-service.olm-system:auth-delegator"
	)
	for name, tt := range map[string]struct {
		objects       []client.Object
		deleted, left []string
	}{
		"PackageServerReplaced": {
			[]client.Object{version},
			[]string{"NetworkPolicy olm/packageserver", "ClusterServiceVersion olm/packageserver", around, operator},
			[]string{
				"NetworkPolicies bundle-unpack-egress, default-deny-all-traffic of namespace olm stay, because they may apply to pods of catalogs, to pods that pull bundle images, and to others that stay", account,
			},
		},
		"PackageServerStays": {
			nil,
			[]string{around, operator},
			[]string{
				"Deployment olm/packageserver stays until you delete ClusterServiceVersion packageserver; supervisors serve packages.operators.coreos.com",
				"NetworkPolicies bundle-unpack-egress, default-deny-all-traffic, packageserver of namespace olm stay, because they may apply to pods of catalogs, to pods that pull bundle images, and to others that stay", both,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, o := range append(tt.objects, common...) {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			f := &Finish{Options: Options{Config: competing.Config{
				Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string {
					return []string{o.GetName()}
				}).Build(), Namespace: "chandlery-system", Clock: clock.RealClock{},
			}}}
			record := &Record{Phase: TakenOver, Deployments: []ScaledDeployment{{Namespace: "olm", Name: "olm-operator"}}}
			if err := f.records().write(t.Context(), record, nil); err != nil {
				t.Fatal(err)
			}
			p, err := f.Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var deleted []string
			for _, op := range p.Operations {
				deleted = append(deleted, op.Kind+" "+op.Namespace+"/"+op.Name)
			}
			if diff := cmp.Diff(tt.deleted, deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, p.Left[1:]); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

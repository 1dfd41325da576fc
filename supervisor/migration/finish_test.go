package migration

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"slices"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

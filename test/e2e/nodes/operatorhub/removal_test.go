package operatorhub_test

import (
	"fmt"
	"path/filepath"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRemoval deletes the product with the manifest of the release. An operator keeps running, no APIService is left, and
// the same manifest brings the product back.
func TestRemoval(t *testing.T) {
	s := newScene(t)
	namespace := s.bed.Namespace(t)
	must(t, s.Create(t.Context(), &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}))
	must(t, s.Create(t.Context(), &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "buoy"},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: "buoy", Channel: "alpha", CatalogSource: "operatorhubio-catalog", CatalogSourceNamespace: "olm",
		},
	}))
	s.installed(namespace, "buoy", "buoy.v0.3.0")
	before := s.runningPod(namespace)

	manifests := filepath.Join(bin, "release")
	s.kubectl(nil, "delete", "-f", filepath.Join(manifests, "install.yaml"), "--timeout", patience.String())
	for _, o := range []client.Object{packagesAPIService(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}} {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left, or its read failed: %v", o, o.GetName(), err)
		}
	}
	must(t, s.Get(t.Context(), client.ObjectKey{Name: "clusterserviceversions.operators.coreos.com"}, &apiextensionsv1.CustomResourceDefinition{}))
	// The deletion of a namespace takes seconds, in which Kubernetes would also delete objects of the operator.
	s.kubectl(nil, "create", "namespace", "other")
	s.kubectl(nil, "delete", "namespace", "other", "--timeout=1m")
	if after := s.runningPod(namespace); after != before {
		t.Errorf("pod %s replaced %s of the operator", after, before)
	}

	s.kubectl(nil, "apply", "--server-side", "-k", filepath.Join(bin, "settings"))
	s.kubectl(nil, "--namespace", systemNamespace, "rollout", "status", "deployment/chandlery-supervisor", "--timeout", patience.String())
	s.published(namespace, "buoy")
	s.succeeded(namespace, "buoy.v0.3.0")
	if after := s.runningPod(namespace); after != before {
		t.Errorf("pod %s replaced %s of the operator", after, before)
	}
}

// packagesAPIService returns the name of the APIService of PackageManifests.
func packagesAPIService() client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: "v1.packages.operators.coreos.com"},
	}
}

// runningPod returns the name and UID of the only pod of a namespace, which must run.
func (s scene) runningPod(namespace string) string {
	s.t.Helper()
	pods := &corev1.PodList{}
	must(s.t, s.List(s.t.Context(), pods, client.InNamespace(namespace)))
	if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
		s.t.Fatalf("namespace %s has the pods %+v, want one that runs", namespace, pods.Items)
	}
	return fmt.Sprintf("%s (%s)", pods.Items[0].Name, pods.Items[0].UID)
}

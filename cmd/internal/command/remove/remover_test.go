package remove

import (
	"bytes"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// removerFor returns a remover of the operator lamp with objects in a cluster.
func removerFor(t *testing.T, objects ...client.Object) *remover {
	t.Helper()
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}}
	sub.Status.InstalledCSV = "lamp.v1"
	all := append([]client.Object{sub}, objects...)
	return &remover{client: fake.NewClientBuilder().WithScheme(kinds).WithObjects(all...).Build(), namespace: "shop", timeout: time.Millisecond, log: &bytes.Buffer{}}
}

// TestCopiesStay checks that the copy of a version of another namespace is not removed.
func TestCopiesStay(t *testing.T) {
	t.Parallel()
	r := removerFor(t, &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "lamp.v1", Labels: map[string]string{operatorsv1alpha1.CopiedLabelKey: "harbour"},
	}})
	found, err := r.read(t.Context(), "lamp", false)
	if err != nil || len(found.versions) != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
}

// TestInterruptedRemoval checks what the error says if the version stays after its Subscription is deleted.
func TestInterruptedRemoval(t *testing.T) {
	t.Parallel()
	r := removerFor(t, &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "lamp.v1", Finalizers: []string{"example.com/hold"},
	}})
	found, err := r.read(t.Context(), "lamp", false)
	if err != nil || len(found.versions) != 1 {
		t.Fatalf("got %+v, %v", found, err)
	}
	err = r.remove(t.Context(), found, nil)
	const want = "not deleted within 1ms (--timeout), of ClusterServiceVersion shop/lamp.v1"
	if err == nil || !strings.Contains(err.Error(), want) ||
		!strings.HasSuffix(err.Error(), "to continue, run: kubectl -n shop delete clusterserviceversion lamp.v1") {
		t.Errorf("got %v", err)
	}
}

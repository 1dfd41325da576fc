package nodes_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/failover"
)

// The sample package and its newest version.
const (
	samplePackage = "lantern"
	lastCSV       = "lantern.v1.2.0"
)

// installed is the product on the bed of the package, installed once.
var installed struct {
	once  sync.Once
	scene *failover.Scene
	err   error
}

// scene returns the product, installed from its manifests.
func scene(t *testing.T) *failover.Scene {
	t.Helper()
	installed.once.Do(func() {
		// The programs must outlive the first test. The folder is removed with the bed.
		dir := filepath.Dir(bed(t).LogDir())
		installed.scene, installed.err = failover.Install(context.WithoutCancel(t.Context()), bed(t), dir, os.Stderr)
	})
	must(t, installed.err)
	return installed.scene
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create creates objects and deletes them when the test ends.
func create(t *testing.T, s *failover.Scene, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		must(t, s.Client.Create(t.Context(), o))
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(s.Client.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
				t.Error(err)
			}
		})
	}
}

// subscribe creates a Subscription to the sample package in its own namespace. It returns a
// function that waits until the newest version is installed, and then deletes it.
func subscribe(t *testing.T, s *failover.Scene, namespace, catalog string) func(*testing.T) {
	t.Helper()
	create(t, s,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
		},
		&operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: samplePackage},
			Spec: &operatorsv1alpha1.SubscriptionSpec{
				Package: samplePackage, Channel: "stable", StartingCSV: "lantern.v1.0.0",
				CatalogSource: catalog, CatalogSourceNamespace: failover.CatalogNamespace,
			},
		})
	return func(t *testing.T) {
		t.Helper()
		must(t, failover.Eventually(t.Context(), lastCSV+" to be installed in "+namespace, func(ctx context.Context) string {
			sub := &operatorsv1alpha1.Subscription{}
			if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: samplePackage}, sub); err != nil {
				return err.Error()
			}
			csv := &operatorsv1alpha1.ClusterServiceVersion{}
			if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: lastCSV}, csv); err != nil {
				text, _ := json.Marshal(sub.Status)
				return err.Error() + ": " + string(text)
			}
			if sub.Status.InstalledCSV != lastCSV || csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
				return string(csv.Status.Phase) + ": " + csv.Status.Message
			}
			return ""
		}))
	}
}

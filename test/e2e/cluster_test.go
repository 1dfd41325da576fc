package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// patience is the deadline for conditions.
	patience = controlplane.Timeout
	// poll is the interval between checks.
	poll = 100 * time.Millisecond
)

// newClient returns a client of the test's control plane.
func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	return controlplane.Client(t)
}

// eventually waits until a condition holds. The text that the condition returns describes the last
// state after a timeout.
func eventually(t *testing.T, what string, condition func(ctx context.Context) (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	last := "nothing"
	for {
		ok, state := condition(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil { // otherwise the deadline cut the last look short
			last = state
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited %s for %s; last seen: %s", patience, what, last)
		}
	}
}

// create creates objects.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err)
		}
	}
}

// leader waits until a supervisor leads and returns its identity.
func leader(t *testing.T, c client.Client) string {
	t.Helper()
	var name string
	eventually(t, "a leader", func(ctx context.Context) (bool, string) {
		var err error
		name, err = holder(ctx, c)
		return name != "", fmt.Sprintf("the Lease is free, %v", err)
	})
	return name
}

// holder returns the identity of the holder of the Lease; empty for none.
func holder(ctx context.Context, c client.Client) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: api.LeaseName}, lease); err != nil {
		return "", err
	}
	return supervisor.IdentityOf(ptr.Deref(lease.Spec.HolderIdentity, "")), nil
}

// awaitInstalled waits until the Subscription to the sample package has its last version and that
// version has succeeded.
func awaitInstalled(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	eventually(t, lastCSV+" to be installed in "+namespace, func(ctx context.Context) (bool, string) {
		sub := &operatorsv1alpha1.Subscription{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: samplePackage}, sub); err != nil {
			return false, err.Error()
		}
		done := sub.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest && sub.Status.InstalledCSV == lastCSV
		if !done {
			text, err := json.Marshal(sub.Status)
			return false, fmt.Sprintf("%s %v", text, err)
		}
		list := &operatorsv1alpha1.ClusterServiceVersionList{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		if len(list.Items) != 1 {
			return false, fmt.Sprintf("%d ClusterServiceVersions", len(list.Items))
		}
		return list.Items[0].Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, string(list.Items[0].Status.Phase)
	})
}

func catalogSource(namespace, name, address string) *operatorsv1alpha1.CatalogSource {
	return &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address},
	}
}

func operatorGroup(namespace string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}
}

func subscription(namespace, pkg, startingCSV, source, sourceNamespace string) *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: pkg, Channel: "stable", StartingCSV: startingCSV,
			CatalogSource: source, CatalogSourceNamespace: sourceNamespace,
		},
	}
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

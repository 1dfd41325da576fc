package transitions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	// patience is the deadline for conditions. Other suites may run in parallel.
	patience = testenv.Patience
	// catalog is the name of the CatalogSource.
	catalog = "shop"
)

// world is a test's view of the cluster, with a catalog for all namespaces. Its own namespace is that of the catalog.
type world struct {
	*testenv.World

	server *fakecatalog.Server
}

// newWorld creates a catalog with a number of packages, called p0 and so on, each with one version.
func newWorld(t *testing.T, packages int) *world {
	t.Helper()
	w := &world{World: testenv.New(t)}
	var content []fakecatalog.Package
	for i := range packages {
		content = append(content, fakecatalog.Simple(packageName(i), version(packageName(i), 1)))
	}
	w.server = fakecatalog.StartExtended(t, content...)
	w.Create(fixtures.ServedCatalog(w.Namespace, catalog, w.server.Address()))
	return w
}

func packageName(i int) string { return fmt.Sprintf("p%d", i) }

// version returns a bundle with a ClusterServiceVersion whose Deployment has no pods and is available at once.
func version(pkg string, n int) fakecatalog.Entry {
	name := fmt.Sprintf("%s.v%d", pkg, n)
	e := fakecatalog.Entry{Name: name, Version: fmt.Sprintf("%d.0.0", n), Objects: []string{fmt.Sprintf(`{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": %[1]q},
		"spec": {"displayName": %[2]q, "version": "%[3]d.0.0", "installModes": [{"type": "OwnNamespace", "supported": true}],
			"install": {"strategy": "deployment", "spec": {"deployments": [{"name": %[2]q, "spec": {
				"replicas": 0, "selector": {"matchLabels": {"app": %[2]q}}, "template": {"metadata": {"labels": {"app": %[2]q}},
				"spec": {"containers": [{"name": "operator", "image": "registry.example/operator:1"}]}}}}]}}}}`, name, pkg, n)}}
	if n > 1 {
		e.Replaces = fmt.Sprintf("%s.v%d", pkg, n-1)
	}
	return e
}

// prefix returns the prefix of this world's namespaces with Subscriptions.
func (w *world) prefix() string { return w.Namespace + "-" }

// place creates a namespace with Subscriptions to the packages. manual selects those with manual approval.
func (w *world) place(ctx context.Context, n, packages int, manual func(int) bool) error {
	namespace := fmt.Sprintf("%s%d", w.prefix(), n)
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		fixtures.OperatorGroup(namespace, "own", namespace),
	}
	for i := range packages {
		sub := w.subscription(types.NamespacedName{Namespace: namespace, Name: packageName(i)})
		if manual(i) {
			sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
		}
		objects = append(objects, sub)
	}
	for _, object := range objects {
		if err := w.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s/%s: %w", object, namespace, object.GetName(), err)
		}
	}
	return nil
}

// alone creates a namespace with one Subscription and returns its key.
func (w *world) alone(n int, manual bool) types.NamespacedName {
	w.T.Helper()
	if err := w.place(w.T.Context(), n, 1, func(int) bool { return manual }); err != nil {
		w.T.Fatal(err)
	}
	return types.NamespacedName{Namespace: fmt.Sprintf("%s%d", w.prefix(), n), Name: packageName(0)}
}

func (w *world) subscription(key types.NamespacedName) *operatorsv1alpha1.Subscription {
	sub := fixtures.Subscription(key.Namespace, key.Name, key.Name, catalog)
	sub.Spec.CatalogSourceNamespace = w.Namespace
	return sub
}

// hand changes InstallPlans directly, without the controllers.
type hand struct {
	c client.Client
	o *observer
	// turns bounds the number of concurrent changes; nil for no bound.
	turns chan struct{}
}

// errGone means that an expected InstallPlan does not exist.
var errGone = errors.New("the product has deleted it")

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return errGone
	}
	return err
}

// turn waits for a turn and returns the function that ends it.
func (h hand) turn() (end func()) {
	if h.turns == nil {
		return func() {}
	}
	h.turns <- struct{}{}
	return func() { <-h.turns }
}

// moves sets the stage of the InstallPlan of a Subscription.
func (h hand) moves(ctx context.Context, key types.NamespacedName, to stage) error {
	var conditions []operatorsv1alpha1.InstallPlanCondition
	if to.phase == "Failed" && to != failed {
		conditions = append(conditions, operatorsv1alpha1.InstallPlanCondition{
			Type: "Installed", Status: corev1.ConditionFalse, Reason: operatorsv1alpha1.InstallPlanConditionReason(to.reason),
			Message: "said by hand",
		})
	}
	text, err := json.Marshal(map[string]any{"status": map[string]any{"phase": to.phase, "conditions": conditions}})
	if err != nil {
		return err
	}
	defer h.turn()()
	p := h.o.plan(key)
	if p == nil {
		return fmt.Errorf("moving the plan of %s to %s: %w", key, to, errGone)
	}
	if err := gone(h.c.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, text))); err != nil {
		return fmt.Errorf("moving the plan of %s to %s: %w", key, to, err)
	}
	h.o.wrote(p)
	return nil
}

// asks patches the spec of the InstallPlan of a Subscription.
func (h hand) asks(ctx context.Context, key types.NamespacedName, spec string) error {
	defer h.turn()()
	p := h.o.plan(key)
	if p == nil {
		return fmt.Errorf("changing the plan of %s: %w", key, errGone)
	}
	if err := gone(h.c.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))); err != nil {
		return fmt.Errorf("changing the plan of %s to %s: %w", key, spec, err)
	}
	return nil
}

// removes deletes the InstallPlan of a Subscription. installed is set if it was complete.
func (h hand) removes(ctx context.Context, key types.NamespacedName, installed bool) error {
	defer h.turn()()
	p := h.o.plan(key)
	if p == nil {
		return fmt.Errorf("deleting the plan of %s: %w", key, errGone)
	}
	if installed {
		h.o.removes(key)
	}
	if err := gone(h.c.Delete(ctx, p)); err != nil {
		return fmt.Errorf("deleting the plan of %s: %w", key, err)
	}
	return nil
}

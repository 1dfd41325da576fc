package main

import (
	"context"
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// ensure creates an object unless it exists, and prints a line.
func (w *world) ensure(ctx context.Context, object client.Object) error {
	name := object.GetName() // Create may change the object
	err := w.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating %T %s: %w", object, name, err)
	}
	kind, _, _ := strings.Cut(fmt.Sprintf("%T", object)[1:], " ")
	_, kind, _ = strings.Cut(kind, ".")
	detail := ""
	if object.GetNamespace() != "" {
		detail = "in namespace " + object.GetNamespace()
	}
	w.printer.printNow(timeline.Line{Subject: "user", Name: kind + " " + name, State: "applied", Detail: detail})
	return nil
}

// namespaceOf returns the namespace in which a package is installed.
func namespaceOf(pkg string) string {
	const longest = 63
	name := "demo-" + strings.ReplaceAll(strings.ToLower(pkg), ".", "-")
	return strings.TrimRight(name[:min(longest, len(name))], "-")
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// catalogSource returns a CatalogSource of a running server.
func catalogSource(address string) *operatorsv1alpha1.CatalogSource {
	return &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Name: catalogName, Namespace: catalogNamespace},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType:  operatorsv1alpha1.SourceTypeGrpc,
			Address:     address,
			DisplayName: "Demo",
		},
	}
}

// operatorGroup returns a group for the operator's own namespace if the operator supports it, and
// for all namespaces otherwise.
func operatorGroup(t target) *operatorsv1.OperatorGroup {
	ns := namespaceOf(t.pkg)
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: ns}}
	if !t.allNamespaces {
		group.Spec.TargetNamespaces = []string{ns}
	}
	return group
}

// subscription returns a Subscription to the target's channel, with automatic updates.
func subscription(t target) *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Name: t.pkg, Namespace: namespaceOf(t.pkg)},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource:          catalogName,
			CatalogSourceNamespace: catalogNamespace,
			Package:                t.pkg,
			Channel:                t.channel,
			InstallPlanApproval:    operatorsv1alpha1.ApprovalAutomatic,
		},
	}
}

package operatorsdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/pause"
)

var errNoSubscription = errors.New("no Subscription has the package")

// CleanUp sends the requests of "operator-sdk cleanup". It deletes the Subscription, the CustomResourceDefinitions that
// the requirementStatus of the version lists, the version, the CatalogSource, and the OperatorGroup of operator-sdk. It
// returns the names of the CustomResourceDefinitions.
func (o Operator) CleanUp(ctx context.Context) (definitions []string, err error) {
	sub, err := o.subscription(ctx)
	if err != nil {
		return nil, err
	}
	name := sub.Status.InstalledCSV
	if name == "" {
		name = sub.Status.CurrentCSV
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := o.Client.Get(ctx, o.key(name), csv); err != nil {
		return nil, fmt.Errorf("reading the version: %w", err)
	}
	if err := client.IgnoreNotFound(o.Client.Delete(ctx, sub)); err != nil {
		return nil, fmt.Errorf("deleting the Subscription: %w", err)
	}
	for _, definition := range required(csv) {
		if err := o.remove(ctx, definition); err != nil {
			return nil, err
		}
		definitions = append(definitions, definition.GetName())
	}
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: sub.Spec.CatalogSource}}
	for _, last := range []client.Object{csv, source} {
		if err := o.remove(ctx, last); err != nil {
			return nil, err
		}
	}
	return definitions, o.removeGroup(ctx)
}

// subscription returns the Subscription of the package.
func (o Operator) subscription(ctx context.Context) (*operatorsv1alpha1.Subscription, error) {
	all := &operatorsv1alpha1.SubscriptionList{}
	if err := o.Client.List(ctx, all, client.InNamespace(o.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Subscriptions: %w", err)
	}
	i := slices.IndexFunc(all.Items, func(s operatorsv1alpha1.Subscription) bool { return s.Spec.Package == o.Package })
	if i < 0 {
		return nil, fmt.Errorf("%s in namespace %s: %w", o.Package, o.Namespace, errNoSubscription)
	}
	return &all.Items[i], nil
}

// required returns the CustomResourceDefinitions in the requirementStatus of a version.
func required(csv *operatorsv1alpha1.ClusterServiceVersion) []client.Object {
	var all []client.Object
	for _, requirement := range csv.Status.RequirementStatus {
		if requirement.Kind != "CustomResourceDefinition" {
			continue
		}
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: requirement.Group, Version: requirement.Version, Kind: requirement.Kind})
		definition.SetName(requirement.Name)
		all = append(all, definition)
	}
	return all
}

// removeGroup deletes the OperatorGroup of operator-sdk if no Subscription is left.
func (o Operator) removeGroup(ctx context.Context) error {
	left := &operatorsv1alpha1.SubscriptionList{}
	if err := o.Client.List(ctx, left, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("listing Subscriptions: %w", err)
	}
	if len(left.Items) > 0 {
		return nil
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: groupName}}
	if err := client.IgnoreNotFound(o.Client.Delete(ctx, group)); err != nil {
		return fmt.Errorf("deleting the OperatorGroup: %w", err)
	}
	return nil
}

// remove deletes an object and waits until it is gone.
func (o Operator) remove(ctx context.Context, object client.Object) error {
	if err := client.IgnoreNotFound(o.Client.Delete(ctx, object)); err != nil {
		return fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
	}
	err := pause.Until(ctx, polling, func() string {
		err := o.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("it exists with finalizers %q, or its read failed: %v", object.GetFinalizers(), err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the deletion of %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

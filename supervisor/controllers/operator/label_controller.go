package operator

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// labelReconciler sets component labels on versions and on the objects that they own.
type labelReconciler struct {
	readers

	client client.Client
}

// Reconcile labels one version and its objects.
func (r *labelReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csv, keys, err := labelledVersion(ctx, r.client, req.NamespacedName)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case isCopied(csv):
		return ctrl.Result{}, r.removeLabels(ctx, csv)
	case len(keys) == 0:
		return ctrl.Result{}, nil
	}
	if err := r.addLabels(ctx, versionKind(), csv, keys); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.labelOwned(ctx, csv, keys)
}

// labelledVersion returns a version and the component labels that it and its objects should have. A copy,
// and a version that is being deleted or not in the cache, should have none. Handlers of events must
// read from the cache, which only fails while it stops.
func labelledVersion(ctx context.Context, from client.Reader, key client.ObjectKey) (*operatorsv1alpha1.ClusterServiceVersion, []string, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := from.Get(ctx, key, csv, readOnly); err != nil {
		return csv, nil, client.IgnoreNotFound(err)
	}
	if isCopied(csv) || !csv.DeletionTimestamp.IsZero() {
		return csv, nil, nil
	}
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := from.List(ctx, &subscriptions, client.InNamespace(key.Namespace), readOnly); err != nil {
		return csv, nil, fmt.Errorf("listing Subscriptions in namespace %s: %w", key.Namespace, err)
	}
	return csv, keysOf(csv, subscriptions.Items), nil
}

// removeLabels removes the component labels from a copy.
func (r *labelReconciler) removeLabels(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	keys := componentKeys(csv.Labels)
	if len(keys) == 0 {
		return nil
	}
	if err := patchLabels(ctx, r.client, versionKind(), csv, labelChanges(keys, nil)); err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Removed component labels from a copied ClusterServiceVersion", "labels", keys)
	return nil
}

// labelOwned labels the objects that a version owns and the CustomResourceDefinitions that it
// provides, which have no owner. An error does not block the other objects.
func (r *labelReconciler) labelOwned(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, keys []string) error {
	var errs []error
	for _, k := range kinds() {
		if !k.ownable {
			continue
		}
		owned, err := r.owned(ctx, k, csv)
		errs = append(errs, err)
		for _, o := range owned {
			errs = append(errs, r.addLabels(ctx, k, o, keys))
		}
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		errs = append(errs, r.labelCRD(ctx, d.Name, keys))
	}
	return errors.Join(errs...)
}

func (r *labelReconciler) labelCRD(ctx context.Context, name string, keys []string) error {
	definition := crdKind().object()
	err := r.definitions.Get(ctx, client.ObjectKey{Name: name}, definition, readOnly)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	}
	return r.addLabels(ctx, crdKind(), definition, keys)
}

// owned returns the objects of a kind that a version owns.
func (r *labelReconciler) owned(ctx context.Context, k kind, csv *operatorsv1alpha1.ClusterServiceVersion) ([]client.Object, error) {
	var where client.ListOption = client.InNamespace(csv.Namespace)
	if k.cluster {
		where = client.MatchingFields{indexOwner: client.ObjectKeyFromObject(csv).String()}
	}
	var owned []client.Object
	if k.named {
		secrets, err := r.secretsOf(ctx, csv)
		for _, secret := range secrets {
			if owns(csv, secret) {
				owned = append(owned, secret)
			}
		}
		return owned, err
	}
	err := r.each(ctx, k, func(o client.Object) {
		if owns(csv, o) {
			owned = append(owned, o)
		}
	}, where)
	return owned, err
}

func (r *labelReconciler) addLabels(ctx context.Context, k kind, o client.Object, keys []string) error {
	missing := missingKeys(o.GetLabels(), keys)
	if len(missing) == 0 || !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := patchLabels(ctx, r.client, k, o, labelChanges(missing, new(string))); err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Labelled a component", "kind", k.gvk.Kind, "object", client.ObjectKeyFromObject(o).String(), "labels", missing)
	return nil
}

// installedVersion returns a request for the version that a Subscription has installed, if the version
// lacks a label. A version that is not in the cache yet has an event of its own later.
func (r *labelReconciler) installedVersion(ctx context.Context, o client.Object) []reconcile.Request {
	sub, is := o.(*operatorsv1alpha1.Subscription)
	if !is || sub.Status.InstalledCSV == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: sub.Namespace, Name: sub.Status.InstalledCSV}
	csv, keys, err := labelledVersion(ctx, r.shared, key)
	if err != nil || len(missingKeys(csv.Labels, keys)) == 0 {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// owningVersions returns requests for the versions that own an object according to its references and
// labels, if the object lacks one of their labels or refers to Secrets, which have no events.
func (r *labelReconciler) owningVersions(ctx context.Context, o client.Object) []reconcile.Request {
	secrets := secretRefs{}
	secrets.add(o)
	var requests []reconcile.Request
	for _, key := range owners(o) {
		_, keys, err := labelledVersion(ctx, r.shared, key)
		if err == nil && len(keys) > 0 && (len(secrets) > 0 || len(missingKeys(o.GetLabels(), keys)) > 0) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// providingVersions returns requests for the versions that provide a CustomResourceDefinition and whose
// label it lacks. A definition may have thousands of providers, and each label is a separate
// change.
func (r *labelReconciler) providingVersions(ctx context.Context, o client.Object) []reconcile.Request {
	var requests []reconcile.Request
	err := r.each(ctx, versionKind(), func(item client.Object) {
		csv, is := item.(*operatorsv1alpha1.ClusterServiceVersion)
		if is && !isCopied(csv) && len(missingKeys(o.GetLabels(), componentKeys(csv.Labels))) > 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csv)})
		}
	}, client.MatchingFields{indexDefinition: o.GetName()})
	if err != nil {
		// Reading the cache only fails while it stops.
		return nil
	}
	return requests
}

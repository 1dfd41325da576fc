package clusterserviceversion

import (
	"context"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// mapper maps an event to the ClusterServiceVersions that it concerns. A failing read of the cache
// maps to none; it fails only while the cache stops.
type mapper struct {
	reader client.Reader
	global string // the namespace of the catalogs for all namespaces
}

// selected returns requests for the ClusterServiceVersions, without copies, for which keep returns
// true.
func (m mapper) selected(ctx context.Context, keep func(*operatorsv1alpha1.ClusterServiceVersion) bool,
	opts ...client.ListOption,
) []reconcile.Request {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := m.reader.List(ctx, &list, append(opts, readOnly)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, csv := range versions.Originals(list.Items) {
		if keep(csv) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csv)})
		}
	}
	return requests
}

// relatedVersions maps a ClusterServiceVersion to those on its chain, which may wait for it, and to
// those that own one of the same CRDs. It also maps deleted ones, which are no longer in the cache.
func (m mapper) relatedVersions(ctx context.Context, obj client.Object) []reconcile.Request {
	csv, ok := obj.(*operatorsv1alpha1.ClusterServiceVersion)
	if !ok || versions.IsCopied(csv) {
		return nil
	}
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := m.reader.List(ctx, &list, client.InNamespace(csv.Namespace), readOnly); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, other := range versions.Originals(list.Items).Affected(csv) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
	}
	return requests
}

// forOperatorGroup maps an OperatorGroup to all ClusterServiceVersions of its namespace, and to those
// elsewhere that may not run because of a group's claims.
func (m mapper) forOperatorGroup(ctx context.Context, obj client.Object) []reconcile.Request {
	all := func(*operatorsv1alpha1.ClusterServiceVersion) bool { return true }
	elsewhere := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return csv.Namespace != obj.GetNamespace() }
	return append(m.selected(ctx, all, client.InNamespace(obj.GetNamespace())),
		m.selected(ctx, elsewhere, client.MatchingFields{indexState: stateCompeting})...)
}

// forSubscription maps a Subscription to the ClusterServiceVersions that it may
// configure.
func (m mapper) forSubscription(ctx context.Context, obj client.Object) []reconcile.Request {
	sub, ok := obj.(*operatorsv1alpha1.Subscription)
	if !ok || sub.Spec == nil {
		return nil
	}
	label := plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace)
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		_, labelled := csv.Labels[label]
		return labelled || csv.Name == sub.Status.InstalledCSV || csv.Name == sub.Status.CurrentCSV
	}, client.InNamespace(sub.Namespace))
}

// forOperatorCondition maps an OperatorCondition to the ClusterServiceVersion of the same name, and to
// those that replace it.
func (m mapper) forOperatorCondition(ctx context.Context, obj client.Object) []reconcile.Request {
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Name == obj.GetName() || csv.Spec.Replaces == obj.GetName()
	}, client.InNamespace(obj.GetNamespace()))
}

// forDeployment maps a Deployment to the ClusterServiceVersions that declare one of its name: its
// owner, and any that it blocks.
func (m mapper) forDeployment(ctx context.Context, obj client.Object) []reconcile.Request {
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs,
			func(d operatorsv1alpha1.StrategyDeploymentSpec) bool { return d.Name == obj.GetName() })
	}, client.InNamespace(obj.GetNamespace()))
}

// forServiceAccount maps a ServiceAccount to the ClusterServiceVersions that require permissions for it,
// and to those that the API may have refused with its permissions.
func (m mapper) forServiceAccount(ctx context.Context, obj client.Object) []reconcile.Request {
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		return phase.RefusedToInstall(csv) || accountNeeds(csv)[obj.GetName()] != nil
	}, client.InNamespace(obj.GetNamespace()))
}

// forOwnedObject maps an object to the ClusterServiceVersion that its labels name.
func (m mapper) forOwnedObject(_ context.Context, obj client.Object) []reconcile.Request {
	owner, ok := ownership.Of(obj.GetLabels())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: owner}}
}

// forCRD maps a CustomResourceDefinition to the ClusterServiceVersions that
// own or require it.
func (m mapper) forCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) []reconcile.Request {
	all := func(*operatorsv1alpha1.ClusterServiceVersion) bool { return true }
	return m.selected(ctx, all, client.MatchingFields{indexCRD: crd.Name})
}

// definitionChanges accepts changes of a CustomResourceDefinition that concern a
// ClusterServiceVersion. The records of versions and the component labels change with each
// namespace that gets the operator. They do not concern the other versions.
func definitionChanges() predicate.TypedPredicate[*apiextensionsv1.CustomResourceDefinition] {
	return predicate.TypedFuncs[*apiextensionsv1.CustomResourceDefinition]{
		UpdateFunc: func(e event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.UID != after.UID || before.Generation != after.Generation ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				!maps.Equal(deferralAnnotations(before), deferralAnnotations(after)) || !equality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}

// recordedVersions maps a change of a CustomResourceDefinition to the versions that its records name now and did not
// name before. They belong to the definition from then on.
func recordedVersions() handler.TypedEventHandler[*apiextensionsv1.CustomResourceDefinition, reconcile.Request] {
	return handler.TypedFuncs[*apiextensionsv1.CustomResourceDefinition, reconcile.Request]{
		UpdateFunc: func(
			_ context.Context, e event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			added := map[string]string{}
			for key, value := range e.ObjectNew.Annotations {
				if e.ObjectOld.Annotations[key] != value {
					added[key] = value
				}
			}
			for _, name := range plansteps.InstalledAlongside(&metav1.ObjectMeta{Annotations: added}) {
				queue.Add(reconcile.Request{NamespacedName: name})
			}
		},
	}
}

// deferralAnnotations returns the annotations of a definition about changes of its versions that wait for a
// webhook.
func deferralAnnotations(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	kept := map[string]string{}
	for _, key := range []string{api.AnnotationStorageVersion, api.AnnotationConversion, api.AnnotationServedVersions} {
		if value, has := crd.Annotations[key]; has {
			kept[key] = value
		}
	}
	return kept
}

package clusterserviceversion

import (
	"context"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// catalogPullSecrets are the names of the Secrets that a catalog has for the pods of its operators. The
// Secrets are in the namespace of the operator.
type catalogPullSecrets struct {
	names []string
	// unknown means that the catalog does not exist, or has an invalid annotation. Deployments then keep the
	// names that they have.
	unknown bool
}

// pullSecrets returns the pull secrets of the catalog that a version comes from. sub is its Subscription, nil for none.
func (r deploymentReader) pullSecrets(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	sub *operatorsv1alpha1.Subscription,
) (catalogPullSecrets, error) {
	key := catalogOf(csv, sub)
	// A version without a Subscription may name no catalog. One that names another tenant's catalog must not show the
	// names in its annotation.
	if key.Name == "" || key.Namespace != csv.Namespace && key.Namespace != r.global {
		return catalogPullSecrets{unknown: true}, nil
	}
	catalog := catalogs.NewObject()
	err := r.catalogs.Get(ctx, key, catalog, readOnly)
	if apierrors.IsNotFound(err) {
		return catalogPullSecrets{unknown: true}, nil
	}
	if err != nil {
		return catalogPullSecrets{}, fmt.Errorf("getting CatalogSource %s: %w", key, err)
	}
	names, err := api.OperatorPullSecrets(catalog.GetAnnotations())
	// The status of the CatalogSource shows the error.
	return catalogPullSecrets{names: names, unknown: err != nil}, nil
}

// catalogOf returns the catalog that a version comes from: the one that its labels name, or else that of its
// Subscription. OLM sets no such labels.
func catalogOf(csv *operatorsv1alpha1.ClusterServiceVersion, sub *operatorsv1alpha1.Subscription) types.NamespacedName {
	if recorded, _ := api.RecordedCatalog(csv); recorded.Name != "" {
		return recorded
	}
	if sub == nil || sub.Spec == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}
}

// record adds the names to the annotations of a Deployment, for a time when they are unknown.
func (p catalogPullSecrets) record(annotations map[string]string) map[string]string {
	if len(p.names) == 0 {
		return annotations
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationOperatorPullSecrets] = strings.Join(p.names, ",")
	return annotations
}

// keeping returns the settings for an existing Deployment. If the pull secrets of the catalog are unknown, they are
// those that the Deployment records.
func (s settings) keeping(have *appsv1.Deployment) settings {
	if !s.pullSecrets.unknown {
		return s
	}
	names, err := api.OperatorPullSecrets(have.Annotations)
	if err != nil {
		return s
	}
	s.pullSecrets.names = names
	return s
}

// forCatalog maps a CatalogSource to the ClusterServiceVersions that may come from it.
func (m mapper) forCatalog(ctx context.Context, obj client.Object) []reconcile.Request {
	var opts []client.ListOption
	if obj.GetNamespace() != m.global {
		opts = append(opts, client.InNamespace(obj.GetNamespace()))
	}
	key := client.ObjectKeyFromObject(obj)
	return m.selected(ctx, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		recorded, _ := api.RecordedCatalog(csv)
		return recorded.Name == "" || recorded == key
	}, opts...)
}

// pullSecretChanges accepts updates of a CatalogSource that change the pull secrets for operators.
func pullSecretChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[api.AnnotationOperatorPullSecrets] != e.ObjectNew.GetAnnotations()[api.AnnotationOperatorPullSecrets]
	}}
}

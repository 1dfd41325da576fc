package nodepull

import (
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultAccount is the ServiceAccount of pods of catalogs that have none.
const defaultAccount = "default"

// readCatalog reads the CatalogSource of a request and its ServiceAccount.
func (p *Puller) readCatalog(ctx context.Context, r *Request) (*catalog, error) {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	if err := p.o.Reader.Get(ctx, r.Catalog, source); err != nil {
		return nil, failed(r.Image, "reading CatalogSource %s: %w", r.Catalog, err)
	}
	account := &corev1.ServiceAccount{}
	if err := p.o.Reader.Get(ctx, r.Catalog, account); err != nil && !apierrors.IsNotFound(err) {
		return nil, failed(r.Image, "reading ServiceAccount %s: %w", r.Catalog, err)
	}
	found, err := catalogOf(source, account, r.Secrets)
	if err != nil {
		return nil, failed(r.Image, "reading CatalogSource %s: %w", r.Catalog, err)
	}
	return found, nil
}

// catalogOf returns what a pod needs of a CatalogSource. The account has no name if the catalog has none. A pod with
// pull secrets does not get those of its account, so that it names both.
func catalogOf(source *unstructured.Unstructured, account *corev1.ServiceAccount, secrets []string) (*catalog, error) {
	found := &catalog{NamespacedName: client.ObjectKeyFromObject(source), uid: source.GetUID(), account: defaultAccount}
	names := slices.Clone(secrets)
	if account.Name != "" {
		found.account = account.Name
		for _, secret := range account.ImagePullSecrets {
			names = append(names, secret.Name)
		}
	}
	slices.Sort(names)
	found.secrets = slices.Compact(names)
	var config struct {
		NodeSelector map[string]string   `json:"nodeSelector"`
		Tolerations  []corev1.Toleration `json:"tolerations"`
	}
	given, _, err := unstructured.NestedMap(source.Object, "spec", "grpcPodConfig")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(given, &config)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the object
	}
	found.nodeSelector, found.tolerations = config.NodeSelector, config.Tolerations
	return found, nil
}

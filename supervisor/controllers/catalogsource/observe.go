package catalogsource

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apiserver/pager"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// observer reads the objects that a catalog depends on.
type observer struct {
	// reader reads Namespaces. objects reads Nodes and Pods. live reads autoscalers.
	reader, objects, live client.Reader
	catalogObjects        *catalogObjects
	version               *serverVersion
}

// observedCatalog holds the inputs of a catalog's objects, without its content.
type observedCatalog struct {
	deployment.Input

	// autoscalersHidden is true if the supervisor may not list autoscalers.
	autoscalersHidden bool
	// pods are all pods with the labels of the catalog.
	pods []*corev1.Pod
}

// observe reads the inputs of a catalog's objects, and its pods.
func (o *observer) observe(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (*observedCatalog, error) {
	found := &observedCatalog{Input: deployment.Input{Source: source}}
	object, err := o.catalogObjects.get(ctx, deployment.KindDeployment, client.ObjectKeyFromObject(source))
	if err != nil {
		return nil, err
	}
	if running, is := object.(*appsv1.Deployment); is && isOwnedBy(running, source) {
		found.Deployment = running
	}
	ns := namespaceMetadata()
	if err := o.reader.Get(ctx, client.ObjectKey{Name: source.Namespace}, ns); err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", source.Namespace, err)
	}
	found.NamespaceLabels = ns.Labels
	var nodes corev1.NodeList
	if err := o.objects.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range nodes.Items {
		found.Nodes = append(found.Nodes, &nodes.Items[i])
	}
	if found.Autoscaler, found.autoscalersHidden, err = o.autoscaler(ctx, found.Deployment); err != nil {
		return nil, err
	}
	if found.Version, err = o.version.get(); err != nil {
		return nil, err
	}
	found.pods, err = o.podsOf(ctx, source)
	return found, err
}

// autoscaler returns the name of the autoscaler of a Deployment; empty if there is none. hidden is
// true if the supervisor may not list autoscalers. It lists them from the API server instead of a
// cache. With a stale list, the controller could undo the scaling that the Deployment already shows.
func (o *observer) autoscaler(ctx context.Context, d *appsv1.Deployment) (name string, hidden bool, err error) {
	if d == nil {
		return "", false, nil
	}
	newPage := func() *autoscalingv2.HorizontalPodAutoscalerList { return &autoscalingv2.HorizontalPodAutoscalerList{} }
	err = pager.EachPage(ctx, o.live, newPage, func(page *autoscalingv2.HorizontalPodAutoscalerList) bool {
		// The API server lists by name, so that the first one found has the first name.
		name = autoscalerOf(page.Items, d.Name)
		return name == ""
	}, client.InNamespace(d.Namespace))
	switch {
	case apierrors.IsForbidden(err):
		return "", true, nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return "", false, nil // This API server has no autoscaling API.
	case err != nil:
		return "", false, fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %s: %w", d.Namespace, err)
	}
	return name, false, nil
}

// podsOf returns all pods with the labels of a catalog.
func (o *observer) podsOf(ctx context.Context, source *operatorsv1alpha1.CatalogSource) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := o.objects.List(ctx, &list, client.InNamespace(source.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if catalogOfPod(&list.Items[i]) == source.Name {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// serviceTime returns the creation time of a catalog's Service; zero if there is none.
func (o *observer) serviceTime(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (metav1.Time, error) {
	key := client.ObjectKey{Namespace: source.Namespace, Name: catalogs.ServiceName(source)}
	service, err := o.catalogObjects.get(ctx, deployment.KindService, key)
	if err != nil || service == nil || !isOwnedBy(service, source) {
		return metav1.Time{}, err
	}
	return service.GetCreationTimestamp(), nil
}

package catalogsource

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// objectCache is a cache that the manager starts with its other caches, before
// anything that reads from it.
type objectCache struct{ cache.Cache }

// GetCache is how the manager recognizes a cache and waits for it.
func (c objectCache) GetCache() cache.Cache { return c.Cache }

// newObjectCache makes a cache of what catalogs consist of: of objects that bear
// the labels, and of Nodes what matters here. It is not the manager's, where
// others would miss all the rest.
func newObjectCache(mgr ctrl.Manager) (cache.Cache, error) {
	ofCatalogs, err := labels.NewRequirement(api.LabelCatalogSource, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the objects of catalogs: %w", err)
	}
	managed, err := labels.NewRequirement(api.LabelManaged, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the objects of catalogs: %w", err)
	}
	// Others do not name the catalog in the labels of objects but pods.
	byManaged := cache.ByObject{Label: labels.NewSelector().Add(*managed)}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:       mgr.GetHTTPClient(),
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		NewInformer:      informer.New,
		DefaultTransform: informer.Transform,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: labels.NewSelector().Add(*ofCatalogs), Transform: informer.After(leanPod)},
			&corev1.Node{}:                  {Transform: informer.After(leanNode)},
			&corev1.Service{}:               byManaged,
			&corev1.ServiceAccount{}:        byManaged,
			&networkingv1.NetworkPolicy{}:   byManaged,
			&policyv1.PodDisruptionBudget{}: byManaged,
			configMapMetadata():             byManaged,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the objects of catalogs: %w", err)
	}
	if err := mgr.Add(objectCache{c}); err != nil {
		return nil, fmt.Errorf("adding the cache of the objects of catalogs: %w", err)
	}
	return c, nil
}

// catalogOfPod names the catalog that a pod serves, or was to serve; empty when it
// says none.
func catalogOfPod(pod client.Object) string {
	given := pod.GetLabels()
	return cmp.Or(given[api.LabelCatalogSource], given[api.LabelUpdate])
}

// leanPod leaves of a pod what tells where it runs and how it is.
func leanPod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, PodIP: pod.Status.PodIP,
		InitContainerStatuses: pod.Status.InitContainerStatuses, ContainerStatuses: pod.Status.ContainerStatuses,
	}
	return pod, nil
}

// leanNode leaves of a node what tells whether it takes replicas.
func leanNode(object any) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return object, nil
	}
	node.ManagedFields, node.Annotations = nil, nil
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	var ready []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = append(ready, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	node.Status = corev1.NodeStatus{Conditions: ready, NodeInfo: corev1.NodeSystemInfo{
		KubeletVersion: node.Status.NodeInfo.KubeletVersion, ContainerRuntimeVersion: node.Status.NodeInfo.ContainerRuntimeVersion,
	}}
	return node, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return object
}

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

// objectCache is a cache that the manager starts together with its own caches, before their
// readers.
type objectCache struct{ cache.Cache }

// GetCache makes the manager recognize the cache and wait for its sync.
func (c objectCache) GetCache() cache.Cache { return c.Cache }

// newObjectCache returns a cache of labelled catalog objects and of reduced Nodes. It is separate
// from the manager's cache, because other controllers need objects that its selectors exclude.
func newObjectCache(mgr ctrl.Manager) (cache.Cache, error) {
	ofCatalogs, err := labels.NewRequirement(api.LabelCatalogSource, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the objects of catalogs: %w", err)
	}
	managed, err := labels.NewRequirement(api.LabelManaged, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the objects of catalogs: %w", err)
	}
	// OLM puts the catalog's name only into the labels of pods, so the other kinds are selected by
	// olm.managed.
	byManaged := cache.ByObject{Label: labels.NewSelector().Add(*managed)}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:       mgr.GetHTTPClient(),
		Scheme:           mgr.GetScheme(),
		Mapper:           mgr.GetRESTMapper(),
		NewInformer:      informer.New,
		DefaultTransform: informer.Transform,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: labels.NewSelector().Add(*ofCatalogs), Transform: informer.TransformAfter(stripPod)},
			&corev1.Node{}:                  {Transform: informer.TransformAfter(stripNode)},
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

// catalogOfPod returns the name of the catalog in a pod's labels; empty if there is none. OLM's
// pods of an image update carry it in another label.
func catalogOfPod(pod client.Object) string {
	given := pod.GetLabels()
	return cmp.Or(given[api.LabelCatalogSource], given[api.LabelUpdate])
}

// stripPod drops all fields of a pod except its node and its state.
func stripPod(object any) (any, error) {
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

// stripNode drops all fields of a node that do not affect the placement of replicas.
func stripNode(object any) (any, error) {
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

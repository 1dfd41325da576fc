package informer

import (
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// Maximum sizes of an object's kept content, in bytes of memory. Of a larger object, no content is kept.
// Metadata is not included.
const (
	// maxPod is the maximum size of a reduced pod.
	maxPod = 64 << 10
	// maxObject is the size of an object's encoding above which an object is large.
	maxObject = 64 << 10
	// maxDeployment is the maximum size of the Deployment of an operator. Most are smaller. Those with long
	// annotations in their template are read from the API server.
	maxDeployment = 64 << 10
	// maxRules is the maximum size of roles and bindings.
	maxRules = 16 << 10
	// maxPart is the maximum size of the other kinds. A real object of these has less than 2 KiB.
	maxPart   = 6 << 10
	maxConfig = 8 << 10
	// maxTransitionLog is the maximum size of the annotations of a Subscription, which hold its transitions.
	maxTransitionLog = 24 << 10
	// maxConditions is the maximum number of conditions of a Deployment. Real ones have three.
	maxConditions = 4
	// maxName and maxMessage are the maximum lengths of single texts.
	maxName    = 512
	maxMessage = 256
)

// Transform bounds the size of an object in a cache. It removes managed fields, and from objects that tenants
// may create everything beyond the bounds. An object that lacks a part afterwards bears AnnotationTrimmed.
// Transform changes the object in place.
//
// A second call changes nothing: client-go transforms the objects of a streamed list twice.
func Transform(o any) (any, error) {
	return TransformAfter(func(o any) (any, error) { return o, nil })(o)
}

// TransformAfter returns a transform that bounds the result of another one.
func TransformAfter(first toolscache.TransformFunc) toolscache.TransformFunc {
	return func(o any) (any, error) {
		object, is := o.(metav1.Object)
		trimmed := is && Trimmed(object)
		left, err := first(o)
		if err != nil {
			return nil, err //nolint:wrapcheck // the transform's own
		}
		bound(left, trimmed)
		return left, nil
	}
}

// bound bounds an object in place. An object that was trimmed before is marked again.
func bound(o any, trimmed bool) {
	object, is := o.(metav1.Object)
	if !is {
		return
	}
	object.SetManagedFields(nil)
	if !tenantsCreate(o) {
		return
	}
	sized, measured := o.(interface{ Size() int })
	most := boundsOf(measured && sized.Size() > maxObject)
	if _, is := o.(*operatorsv1alpha1.Subscription); is {
		most.annotations = maxTransitionLog
	}
	cutContent := boundContent(o)
	if boundMetadata(object, most) || cutContent || trimmed {
		mark(object)
	}
}

// tenantsCreate reports whether users other than administrators create objects of a kind.
func tenantsCreate(o any) bool {
	switch o := o.(type) {
	case *appsv1.Deployment, *corev1.Pod, *corev1.Service, *corev1.ServiceAccount, *discoveryv1.EndpointSlice,
		*networkingv1.NetworkPolicy, *policyv1.PodDisruptionBudget, *rbacv1.Role, *rbacv1.RoleBinding,
		*operatorsv1alpha1.Subscription:
		return true
	case *metav1.PartialObjectMetadata:
		return createdByTenants(o.GroupVersionKind().GroupKind())
	case *unstructured.Unstructured:
		return createdByTenants(o.GroupVersionKind().GroupKind())
	default:
		return false
	}
}

// boundContent removes the content of an object that has too much of it, and reports whether it did.
func boundContent(o any) (cut bool) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return boundDeployment(o)
	case *operatorsv1alpha1.Subscription:
		return boundSubscription(o)
	case *rbacv1.Role:
		return clearIfLarge(&o.Rules, maxRules)
	case *rbacv1.RoleBinding:
		return clearIfLarge(&o.Subjects, maxRules)
	case *discoveryv1.EndpointSlice:
		boundEndpoints(o)
	case *metav1.PartialObjectMetadata:
		o.Annotations, o.Finalizers = nil, nil
	case *unstructured.Unstructured:
		return boundUnstructured(o)
	default:
		return boundCatalogObject(o)
	}
	return false
}

// boundCatalogObject does the same for the other kinds that catalogs consist of.
func boundCatalogObject(o any) (cut bool) {
	switch o := o.(type) {
	case *corev1.Pod:
		boundPod(o)
	case *corev1.Service:
		return clearIfLarge(&o.Spec, maxPart)
	case *corev1.ServiceAccount:
		cutSecrets, cutPulls := clearIfLarge(&o.Secrets, maxPart/2), clearIfLarge(&o.ImagePullSecrets, maxPart/2)
		return cutSecrets || cutPulls
	case *networkingv1.NetworkPolicy:
		return clearIfLarge(&o.Spec, maxPart)
	case *policyv1.PodDisruptionBudget:
		cutSpec, cutStatus := clearIfLarge(&o.Spec, maxPart/2), clearIfLarge(&o.Status, maxPart/2)
		return cutSpec || cutStatus
	}
	return false
}

// clearIfLarge clears a part of an object that takes more memory than its maximum, and reports whether it did.
func clearIfLarge[T any](part *T, most int) (cut bool) {
	if memorySize(part, most) <= most {
		return false
	}
	*part = *new(T)
	return true
}

// boundDeployment leaves the Deployments of versions and catalogs unchanged, unless they are too large. Of
// others it keeps the fields by which another lifecycle manager is recognized.
func boundDeployment(d *appsv1.Deployment) (cut bool) {
	if namesOwner(d) && memorySize(&d.Spec, maxDeployment)+memorySize(&d.Status, maxDeployment) <= maxDeployment {
		return false
	}
	competing.Reduce(d)
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Status.ObservedGeneration,
		Replicas:           d.Status.Replicas, UpdatedReplicas: d.Status.UpdatedReplicas,
		ReadyReplicas: d.Status.ReadyReplicas, AvailableReplicas: d.Status.AvailableReplicas,
		UnavailableReplicas: d.Status.UnavailableReplicas,
	}
	for _, c := range d.Status.Conditions[:min(len(d.Status.Conditions), maxConditions)] {
		c.Message, _ = clip(c.Message, maxMessage)
		status.Conditions = append(status.Conditions, c)
	}
	d.Status = status
	return true
}

// boundPod removes conditions and states of containers beyond the first ones, and clips their texts. Kubelets
// copy the image name, which the creator of a pod chooses, into states and messages.
func boundPod(pod *corev1.Pod) {
	const conditions, containers = 16, 8
	status := &pod.Status
	status.Conditions = atMost(status.Conditions, conditions)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		clipTexts(&c.Message, &c.Reason)
	}
	status.InitContainerStatuses = atMost(status.InitContainerStatuses, containers)
	status.ContainerStatuses = atMost(status.ContainerStatuses, containers)
	for _, states := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range states {
			boundContainer(&states[i])
		}
	}
}

// atMost returns at most n items of a list. It copies the items, since a subslice would keep the whole list in
// memory.
func atMost[T any](items []T, n int) []T {
	if len(items) <= n {
		return items
	}
	return slices.Clone(items[:n])
}

// boundContainer clips the texts in the status of a container, and removes its resources and
// mounts.
func boundContainer(c *corev1.ContainerStatus) {
	clipTexts(&c.Image, &c.ImageID, &c.ContainerID)
	c.AllocatedResources, c.Resources, c.VolumeMounts, c.AllocatedResourcesStatus = nil, nil, nil, nil
	for _, state := range []*corev1.ContainerState{&c.State, &c.LastTerminationState} {
		if w := state.Waiting; w != nil {
			clipTexts(&w.Message, &w.Reason)
		}
		if t := state.Terminated; t != nil {
			clipTexts(&t.Message, &t.Reason, &t.ContainerID)
		}
	}
}

// clipTexts clips a text to maxName bytes, and shorter texts to maxMessage bytes.
func clipTexts(text *string, shorter ...*string) {
	*text, _ = clip(*text, maxName)
	for _, s := range shorter {
		*s, _ = clip(*s, maxMessage)
	}
}

// namesOwner reports whether labels or owners of an object name a version or a catalog. The creator of the object
// sets them, so they are no proof.
func namesOwner(o metav1.Object) bool {
	for key := range o.GetLabels() {
		if key == api.LabelManaged || key == api.LabelOwner || strings.HasPrefix(key, api.PrefixComponent) {
			return true
		}
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == operatorsv1alpha1.ClusterServiceVersionKind || ref.Kind == operatorsv1alpha1.CatalogSourceKind {
			return true
		}
	}
	return false
}

// boundSubscription clips the names in a Subscription, and removes a configuration that is too large. No
// existing object has a name of that length.
func boundSubscription(sub *operatorsv1alpha1.Subscription) (cut bool) {
	spec := sub.Spec
	if spec == nil {
		return false
	}
	for _, text := range []*string{
		&spec.CatalogSource, &spec.CatalogSourceNamespace, &spec.Package, &spec.Channel, &spec.StartingCSV, (*string)(&spec.InstallPlanApproval),
	} {
		clipped, long := clip(*text, maxName)
		*text, cut = clipped, cut || long
	}
	if spec.Config != nil && memorySize(spec.Config, maxConfig) > maxConfig {
		spec.Config, cut = nil, true
	}
	return cut
}

// boundEndpoints keeps the fields of endpoints that lead to a pod. Consumers must use only the first address of
// each.
func boundEndpoints(slice *discoveryv1.EndpointSlice) {
	slice.Annotations = nil
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		left := discoveryv1.Endpoint{Addresses: slices.Clone(e.Addresses[:min(len(e.Addresses), 1)]), Conditions: e.Conditions, NodeName: e.NodeName}
		if ref := e.TargetRef; ref != nil {
			left.TargetRef = &corev1.ObjectReference{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
		}
		*e = left
	}
}

// boundUnstructured removes everything but the metadata of an object that is too large.
func boundUnstructured(u *unstructured.Unstructured) (cut bool) {
	content := map[string]any{}
	for key, value := range u.Object {
		if key != "metadata" {
			content[key] = value
		}
	}
	if memorySize(&content, maxPart) <= maxPart {
		return false
	}
	u.Object = map[string]any{"apiVersion": u.Object["apiVersion"], "kind": u.Object["kind"], "metadata": u.Object["metadata"]}
	return true
}

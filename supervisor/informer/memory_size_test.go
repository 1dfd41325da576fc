package informer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strconv"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// short returns a map with a number of entries of minimum length.
func short(n int) map[string]string {
	m := make(map[string]string, n)
	for i := range n {
		m[strconv.FormatInt(int64(i), 36)] = ""
	}
	return m
}

// packed returns objects of the kinds that tenants create. Their lists and maps have many elements that take
// few bytes, or none, in their encoding.
func packed(n int) map[string][]client.Object {
	managed := func() metav1.ObjectMeta { return metav1.ObjectMeta{Labels: map[string]string{"olm.managed": "true"}} }
	deployment := func(spec corev1.PodSpec) client.Object {
		return &appsv1.Deployment{ObjectMeta: managed(), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	}
	container := func(c corev1.Container) client.Object {
		return deployment(corev1.PodSpec{Containers: []corev1.Container{c}})
	}
	subscription := func(config operatorsv1alpha1.SubscriptionConfig) client.Object {
		return &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{Config: &config}}
	}
	ports := make([]any, n)
	for i := range ports {
		ports[i] = map[string]any{}
	}
	return map[string][]client.Object{
		"Deployment": {
			container(corev1.Container{Args: make([]string, n)}),
			container(corev1.Container{Env: make([]corev1.EnvVar, n)}),
			container(corev1.Container{Ports: make([]corev1.ContainerPort, n)}),
			deployment(corev1.PodSpec{Containers: make([]corev1.Container, n)}),
			deployment(corev1.PodSpec{Volumes: make([]corev1.Volume, n)}),
			deployment(corev1.PodSpec{NodeSelector: short(n)}),
		},
		"Pod": {&corev1.Pod{Status: corev1.PodStatus{
			Conditions: make([]corev1.PodCondition, n), ContainerStatuses: make([]corev1.ContainerStatus, n), InitContainerStatuses: make([]corev1.ContainerStatus, n),
		}}, crashed()},
		"Service": {
			&corev1.Service{Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, n)}},
			&corev1.Service{Spec: corev1.ServiceSpec{ExternalIPs: make([]string, n)}},
			&corev1.Service{Spec: corev1.ServiceSpec{Selector: short(n)}},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"ports": ports}}},
		},
		"ServiceAccount": {&corev1.ServiceAccount{Secrets: make([]corev1.ObjectReference, n), ImagePullSecrets: make([]corev1.LocalObjectReference, n)}},
		"NetworkPolicy": {
			&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: make([]networkingv1.NetworkPolicyIngressRule, n)}},
			&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: short(n)}}},
		},
		"PodDisruptionBudget": {
			&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, n)}}},
			&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: short(n)}}},
		},
		"Subscription": {
			subscription(operatorsv1alpha1.SubscriptionConfig{Env: make([]corev1.EnvVar, n)}),
			subscription(operatorsv1alpha1.SubscriptionConfig{Volumes: make([]corev1.Volume, n)}),
			subscription(operatorsv1alpha1.SubscriptionConfig{NodeSelector: short(n)}),
		},
		"Role":        {&rbacv1.Role{Rules: make([]rbacv1.PolicyRule, n)}, &rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: make([]string, n)}}}},
		"RoleBinding": {&rbacv1.RoleBinding{Subjects: make([]rbacv1.Subject, n)}},
	}
}

// TestTransformBoundsHeap measures the memory of objects after Transform. The lists and maps of the objects
// have many elements and few bytes.
func TestTransformBoundsHeap(t *testing.T) {
	for _, size := range []struct{ elements, entries int }{{0, 20}, {0, 400}, {60, 20}, {400, 0}, {4000, 0}} {
		whole := packed(size.elements)
		for _, kind := range informer.Watches() {
			if kind.Bytes == 0 {
				continue
			}
			objects := whole[kind.Kind]
			if kind.Form == informer.Metadata {
				objects = []client.Object{metadataOf(kind)}
			} else if len(objects) == 0 {
				t.Fatalf("no objects of kind %s to try", kind.Kind)
			}
			for i, o := range objects {
				t.Run(fmt.Sprintf("%s %s %s %d of %d elements with metadata of %d", kind.Kind, kind.Form, kind.Selector, i, size.elements, size.entries), func(t *testing.T) {
					filled, _ := o.DeepCopyObject().(client.Object)
					filled.SetName("o")
					fillShort(filled, size.entries)
					if got, most := heapOf(t, filled), uint64(kind.Bytes); got > most {
						t.Errorf("%d bytes of memory are kept of an object, the table says %d", got, most)
					}
				})
			}
		}
	}
}

// fillShort adds short entries to all parts of an object's metadata.
func fillShort(o client.Object, n int) {
	labels := short(n)
	maps.Copy(labels, o.GetLabels())
	o.SetLabels(labels)
	o.SetAnnotations(short(n))
	refs := make([]metav1.OwnerReference, n)
	for i := range refs {
		refs[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "A", Name: "a", UID: "u", Controller: new(false), BlockOwnerDeletion: new(false)}
	}
	o.SetOwnerReferences(refs)
	finalizers := make([]string, n)
	for i := range finalizers {
		finalizers[i] = "a/b"
	}
	o.SetFinalizers(finalizers)
}

// heapOf returns the memory of one of many copies of an object, in bytes, as an API server sends them and
// Transform changes them.
func heapOf(t *testing.T, o client.Object) uint64 {
	t.Helper()
	const copies = 40
	decode := decoderOf(t, o)
	left := make([]any, copies)
	before := live()
	for i := range left {
		transformed, err := informer.Transform(decode())
		if err != nil {
			t.Fatal(err)
		}
		left[i] = transformed
	}
	after := live()
	runtime.KeepAlive(left)
	return (max(after, before) - before) / copies
}

// decoderOf returns a function that decodes an object repeatedly: from protobuf, or from JSON if its kind has
// no other encoding.
func decoderOf(t *testing.T, o client.Object) func() any {
	t.Helper()
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal(data []byte) error
	}
	encode := func() ([]byte, error) { return json.Marshal(o) }
	decode := json.Unmarshal
	if m, is := o.(message); is {
		encode = m.Marshal
		decode = func(data []byte, into any) error { m, _ := into.(message); return m.Unmarshal(data) }
	}
	data, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	kind := o.GetObjectKind().GroupVersionKind()
	return func() any {
		decoded, _ := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(o).Elem()))
		if err := decode(data, decoded); err != nil {
			t.Fatal(err)
		}
		decoded.GetObjectKind().SetGroupVersionKind(kind)
		return decoded
	}
}

package attack

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// Kinds returns the kinds that the supervisor watches and that a user with the ClusterRole edit may create.
func Kinds() []string {
	var kinds []string
	for _, w := range informer.Watches() {
		if w.Creator == informer.ByEdit && !slices.Contains(kinds, w.Kind) {
			kinds = append(kinds, w.Kind)
		}
	}
	return kinds
}

// filled returns functions that create a large object of a kind, by kind. The text has the size of the object.
func filled() map[string]func(meta metav1.ObjectMeta, text string) client.Object {
	return map[string]func(metav1.ObjectMeta, string) client.Object{
		"Deployment": func(meta metav1.ObjectMeta, text string) client.Object {
			labels := map[string]string{"app": meta.Name}
			return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				// A paused Deployment gets no ReplicaSet, which would be as large.
				Paused: true, Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(text)},
			}}
		},
		"Pod": func(meta metav1.ObjectMeta, text string) client.Object {
			spec := podSpec(text)
			spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "bench.example/never"}}
			return &corev1.Pod{ObjectMeta: meta, Spec: spec}
		},
		"Service": func(meta metav1.ObjectMeta, text string) client.Object {
			// A Service without a selector gets no EndpointSlices, which would be as large. Its managed
			// fields do not list external IPs; those of as many ports take several times as much.
			return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 1}}, ExternalIPs: externalIPs(len(text)),
			}}
		},
		"ServiceAccount": func(meta metav1.ObjectMeta, text string) client.Object {
			account := &corev1.ServiceAccount{ObjectMeta: meta}
			const longest = 253
			for at := 0; at+longest <= len(text); at += longest {
				account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: text[at : at+longest]})
			}
			return account
		},
		"ConfigMap": func(meta metav1.ObjectMeta, text string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"fill": text}}
		},
		"NetworkPolicy": func(meta metav1.ObjectMeta, text string) client.Object {
			return &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: selector(len(text))}}
		},
		"PodDisruptionBudget": func(meta metav1.ObjectMeta, text string) client.Object {
			return &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: new(selector(len(text)))}}
		},
		"Subscription": func(meta metav1.ObjectMeta, text string) client.Object {
			return &operatorsv1alpha1.Subscription{ObjectMeta: meta, Spec: &operatorsv1alpha1.SubscriptionSpec{
				Package: meta.Name, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace,
				Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "FILL", Value: text}}},
			}}
		},
	}
}

func podSpec(text string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "fill", Image: "registry.example/fill:1", Env: []corev1.EnvVar{{Name: "FILL", Value: text}},
	}}}
}

// selector returns a selector of a size in bytes that selects no pod.
func selector(size int) metav1.LabelSelector {
	values := make([]string, 0, size/validation.LabelValueMaxLength)
	for i := range cap(values) {
		values = append(values, fmt.Sprintf("%0*d", validation.LabelValueMaxLength, i))
	}
	if len(values) == 0 {
		return metav1.LabelSelector{MatchLabels: map[string]string{"fill": "false"}}
	}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "fill", Operator: metav1.LabelSelectorOpIn, Values: values}}}
}

// externalIPs returns addresses with a total size in bytes.
func externalIPs(size int) []string {
	const (
		each  = 40     // 38 characters and the two bytes before them in protobuf
		first = 0x1000 // the canonical form has no leading zeros
	)
	list := make([]string, 0, size/each)
	for i := range cap(list) {
		list = append(list, fmt.Sprintf("2001:db8:1111:2222:3333:4444:5555:%x", first+i))
	}
	return list
}

// object returns the object of a kind with a number. Every second one has the labels by which the
// supervisor selects its own objects.
func object(kind, namespace string, number, size int) (client.Object, error) {
	fill, known := filled()[kind]
	if !known {
		return nil, fmt.Errorf("no way is known to fill an object of kind %s", kind)
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("fill-%04d", number), Labels: map[string]string{"fill": "true"}}
	if number%2 == 0 {
		meta.Labels["olm.managed"] = "true"
		meta.Labels["olm.catalogSource"] = catalogName
		meta.Labels["olm.owner"] = "operator.v1.0.0"
		meta.Labels["olm.owner.kind"] = operatorsv1alpha1.ClusterServiceVersionKind
		meta.Labels["olm.owner.namespace"] = namespace
	}
	return fill(meta, strings.Repeat("x", size)), nil
}

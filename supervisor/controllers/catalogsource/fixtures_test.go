package catalogsource

import (
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const someDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// shop returns a CatalogSource with an image.
func shop(change ...func(*operatorsv1alpha1.CatalogSource)) *operatorsv1alpha1.CatalogSource {
	source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "shops/shop:1"}}
	source.Name, source.Namespace, source.UID = "shop", "olm", "u-1"
	for _, c := range change {
		c(source)
	}
	return source
}

func config(c operatorsv1alpha1.GrpcPodConfig) func(*operatorsv1alpha1.CatalogSource) {
	return func(source *operatorsv1alpha1.CatalogSource) { source.Spec.GrpcPodConfig = &c }
}

func annotated(key, value string) func(*operatorsv1alpha1.CatalogSource) {
	return func(source *operatorsv1alpha1.CatalogSource) { source.Annotations = map[string]string{key: value} }
}

// polling returns a CatalogSource with a polling interval.
func polling(interval string) *operatorsv1alpha1.CatalogSource {
	source := shop()
	source.CreationTimestamp = metav1.NewTime(noon)
	text := []byte(`{"registryPoll":{"interval":"` + interval + `"}}`)
	source.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{}
	if err := source.Spec.UpdateStrategy.UnmarshalJSON(text); err != nil {
		panic(err)
	}
	return source
}

// node returns a ready node.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.3.7"},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func lost(n *corev1.Node) {
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
}

func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
}

func reserved(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "for", Value: "others", Effect: corev1.TaintEffectNoSchedule}}
}

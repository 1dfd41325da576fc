package informer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// large is about the maximum size of one object in the API server.
const large = 1 << 20

// text returns a text of a size.
func text(size int) string { return strings.Repeat("x", size) }

// many returns a map with a number of bytes, of keys that begin with a prefix.
func many(prefix string, size int) map[string]string {
	m := map[string]string{}
	for i := 0; i*64 < size; i++ {
		m[fmt.Sprintf("%s%08d", prefix, i)] = text(48)
	}
	return m
}

func owners(kind, version string, n int) []metav1.OwnerReference {
	refs := make([]metav1.OwnerReference, n)
	for i := range refs {
		refs[i] = metav1.OwnerReference{APIVersion: version, Kind: kind, Name: fmt.Sprintf("%08d", i) + text(200), UID: types.UID(fmt.Sprintf("uid-%d", i))}
	}
	return refs
}

// fills returns functions that make metadata large, each in another way.
func fills() map[string]func(metav1.Object) {
	return map[string]func(metav1.Object){
		"no metadata":      func(metav1.Object) {},
		"foreign labels":   func(o metav1.Object) { o.SetLabels(many("filler/", large)) },
		"labels like ours": func(o metav1.Object) { o.SetLabels(many("olm.a", large)) },
		"component labels": func(o metav1.Object) { o.SetLabels(many("operators.coreos.com/", large)) },
		"annotations":      func(o metav1.Object) { o.SetAnnotations(many("chandlery.dev/a", 250<<10)) },
		"one annotation":   func(o metav1.Object) { o.SetAnnotations(map[string]string{"note": text(250 << 10)}) },
		"owners":           func(o metav1.Object) { o.SetOwnerReferences(owners("ConfigMap", "v1", 4000)) },
		"owners like ours": func(o metav1.Object) {
			o.SetOwnerReferences(owners("ClusterServiceVersion", "operators.coreos.com/v1alpha1", 4000))
		},
		"finalizers":     func(o metav1.Object) { o.SetFinalizers(strings.Split(strings.Repeat("chandlery.dev/x,", 60000), ",")) },
		"managed fields": func(o metav1.Object) { o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: text(large)}}) },
		"all that is kept": func(o metav1.Object) {
			o.SetLabels(many("olm.a", 2<<10))
			o.SetAnnotations(many("chandlery.dev/a", 4<<10))
			o.SetOwnerReferences(owners("ClusterServiceVersion", "operators.coreos.com/v1alpha1", 8))
		},
	}
}

// contents returns objects of the kinds that tenants create, with the maximum content.
func contents() map[string][]client.Object {
	env := []corev1.EnvVar{{Name: "FILL", Value: text(large)}}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "olm-operator", Image: "registry.example/operator-framework/olm:v1", Command: []string{"/bin/olm"}, Env: env}}}
	deployment := func(labels map[string]string) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "olm-operator", Labels: labels},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
			Status:     appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: "ReplicaFailure", Message: text(large)}}},
		}
	}
	rules, subjects := make([]rbacv1.PolicyRule, 1), make([]rbacv1.Subject, 5000)
	rules[0].ResourceNames = strings.Split(text(large/2), "")
	for i := range subjects {
		subjects[i] = rbacv1.Subject{Kind: "User", Name: text(200)}
	}
	ports, references := make([]corev1.ServicePort, 10000), make([]corev1.LocalObjectReference, 4000)
	for i := range ports {
		ports[i].Name = text(63)
	}
	for i := range references {
		references[i].Name = text(250)
	}
	selector := &metav1.LabelSelector{MatchLabels: many("a", large)}
	endpoints := make([]discoveryv1.Endpoint, 100)
	for i := range endpoints {
		endpoints[i] = discoveryv1.Endpoint{Addresses: strings.Split(text(100), ""), Hostname: new(text(60)), DeprecatedTopology: many("a", 10<<10)}
	}
	config := &operatorsv1alpha1.SubscriptionConfig{Env: env}
	return map[string][]client.Object{
		"Deployment": {deployment(nil), deployment(map[string]string{"olm.managed": "true"})},
		"Pod":        {&corev1.Pod{}, crashed()},
		"Service": {
			&corev1.Service{Spec: corev1.ServiceSpec{Ports: ports}},
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"externalName": text(large)}}},
		},
		"ServiceAccount":      {&corev1.ServiceAccount{ImagePullSecrets: references}},
		"ConfigMap":           nil,
		"NetworkPolicy":       {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}}},
		"PodDisruptionBudget": {&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}},
		"Subscription": {
			&operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "kettle", Config: config}},
			&operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{Package: text(large), Channel: text(large)}},
		},
		"EndpointSlice": {&discoveryv1.EndpointSlice{Endpoints: endpoints}},
		"Role":          {&rbacv1.Role{Rules: rules}},
		"RoleBinding":   {&rbacv1.RoleBinding{Subjects: subjects}},
	}
}

// crashed returns a pod with the maximum number of containers, whose images have long names.
func crashed() *corev1.Pod {
	pod := &corev1.Pod{}
	for range 20 {
		status := corev1.ContainerStatus{
			Name: text(63), Image: text(10 << 10), ImageID: text(10 << 10), ContainerID: text(10 << 10),
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: text(10 << 10), Message: text(10 << 10)}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: text(10 << 10), Message: text(10 << 10), ContainerID: text(10 << 10)}},
			VolumeMounts:         []corev1.VolumeMountStatus{{Name: text(63), MountPath: text(4 << 10)}},
		}
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Reason: text(10 << 10), Message: text(10 << 10)})
	}
	return pod
}

func metadataOf(w informer.Watched) client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: w.Group, Version: "v1", Kind: w.Kind})
	return o
}

// TestTransformBoundsObjectsOfTenants fills objects of each kind that tenants create in every way, and measures
// the kept size.
func TestTransformBoundsObjectsOfTenants(t *testing.T) {
	// In this test, kinds without a number in the table are bounded as well.
	const otherwise = 64 << 10
	whole := contents()
	for _, kind := range informer.Watches() {
		if kind.Creator == informer.ByAdministrators {
			continue
		}
		filled, known := whole[kind.Kind]
		if !known {
			t.Fatalf("no objects of kind %s to try", kind.Kind)
		}
		if kind.Form == informer.Metadata {
			filled = []client.Object{metadataOf(kind)}
		}
		for i, object := range filled {
			for how, fill := range fills() {
				t.Run(fmt.Sprintf("%s %s %s %d with %s", kind.Kind, kind.Form, kind.Selector, i, how), func(t *testing.T) {
					o, _ := object.DeepCopyObject().(client.Object)
					o.SetName("o")
					fill(o)
					if got, most := kept(t, o), kind.Bytes; got > most && (most > 0 || got > otherwise) {
						t.Errorf("%d bytes are kept, the table says %d", got, most)
					}
				})
			}
		}
	}
}

// kept transforms an object and returns its size afterwards. A second transform must not change it.
func kept(t *testing.T, o client.Object) int {
	t.Helper()
	left, err := informer.Transform(o)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	object, _ := left.(runtime.Object)
	again, err := informer.Transform(object.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(left, again) {
		t.Errorf("transformed again (-once +twice):\n%s", cmp.Diff(left, again))
	}
	return len(encoded)
}

// TestTransformKeepsWhatIsRead uses objects of real sizes, which controllers compare with the objects that they
// want.
func TestTransformKeepsWhatIsRead(t *testing.T) {
	managed := metav1.ObjectMeta{Name: "kettle", Labels: map[string]string{"olm.managed": "true", "olm.owner": "kettle.v1", "team": "a"}}
	spec := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "kettle:v1", Args: []string{text(30 << 10)}}}}}}
	owned := metav1.ObjectMeta{Name: "kettle", OwnerReferences: owners("CatalogSource", "operators.coreos.com/v1alpha1", 1)}
	for reason, o := range map[string]client.Object{
		"the Deployment of a version":              &appsv1.Deployment{ObjectMeta: managed, Spec: spec},
		"the Deployment of a catalog":              &appsv1.Deployment{ObjectMeta: owned, Spec: spec},
		"a component that a user labelled":         &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"operators.coreos.com/kettle.ops": ""}}, Spec: spec},
		"a role, whosever":                         &rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
		"a binding, whosever":                      &rbacv1.RoleBinding{Subjects: []rbacv1.Subject{{Name: "a"}}},
		"a Subscription with its configuration":    &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Value: text(4 << 10)}}}}},
		"a Subscription with its transitions":      &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"chandlery.dev/transitions": text(16 << 10)}}},
		"a ClusterServiceVersion, however large":   &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"alm-examples": text(200 << 10)}}},
		"a ClusterRole, which administrators make": &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: many("a", 8<<10)}},
	} {
		t.Run(reason, func(t *testing.T) {
			before, _ := o.DeepCopyObject().(client.Object)
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
			left, err := informer.Transform(o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, left); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// TestTransformMarksWhatIsMissing checks that objects that lack a part are marked.
func TestTransformMarksWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		reason string
		o      client.Object
		want   bool
	}{
		{"a foreign Deployment", &appsv1.Deployment{}, true},
		{"a large Deployment of ours", contents()["Deployment"][1], true},
		{"a large role", contents()["Role"][0], true},
		{"a Subscription without its configuration", contents()["Subscription"][0], true},
		{"a Service without its labels", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: many("a", 8<<10)}}, true},
		{"a Service", &corev1.Service{}, false},
		{"a pod", &corev1.Pod{}, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			left, err := informer.Transform(tt.o)
			if err != nil {
				t.Fatal(err)
			}
			object, _ := left.(client.Object)
			if got := informer.Trimmed(object); got != tt.want {
				t.Errorf("trimmed is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestTransformKeepsWhatMatters has objects whose metadata exceeds the bounds. A tenant has added everything before
// the entries that lifecycle managers read.
func TestTransformKeepsWhatMatters(t *testing.T) {
	const component = "operators.coreos.com/kettle.ops"
	for reason, tt := range map[string]struct {
		fill func(metav1.Object)
		kept func(metav1.Object) bool
	}{
		"the label of an owner": {
			func(o metav1.Object) {
				labels := many("a", 8<<10)
				labels["olm.owner"] = "kettle.v1"
				o.SetLabels(labels)
			},
			func(o metav1.Object) bool { return o.GetLabels()["olm.owner"] == "kettle.v1" },
		},
		"the label of a component": {
			func(o metav1.Object) {
				labels := many("a", 8<<10)
				labels[component] = ""
				o.SetLabels(labels)
			},
			func(o metav1.Object) bool { _, has := o.GetLabels()[component]; return has },
		},
		"the label of an owner, among components": {
			func(o metav1.Object) {
				labels := many("operators.coreos.com/a", 8<<10)
				labels["olm.owner"], labels["zone"] = "kettle.v1", "z"
				o.SetLabels(labels)
			},
			func(o metav1.Object) bool { return o.GetLabels()["olm.owner"] == "kettle.v1" },
		},
		"an annotation of ours": {
			func(o metav1.Object) {
				annotations := many("a", 8<<10)
				annotations["chandlery.dev/applied-hash"] = "x"
				o.SetAnnotations(annotations)
			},
			func(o metav1.Object) bool { return o.GetAnnotations()["chandlery.dev/applied-hash"] == "x" },
		},
		"a version that owns it": {
			func(o metav1.Object) {
				o.SetOwnerReferences(append(owners("ConfigMap", "v1", 40), owners("ClusterServiceVersion", "operators.coreos.com/v1alpha1", 1)...))
			},
			func(o metav1.Object) bool { return o.GetOwnerReferences()[0].Kind == "ClusterServiceVersion" },
		},
		"a finalizer of ours": {
			func(o metav1.Object) {
				o.SetFinalizers(append(strings.Split(strings.Repeat("example.com/x,", 400)+"example.com/y", ","), "chandlery.dev/cleanup"))
			},
			func(o metav1.Object) bool { return o.GetFinalizers()[0] == "chandlery.dev/cleanup" },
		},
	} {
		t.Run(reason, func(t *testing.T) {
			o := &corev1.Service{}
			tt.fill(o)
			if _, err := informer.Transform(o); err != nil {
				t.Fatal(err)
			}
			if !informer.Trimmed(o) || !tt.kept(o) {
				t.Errorf("trimmed %t, kept %d labels, %d annotations, owners %v, finalizers %v",
					informer.Trimmed(o), len(o.Labels), len(o.Annotations), o.OwnerReferences, o.Finalizers)
			}
		})
	}
}

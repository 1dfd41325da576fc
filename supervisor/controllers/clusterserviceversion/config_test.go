package clusterserviceversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// subscription returns a Subscription for the package of the kettle.
func subscription(name string, change ...func(*operatorsv1alpha1.Subscription)) operatorsv1alpha1.Subscription {
	sub := operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: name},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "kettle"},
	}
	for _, c := range change {
		c(&sub)
	}
	return sub
}

func installed(csv string) func(*operatorsv1alpha1.Subscription) {
	return func(s *operatorsv1alpha1.Subscription) { s.Status.InstalledCSV = csv }
}

func current(csv string) func(*operatorsv1alpha1.Subscription) {
	return func(s *operatorsv1alpha1.Subscription) { s.Status.CurrentCSV = csv }
}

func TestSubscriptionOf(t *testing.T) {
	csv := kettle()
	csv.Labels = map[string]string{"operators.coreos.com/kettle.kitchen": ""}
	csv.Spec.Replaces = "kettle.v0.9"
	cases := map[string]struct {
		reason string
		subs   []operatorsv1alpha1.Subscription
		want   string
	}{
		"None":      {"nobody asked for it", nil, ""},
		"Installed": {"who has it goes first", []operatorsv1alpha1.Subscription{subscription("a", current("kettle.v1")), subscription("b", installed("kettle.v1"))}, "b"},
		"Current":   {"then who is on the way to it", []operatorsv1alpha1.Subscription{subscription("a"), subscription("b", installed("kettle.v0"), current("kettle.v1"))}, "b"},
		"Package":   {"then who has nothing of the package yet", []operatorsv1alpha1.Subscription{subscription("b"), subscription("a")}, "a"},
		"Replaced": {"or what it replaces", []operatorsv1alpha1.Subscription{
			subscription("a", installed("kettle.v0")), subscription("b", installed("kettle.v0.9")),
		}, "b"},
		"Another": {"who has another version is not meant", []operatorsv1alpha1.Subscription{
			subscription("a", installed("kettle.v0")), subscription("pot", func(s *operatorsv1alpha1.Subscription) { s.Spec.Package = "pot" }),
		}, ""},
		"NoSpec": {"what is incomplete asks for nothing", []operatorsv1alpha1.Subscription{
			subscription("a", installed("kettle.v1"), func(s *operatorsv1alpha1.Subscription) { s.Spec = nil }),
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if sub := subscriptionOf(csv, tc.subs); sub != nil {
				got = sub.Name
			}
			if got != tc.want {
				t.Errorf("%s\nsubscriptionOf(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSettingsFor(t *testing.T) {
	asking := func(text string) []operatorsv1alpha1.Subscription {
		return []operatorsv1alpha1.Subscription{subscription("my-kettle", installed("kettle.v1"), func(s *operatorsv1alpha1.Subscription) {
			s.Annotations = map[string]string{api.AnnotationConfig: text}
		})}
	}
	for name, tc := range map[string]struct{ text, want string }{
		"NoJSON":   {"replicas: 2", "invalid character"},
		"Negative": {`{"replicas":-1}`, "replicas: Invalid value: -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settingsOf(subscriptionOf(kettle(), asking(tc.text)))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "Subscription kitchen/my-kettle") {
				t.Errorf("settingsOf(%s) gives %v, want an error that names the Subscription and says %q", tc.text, err, tc.want)
			}
		})
	}
	got, err := settingsOf(subscriptionOf(kettle(), asking(`{"replicas":2,"args":{"manager":["--v=4"]},"imagePullSecrets":["pull"],"priorityClassName":"high"}`)))
	if err != nil {
		t.Fatal(err)
	}
	spec := kettle().Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
	spec.Template.Spec.Containers[0].Args = []string{"--heat"}
	got.apply(&spec)
	want := fixtures.Deployment("kitchen", "kettle", "manager").Spec
	want.Replicas = new(int32(2))
	pod := &want.Template.Spec
	pod.Containers[0].Args = []string{"--heat", "--v=4"}
	pod.ImagePullSecrets, pod.PriorityClassName = []corev1.LocalObjectReference{{Name: "pull"}}, "high"
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("the spec with the settings (-want +got):\n%s", diff)
	}
}

// TestSettingsOfContainers checks that the settings of a container or init container replace those of the bundle and
// of spec.config, and that labels of the bundle keep their values.
func TestSettingsOfContainers(t *testing.T) {
	sub := subscription("my-kettle", installed("kettle.v1"), func(s *operatorsv1alpha1.Subscription) {
		s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}},
		}
		s.Annotations = map[string]string{api.AnnotationConfig: `{
			"podLabels": {"app": "lost", "team": "tea"}, "podSecurityContext": {"runAsNonRoot": true},
			"containers": {"manager": {"resources": {"limits": {"cpu": "3"}}, "securityContext": {"privileged": false}},
			               "init": {"resources": {"limits": {"cpu": "4"}}, "securityContext": {"runAsNonRoot": true}},
			               "unknown": {"resources": {}}},
			"args": {"init": ["--fast"]}}`}
	})
	s, err := settingsOf(&sub)
	if err != nil {
		t.Fatal(err)
	}
	spec := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: declaredPod()}}
	spec.Template.Labels = map[string]string{"app": "kettle"}
	s.apply(&spec)

	want := corev1.PodTemplateSpec{Spec: declaredPod()}
	want.Labels = map[string]string{"app": "kettle", "team": "tea"}
	want.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	want.Spec.InitContainers = []corev1.Container{{
		Name: "init", Args: []string{"--fast"},
		Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("4")}},
		SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true)},
	}}
	manager, proxy := &want.Spec.Containers[0], &want.Spec.Containers[1]
	manager.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}}
	manager.SecurityContext = &corev1.SecurityContext{Privileged: new(false)}
	proxy.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}
	if diff := cmp.Diff(want, spec.Template); diff != "" {
		t.Errorf("the pods with the settings (-want +got):\n%s", diff)
	}
}

// declaredPod returns a pod with one of everything that a Subscription can change.
func declaredPod() corev1.PodSpec {
	return corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers: []corev1.Container{{
			Name: "manager", Env: []corev1.EnvVar{{Name: "HEAT", Value: "low"}, {Name: "KEPT", Value: "1"}},
			EnvFrom:      []corev1.EnvFromSource{{Prefix: "A"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "tea", MountPath: "/old"}},
			Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}, {Name: "proxy"}},
		Volumes:      []corev1.Volume{{Name: "tea"}},
		Tolerations:  []corev1.Toleration{{Key: "a"}},
		NodeSelector: map[string]string{"old": "1"},
	}
}

func TestConfigureMergesAsClustersAreUsedTo(t *testing.T) {
	volume := corev1.Volume{Name: "tea", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	config := operatorsv1alpha1.SubscriptionConfig{
		Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"ignored": "1"}},
		Env:          []corev1.EnvVar{{Name: "HEAT", Value: "high"}, {Name: "NEW", Value: "2"}},
		EnvFrom:      []corev1.EnvFromSource{{Prefix: "A"}, {Prefix: "B"}},
		Volumes:      []corev1.Volume{volume, {Name: "milk"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "tea", MountPath: "/tea"}, {Name: "milk", MountPath: "/milk"}},
		Tolerations:  []corev1.Toleration{{Key: "a"}, {Key: "b"}},
		NodeSelector: map[string]string{"new": "1"},
		Resources:    &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}},
	}
	spec := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: declaredPod()}}
	settings{config: config}.apply(&spec)
	want := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers: []corev1.Container{{
			Name: "manager", Env: []corev1.EnvVar{{Name: "HEAT", Value: "high"}, {Name: "KEPT", Value: "1"}, {Name: "NEW", Value: "2"}},
			EnvFrom: config.EnvFrom, VolumeMounts: config.VolumeMounts, Resources: *config.Resources,
		}, {Name: "proxy", Env: config.Env, EnvFrom: config.EnvFrom, VolumeMounts: config.VolumeMounts, Resources: *config.Resources}},
		Volumes: config.Volumes, Tolerations: config.Tolerations, NodeSelector: config.NodeSelector,
	}
	if diff := cmp.Diff(want, spec.Template.Spec); diff != "" {
		t.Errorf("the configured pod (-want +got):\n%s", diff)
	}

	untouched := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: declaredPod()}}
	settings{}.apply(&untouched)
	if diff := cmp.Diff(declaredPod(), untouched.Template.Spec); diff != "" {
		t.Errorf("no settings change something (-want +got):\n%s", diff)
	}
}

func TestAffinity(t *testing.T) {
	node := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}
	other := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 2}}}
	apart := &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 3}}}
	cases := map[string]struct {
		reason           string
		have, want, here *corev1.Affinity
	}{
		"Nothing":    {"what is not asked for stays", &corev1.Affinity{NodeAffinity: node}, &corev1.Affinity{NodeAffinity: node}, nil},
		"Removed":    {"an empty affinity takes all away", &corev1.Affinity{NodeAffinity: node, PodAntiAffinity: apart}, nil, &corev1.Affinity{}},
		"Replaced":   {"kind by kind", &corev1.Affinity{NodeAffinity: node, PodAntiAffinity: apart}, &corev1.Affinity{NodeAffinity: other, PodAntiAffinity: apart}, &corev1.Affinity{NodeAffinity: other}},
		"OneRemoved": {"an empty kind takes away that kind alone", &corev1.Affinity{NodeAffinity: node, PodAntiAffinity: apart}, &corev1.Affinity{NodeAffinity: node}, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
		"LastOne":    {"of the last kind nothing stays", &corev1.Affinity{PodAntiAffinity: apart}, nil, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
		"Added":      {"where there was none", nil, &corev1.Affinity{NodeAffinity: node}, &corev1.Affinity{NodeAffinity: node}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, affinity(tc.have, tc.here)); diff != "" {
				t.Errorf("%s\naffinity(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConfiguredDeployment checks that annotations are added to the Deployment and its pods without
// replacing others. A change of the settings rolls the Deployment out again.
func TestConfiguredDeployment(t *testing.T) {
	csv := kettle()
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations = map[string]string{"own": "kept"}
	config := settings{config: operatorsv1alpha1.SubscriptionConfig{
		Annotations: map[string]string{"own": "lost", "team": "tea"},
		Env:         []corev1.EnvVar{{Name: conditionEnv, Value: "lost"}},
	}}
	all, err := desiredDeployments(csv, config, func(*appsv1.Deployment) {}, podAnnotations)
	if err != nil {
		t.Fatal(err)
	}
	got := all[0]
	if diff := cmp.Diff(map[string]string{"own": "kept", "team": "tea"}, got.Spec.Template.Annotations); diff != "" {
		t.Errorf("annotations of the pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"own": "lost", "team": "tea"}, got.Annotations); diff != "" {
		t.Errorf("annotations of the Deployment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: conditionEnv, Value: "kettle.v1"}}, got.Spec.Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if got.Labels[api.LabelDeploymentHash] == desired(t, csv).Labels[api.LabelDeploymentHash] {
		t.Error("the configured Deployment has the same hash")
	}
}

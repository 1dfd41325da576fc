package clusterserviceversion

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
)

// defaulted sets the defaults of the API server in a Deployment.
func defaulted(d *appsv1.Deployment) {
	spec := &d.Spec
	if spec.Replicas == nil {
		spec.Replicas = new(int32(1))
	}
	spec.ProgressDeadlineSeconds = new(int32(600))
	pod := &spec.Template.Spec
	pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, corev1.DefaultSchedulerName
	pod.TerminationGracePeriodSeconds, pod.SecurityContext = new(int64(30)), &corev1.PodSecurityContext{}
	pod.DeprecatedServiceAccount = pod.ServiceAccountName
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.TerminationMessagePath, c.TerminationMessagePolicy, c.ImagePullPolicy = "/dev/termination-log", corev1.TerminationMessageReadFile, corev1.PullIfNotPresent
	}
}

// TestInherited checks whether a Deployment of another lifecycle manager stays as it is.
func TestInherited(t *testing.T) {
	config := operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "COLOUR", Value: "red"}}, NodeSelector: map[string]string{"disk": "fast"}}
	for _, tt := range []struct {
		reason string
		change func(have *appsv1.Deployment)
		hash   string // of the label; empty for the right one
		stays  bool
	}{
		{"made by OLM, and as it was made", func(*appsv1.Deployment) {}, "", true},
		{"made by OLM, and scaled by a user since: OLM leaves that, too", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, "", true},
		{"made in a way that is not known, and as it is wanted", func(*appsv1.Deployment) {}, "unknown", true},
		{"the same, with annotations that others put on the pods", func(d *appsv1.Deployment) { d.Spec.Template.Annotations["restarted"] = "now" }, "unknown", true},
		{"it lacks an annotation that pods read", func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, "olm.targetNamespaces") }, "unknown", false},
		{"another image", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example.com/other:v1" }, "unknown", false},
		{"a variable more", func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "SHAPE", Value: "round"})
		}, "unknown", false},
		{"a variable with another value", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env[0].Value = "blue" }, "unknown", false},
		{"a container more", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "extra"})
		}, "unknown", false},
		{"another node", func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector["zone"] = "a" }, "unknown", false},
		{"a field that was set and is not wanted", func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "high" }, "unknown", false},
		{"a field with a default that was set to something else", func(d *appsv1.Deployment) { d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(5)) }, "unknown", false},
		{"resources that the Subscription has set before and does no more", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: {}}
		}, "unknown", false},
		{"of another version", func(d *appsv1.Deployment) { d.Labels[api.LabelOwner] = "kettle.v0" }, "", false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			csv := kettle()
			csv.Annotations = map[string]string{"description": "Boils water.", "olm.targetNamespaces": "kitchen", "olm.operatorGroup": "group", "olm.operatorNamespace": "kitchen", corev1.LastAppliedConfigAnnotation: "{}"}
			settings := settings{config: config}
			have := olmDeployment(t, csv, settings)
			if tt.hash != "" {
				have.Labels[api.LabelDeploymentHash] = tt.hash
			}
			defaulted(have)
			tt.change(have)
			same := inheritedFrom(t, csv, settings, have)
			if (same != nil) != tt.stays {
				t.Fatalf("stays %v, want %v", same != nil, tt.stays)
			}
			if same == nil {
				return
			}
			// The form is the same, whether it is applied or not.
			if same.Labels[api.LabelDeploymentHash] != have.Labels[api.LabelDeploymentHash] {
				t.Errorf("hash %s, want %s", same.Labels[api.LabelDeploymentHash], have.Labels[api.LabelDeploymentHash])
			}
			for key, value := range have.Spec.Template.Annotations {
				if same.Spec.Template.Annotations[key] != value {
					t.Errorf("annotation %s would be %q, is %q", key, same.Spec.Template.Annotations[key], value)
				}
			}
		})
	}
}

// derived returns the Deployment of a version with some annotations on its pods.
func derived(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, config settings, annotations podAnnotator) *appsv1.Deployment {
	t.Helper()
	var hooks *webhook.State
	all, err := desiredDeployments(csv, config, hooks.Mount, annotations)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// olmDeployment returns the Deployment of a version as OLM creates it: with all its annotations on the pods.
func olmDeployment(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, config settings) *appsv1.Deployment {
	t.Helper()
	d := derived(t, csv, config, podAnnotations)
	delete(d.Labels, api.LabelPodAnnotations)
	maps.Copy(d.Spec.Template.Annotations, csv.Annotations)
	var err error
	if d.Labels[api.LabelDeploymentHash], err = specHash(&d.Spec); err != nil {
		t.Fatal(err)
	}
	return d
}

// formerDeployment returns the Deployment of a version as earlier releases created it.
func formerDeployment(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, config settings) *appsv1.Deployment {
	t.Helper()
	d := derived(t, csv, config, formerPodAnnotations)
	delete(d.Labels, api.LabelPodAnnotations)
	return d
}

func inheritedFrom(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, config settings, have *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	same, err := adoptedDeployment(csv, derived(t, csv, config, podAnnotations), derived(t, csv, config, formerPodAnnotations), have)
	if err != nil {
		t.Fatal(err)
	}
	return same
}

// TestInheritedForms checks which changes of a version replace the pods that OLM, an earlier release or
// this one created.
func TestInheritedForms(t *testing.T) {
	type maker func(*testing.T, *operatorsv1alpha1.ClusterServiceVersion, settings) *appsv1.Deployment
	own := func(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, config settings) *appsv1.Deployment {
		t.Helper()
		return derived(t, csv, config, podAnnotations)
	}
	set := func(key, value string) func(*operatorsv1alpha1.ClusterServiceVersion, *settings) {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion, _ *settings) { csv.Annotations[key] = value }
	}
	nothing := func(*operatorsv1alpha1.ClusterServiceVersion, *settings) {}
	for name, tt := range map[string]struct {
		made   maker
		change func(*operatorsv1alpha1.ClusterServiceVersion, *settings)
		stays  bool
	}{
		"OLM":                      {olmDeployment, nothing, true},
		"OLMSkipCleanup":           {olmDeployment, set("chandlery.dev/skip-cleanup", "true"), true},
		"OLMLastApplied":           {olmDeployment, set(corev1.LastAppliedConfigAnnotation, "{new}"), true},
		"OLMAnnotationAdded":       {olmDeployment, set("mesh", "on"), false},
		"OLMAnnotationChanged":     {olmDeployment, set("team", "b"), false},
		"OLMGroup":                 {olmDeployment, set("olm.targetNamespaces", "kitchen,pantry"), false},
		"FormerRelease":            {formerDeployment, nothing, true},
		"FormerReleaseSkipCleanup": {formerDeployment, set("chandlery.dev/skip-cleanup", "true"), true},
		"FormerReleaseAnnotation":  {formerDeployment, set("mesh", "on"), true},
		"FormerReleaseGroup":       {formerDeployment, set("olm.targetNamespaces", "kitchen,pantry"), false},
		"FormerReleaseConfig": {formerDeployment, func(_ *operatorsv1alpha1.ClusterServiceVersion, s *settings) {
			s.config.Env = []corev1.EnvVar{{Name: "COLOUR", Value: "red"}}
		}, false},
		"OwnSkipCleanup":      {own, set("chandlery.dev/skip-cleanup", "true"), true},
		"OwnLastApplied":      {own, set(corev1.LastAppliedConfigAnnotation, "{new}"), true},
		"OwnAnnotationAdded":  {own, set("mesh", "on"), false},
		"OwnAnnotationChange": {own, set("team", "b"), false},
		"OwnAnnotationRemoved": {own, func(csv *operatorsv1alpha1.ClusterServiceVersion, _ *settings) {
			delete(csv.Annotations, "team")
		}, false},
		// Without annotations of its own, a version has the same pods as in earlier releases.
		"OwnFirstAnnotation": {func(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, config settings) *appsv1.Deployment {
			t.Helper()
			delete(csv.Annotations, "team")
			return own(t, csv, config)
		}, set("mesh", "on"), false},
	} {
		t.Run(name, func(t *testing.T) {
			csv, config := kettle(), settings{}
			csv.Annotations = map[string]string{
				"team": "a", "olm.targetNamespaces": "kitchen", "olm.operatorGroup": "group", "olm.operatorNamespace": "kitchen",
				corev1.LastAppliedConfigAnnotation: "{}",
			}
			have := tt.made(t, csv, config)
			defaulted(have)
			tt.change(csv, &config)
			want := derived(t, csv, config, podAnnotations)
			same := inheritedFrom(t, csv, config, have)
			stays := same != nil || want.Labels[api.LabelDeploymentHash] == have.Labels[api.LabelDeploymentHash]
			if stays != tt.stays {
				t.Fatalf("stays %v, want %v", stays, tt.stays)
			}
			if same == nil {
				return
			}
			if diff := cmp.Diff(have.Labels, same.Labels); diff != "" {
				t.Errorf("labels (-have +same):\n%s", diff)
			}
			if diff := cmp.Diff(have.Spec.Template.Annotations, same.Spec.Template.Annotations); diff != "" {
				t.Errorf("annotations of the pods (-have +same):\n%s", diff)
			}
		})
	}
}

// TestInheritedAccount checks whether pods stay that an earlier release created without a service account. Their
// template must not get one, since that would replace them.
func TestInheritedAccount(t *testing.T) {
	for name, tt := range map[string]struct {
		account string
		stays   bool
	}{
		"Default": {"default", true},
		"Other":   {"kettle", false},
	} {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = ""
			have := derived(t, csv, settings{}, podAnnotations)
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = tt.account
			same := inheritedFrom(t, csv, settings{}, have)
			if (same != nil) != tt.stays {
				t.Fatalf("stays %v, want %v", same != nil, tt.stays)
			}
			if same != nil && same.Spec.Template.Spec.ServiceAccountName != "" {
				t.Errorf("the pods would get the account %s", same.Spec.Template.Spec.ServiceAccountName)
			}
		})
	}
}

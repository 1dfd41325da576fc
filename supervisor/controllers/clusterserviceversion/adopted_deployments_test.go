package clusterserviceversion

import (
	"testing"

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
		{"made by OLM, and scaled by somebody since: OLM leaves that, too", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, "", true},
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
			csv.Annotations = map[string]string{"description": "Boils water.", "olm.targetNamespaces": "kitchen", "olm.operatorGroup": "group", "olm.operatorNamespace": "kitchen"}
			var hooks *webhook.State
			settings := settings{config: config}
			made, err := desiredDeployments(csv, settings, hooks.Mount)
			if err != nil {
				t.Fatal(err)
			}
			have := made[0]
			annotate(have, csv)
			if have.Labels[api.LabelDeploymentHash], err = specHash(&have.Spec); err != nil {
				t.Fatal(err)
			}
			if tt.hash != "" {
				have.Labels[api.LabelDeploymentHash] = tt.hash
			}
			defaulted(have)
			tt.change(have)
			wanted, err := desiredDeployments(csv, settings, hooks.Mount)
			if err != nil {
				t.Fatal(err)
			}
			same, err := adoptedDeployment(csv, wanted[0], have)
			if err != nil || (same != nil) != tt.stays {
				t.Fatalf("stays %v, error %v; want %v", same != nil, err, tt.stays)
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

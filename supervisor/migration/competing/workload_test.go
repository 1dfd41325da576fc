package competing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

const olmImage = "registry.example.com/operator-framework/olm:v0.40.0"

// deployment returns a Deployment with one container, changed by the case.
func deployment(name string, change func(*appsv1.Deployment)) appsv1.Deployment {
	program := map[string]string{"olm-operator": "/bin/olm", "catalog-operator": "/bin/catalog"}[name]
	d := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name, Labels: map[string]string{"app": name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: olmImage, Command: []string{program}}}},
			},
		},
		Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1},
	}
	if change != nil {
		change(&d)
	}
	return d
}

func scaled(replicas, pods int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Replicas, d.Status.Replicas, d.Status.ReadyReplicas = &replicas, pods, pods
	}
}

func TestEvaluate(t *testing.T) {
	container := func(change func(*corev1.Container)) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec.Containers[0]) }
	}
	for _, tt := range []struct {
		reason string
		in     appsv1.Deployment
		want   State
		says   string
	}{
		{"OLM as it is released", deployment("olm-operator", nil), Running, "olm/olm-operator (1 of 1 replicas ready, image " + olmImage + ")"},
		{"its other half", deployment("catalog-operator", nil), Running, "olm/catalog-operator"},
		{"one that is starting counts: it will write in a moment", deployment("olm-operator", scaled(1, 0)), Running, "(0 of 1 replicas ready"},
		{"one whose pods are still there may still write", deployment("olm-operator", scaled(0, 1)), Running, "(1 of 1 replicas ready"},
		{"replicas that are left out are one", deployment("olm-operator", func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status.Replicas = nil, 0 }), Running, ""},
		{"somebody stopped it", deployment("olm-operator", scaled(0, 0)), Stopped, ""},
		{"we stopped it", deployment("olm-operator", func(d *appsv1.Deployment) {
			scaled(0, 0)(d)
			d.Labels[api.LabelTakenOver] = "1"
		}), HandedOver, ""},
		{"it was started again after that", deployment("olm-operator", func(d *appsv1.Deployment) {
			d.Labels[api.LabelTakenOver] = "1"
		}), Running, "scaled up again"},
		{"in whatever namespace", deployment("olm-operator", func(d *appsv1.Deployment) { d.Namespace = "somewhere" }), Running, "somewhere/olm-operator"},
		{"under another name, by its label", deployment("olm-operator", func(d *appsv1.Deployment) { d.Name = "vendor-olm" }), Running, "olm/vendor-olm"},
		{"under another name and label, by program and image", deployment("olm-operator", func(d *appsv1.Deployment) {
			d.Name, d.Labels, d.Spec.Template.Labels = "vendor-olm", nil, nil
		}), Running, ""},
		{"the image runs the program by itself", deployment("olm-operator", container(func(c *corev1.Container) { c.Command = nil })), Running, ""},
		{"an image by digest has no version", deployment("olm-operator", container(func(c *corev1.Container) {
			c.Image = "registry.example.com:5000/operator-framework/olm@sha256:abc"
		})), Running, "olm@sha256:abc)"},
		{"OpenShift says its version, and who keeps the Deployment", deployment("olm-operator", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RELEASE_VERSION", Value: "4.19.3"}}
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Name: "version"}}
		}), Running, "version 4.19.3, kept by ClusterVersion version"},
		{"the same, by its annotation", deployment("catalog-operator", func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}
		}), Running, "kept by ClusterVersion version"},

		{"another operator of that name", deployment("catalog-operator", container(func(c *corev1.Container) {
			c.Name, c.Image, c.Command = "main", "registry.example.com/shop/catalog-operator:v1", []string{"/manager"}
		})), None, ""},
		{"another operator of that name, whose image has no command", deployment("catalog-operator", container(func(c *corev1.Container) {
			c.Image, c.Command = "registry.example.com/shop/catalog-operator:v1", nil
		})), None, ""},
		{"a program called olm of somebody else", deployment("lamp", container(func(c *corev1.Container) {
			c.Image, c.Command = "registry.example.com/lamp:v1", []string{"/bin/olm"}
		})), None, ""},
		{"the package server writes nothing that we write", deployment("packageserver", container(func(c *corev1.Container) {
			c.Command = []string{"/bin/package-server"}
		})), None, ""},
		{"a Deployment in the namespace olm", deployment("lamp", container(func(c *corev1.Container) {
			c.Image, c.Command = "registry.example.com/lamp:v1", nil
		})), None, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			f := Evaluate(Input{Workloads: WorkloadsAmong([]appsv1.Deployment{tt.in})})
			if f.State != tt.want {
				t.Errorf("state %s, want %s", f.State, tt.want)
			}
			err := f.Err()
			if (err != nil) != (tt.want == Running) {
				t.Fatalf("refusal: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q lacks %q", err, tt.says)
			}
		})
	}
}

// TestRecorded checks that an error warns of a missing record only where there is none.
func TestRecorded(t *testing.T) {
	f := Evaluate(Input{Workloads: []Workload{workload(deployment("olm-operator", nil))}})
	for _, recorded := range []bool{false, true} {
		text := (&Error{Finding: f, Recorded: recorded}).Error()
		if !strings.Contains(text, "--replicas=0") || strings.Contains(text, "without a record") == recorded {
			t.Errorf("recorded %t: %s", recorded, text)
		}
	}
}

// workload returns the workload of a Deployment of OLM.
func workload(d appsv1.Deployment) Workload { return *recognize(&d) }

// TestEvaluateTogether checks the finding for several Deployments.
func TestEvaluateTogether(t *testing.T) {
	stopped := deployment("olm-operator", scaled(0, 0))
	for _, tt := range []struct {
		reason string
		in     Input
		want   State
		says   []string
	}{
		{"nothing is none", Input{}, None, nil},
		{"one that may not be seen is not none", Input{Hidden: []string{"Deployments"}}, Unknown, nil},
		{"what runs counts, whatever may not be seen", Input{Hidden: []string{"Leases"}, Workloads: []Workload{workload(deployment("olm-operator", nil))}}, Running, nil},
		{
			"one of two runs",
			Input{Workloads: []Workload{workload(stopped), workload(deployment("catalog-operator", nil))}},
			Running,
			[]string{"kubectl chandlery migrate --dry-run", "--takeover", "kubectl -n olm scale deployment catalog-operator --replicas=0 (without a record"},
		},
		{
			"both run",
			Input{Workloads: []Workload{workload(deployment("olm-operator", nil)), workload(deployment("catalog-operator", nil))}},
			Running,
			[]string{"kubectl -n olm scale deployment catalog-operator olm-operator --replicas=0"},
		},
		{
			"another supervisor",
			Input{Supervisors: []Supervisor{{Namespace: "elsewhere", Holder: "a_1"}}},
			Running,
			[]string{"another supervisor (a_1, Lease elsewhere/chandlery-supervisor)", "--leader-election-namespace"},
		},
		{
			"scaling what OpenShift keeps would not help",
			Input{Workloads: []Workload{workload(deployment("olm-operator", func(d *appsv1.Deployment) {
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Name: "version"}}
			}))}},
			Running,
			[]string{"show the obstacles"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			f := Evaluate(tt.in)
			if f.State != tt.want {
				t.Errorf("state %s, want %s", f.State, tt.want)
			}
			for _, says := range tt.says {
				if err := f.Err(); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%v lacks %q", err, says)
				}
			}
			if diff := cmp.Diff(tt.in.Hidden, f.Hidden); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDescribe checks that a Deployment that was taken over and is still stopped is not described as running.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		reason         string
		replicas, pods int32
		again          bool
	}{
		{"stopped since", 0, 0, false},
		{"started again", 1, 0, true},
		{"its pod is still there", 0, 1, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			d := deployment("olm-operator", scaled(tt.replicas, tt.pods))
			d.Labels[api.LabelTakenOver] = "1"
			if text := recognize(&d).Describe(); strings.Contains(text, "scaled up again") != tt.again {
				t.Error(text)
			}
		})
	}
}

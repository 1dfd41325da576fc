package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestPutDeployment checks what the next version makes of a Deployment, by its creator and later
// writers.
func TestPutDeployment(t *testing.T) {
	derive := func(name string, containers ...corev1.Container) *appsv1.Deployment {
		csv := kettle()
		csv.Name, csv.UID = name, types.UID(name)
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers = containers
		desired, err := desiredDeployments(csv, settings{}, func(*appsv1.Deployment) {}, podAnnotations)
		if err != nil {
			t.Fatal(err)
		}
		return desired[0]
	}
	manager := func(image string, env ...corev1.EnvVar) corev1.Container {
		return corev1.Container{Name: "manager", Image: image, Env: env}
	}
	fromField := corev1.EnvVar{Name: "HEAT", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}
	old := derive("kettle.v0", manager("kettle:0", corev1.EnvVar{Name: "HEAT", Value: "high"}, corev1.EnvVar{Name: "FUEL", Value: "coal"}),
		corev1.Container{Name: "whistle", Image: "whistle:0"})
	next := derive("kettle.v1", manager("kettle:1", fromField))
	cases := map[string]struct {
		reason string
		maker  client.FieldOwner // empty: there is none
		adds   bool              // another client adds a container
		want   []string
	}{
		"Absent":   {"there is none yet", "", false, []string{"manager"}},
		"Ours":     {"an earlier version of ours made it", api.FieldManager, false, []string{"manager"}},
		"OLM":      {"another lifecycle manager made it", "olm", false, []string{"manager"}},
		"Injected": {"what somebody added stays", "olm", true, []string{"manager", "tracing"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithReturnManagedFields().Build()
			w := deploymentWriter{client: c, live: c}
			switch tc.maker {
			case "":
			case api.FieldManager:
				if _, err := w.putOne(t.Context(), c, old); err != nil {
					t.Fatal(err)
				}
			default:
				if err := c.Create(t.Context(), old.DeepCopy(), tc.maker); err != nil {
					t.Fatal(err)
				}
			}
			if tc.adds {
				theirs := &appsv1.Deployment{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), theirs); err != nil {
					t.Fatal(err)
				}
				spec := &theirs.Spec.Template.Spec
				spec.Containers = append(spec.Containers, corev1.Container{Name: "tracing", Image: "tracing:1"})
				if err := c.Update(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second changes nothing
				if _, err := w.putOne(t.Context(), c, next); err != nil {
					t.Fatal(err)
				}
			}
			var got appsv1.Deployment
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(next), &got); err != nil {
				t.Fatal(err)
			}
			var containers []string
			for _, c := range got.Spec.Template.Spec.Containers {
				containers = append(containers, c.Name)
			}
			if diff := cmp.Diff(tc.want, containers); diff != "" {
				t.Errorf("%s: containers -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(next.Spec.Template.Spec.Containers[0], got.Spec.Template.Spec.Containers[0]); diff != "" {
				t.Errorf("%s: the operator's own container -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(next.Labels, got.Labels); diff != "" {
				t.Errorf("%s: labels -want, +got:\n%s", tc.reason, diff)
			}
			if owners := len(got.OwnerReferences); tc.maker != "olm" && owners != 1 {
				t.Errorf("%s: %d owners", tc.reason, owners)
			}
		})
	}
}

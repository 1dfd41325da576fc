package scale

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestObjects(t *testing.T) {
	manifests, err := plainManifests(packageName)
	if err != nil {
		t.Fatal(err)
	}
	version := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict([]byte(manifests[fileCSV]), version); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects(version, "a") {
		got = append(got, fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
	}
	want := []string{
		"*v1.ServiceAccount a/widget", "*v1.Role a/widget", "*v1.RoleBinding a/widget",
		"*v1.ClusterRole /a-widget", "*v1.ClusterRoleBinding /a-widget", "*v1.Deployment a/widget",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an account with two kinds of rights is one: -want +got:\n%s", diff)
	}
}

func TestAvailable(t *testing.T) {
	with := func(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus) *appsv1.Deployment {
		return &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: kind, Status: status}}}}
	}
	cases := map[string]struct {
		reason     string
		deployment *appsv1.Deployment
		want       bool
	}{
		"New":       {"the controller has not seen it", &appsv1.Deployment{}, false},
		"Waiting":   {"its pods are not ready", with(appsv1.DeploymentAvailable, corev1.ConditionFalse), false},
		"Other":     {"another condition says nothing of its pods", with(appsv1.DeploymentProgressing, corev1.ConditionTrue), false},
		"Available": {"its pods are ready", with(appsv1.DeploymentAvailable, corev1.ConditionTrue), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := available(tc.deployment); got != tc.want {
				t.Errorf("%s: available() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

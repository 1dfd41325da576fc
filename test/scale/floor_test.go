package scale

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

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

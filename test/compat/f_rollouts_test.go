package compat_test

import (
	"fmt"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
)

// TestRolloutSentences checks the messages of versions whose Deployment is rolled out.
func TestRolloutSentences(t *testing.T) {
	t.Parallel()
	const ready, installing = operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling
	waits := func(format string) func(string) wording {
		return func(d string) wording {
			return exactly(fmt.Sprintf("installing: waiting for deployment %s to become ready: ", d) + fmt.Sprintf(format, d))
		}
	}
	withAnnotation := func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations = map[string]string{"team": "a"} }
	for _, tc := range []rolloutCase{
		{versionCase: versionCase{
			id: "F-CSV-DeploymentNotObserved", phase: installing, reason: "InstallWaiting",
			wording: waits("waiting for spec update of deployment %q to be observed..."),
		}, refused: "true"},
		{versionCase: versionCase{
			id: "F-CSV-AvailabilityMissing", after: deploymentObserved,
			phase: installing, reason: "InstallWaiting", wording: waits(`deployment %q not available: missing condition "Available"`),
		}, refused: "has(object.status.conditions)"},
		{versionCase: versionCase{
			id: "F-CSV-ReplicasOutdated", after: rolloutWithoutNode,
			phase: installing, reason: "InstallWaiting", wording: waits("deployment %q waiting for 1 outdated replica(s) to be terminated"),
		}},
		{versionCase: versionCase{
			id: "F-CSV-AnnotationMissing", change: withAnnotation, after: annotated("mesh", "on"),
			phase: ready, reason: "ComponentUnhealthy", wording: always(exactly("installing: annotations on deployment does not contain expected key: mesh")),
		}},
		{versionCase: versionCase{
			id: "F-CSV-AnnotationUnexpected", change: withAnnotation, after: annotated("team", "b"),
			phase: ready, reason: "ComponentUnhealthy", wording: always(exactly("installing: unexpected annotation on deployment. Expected team:b, found team:a")),
		}},
	} {
		compattest.Check(t, tc.id, func(t *testing.T, c *compattest.Cluster) {
			if tc.refused != "" {
				refuse(t, c, requests{"apps", "deployments/status", admissionregistrationv1.Update, fmt.Sprintf("request.namespace == %q && %s", c.Namespace, tc.refused)})
			}
			checkVersion(c, tc.versionCase)
		})
	}
}

// rolloutCase is a version whose Deployment may lack a status.
type rolloutCase struct {
	versionCase

	// refused is an expression for the writes to the status of the Deployment that the API server refuses; none if empty.
	refused string
}

// deploymentObserved writes a status without conditions to the Deployment of a version.
func deploymentObserved(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	observed := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))
	c.Eventually(compattest.Patience, func() string {
		if err := c.Status().Patch(background(c), deploymentOf(csv), observed); err != nil {
			return err.Error()
		}
		return ""
	})
}

// rolloutWithoutNode changes the Deployment of a running version so that no node fits its pods.
func rolloutWithoutNode(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseSucceeded))
	changed := csv.DeepCopy()
	withoutNode(changed)
	changeObject(c, csv, map[string]any{"spec": map[string]any{"install": changed.Spec.InstallStrategy}})
}

// annotated sets an annotation of a running version.
func annotated(key, value string) func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion) {
	return func(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
		c.Eventually(compattest.Patience, phaseOf(c, csv, operatorsv1alpha1.CSVPhaseSucceeded))
		changeObject(c, csv, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	}
}

package compat_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
)

// TestRepairs checks the order of webhook rules, the repair of a certificate, and the length of the history.
func TestRepairs(t *testing.T) {
	t.Parallel()
	const pending, failed = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseFailed
	order := versionCase{
		id: "F10-Order", change: func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			admissionWebhook(webhookRule("operators.coreos.com", "subscriptions"))(csv)
			hook := &csv.Spec.WebhookDefinitions[0]
			hook.Rules = append(hook.Rules, webhookRule("*", "things"))
		}, phase: failed, reason: "InvalidWebhookDescription", wording: always(exactly("webhook rules cannot include the OLM group")),
	}
	compattest.Check(t, order.id, func(_ *testing.T, c *compattest.Cluster) { checkVersion(c, order) })
	compattest.Check(t, "F-CSV-CertificateLost", func(_ *testing.T, c *compattest.Cluster) {
		csv := c.CSV("crank.v1", ownsWebhook("f-lost.lamps.example"))
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: deploymentOf(csv).Name + "-service-cert"}}
		deleteObject(c, secret)
		c.Eventually(compattest.Patience, func() string { return c.Read(secret) })
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
	})
	compattest.Check(t, "F-CSV-History", func(t *testing.T, c *compattest.Cluster) {
		const limit = 20
		csv := c.CSV("crank.v1")
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		var history []operatorsv1alpha1.ClusterServiceVersionCondition
		for i := range limit {
			at := metav1.NewTime(time.Now().Add(time.Duration(i-limit) * time.Minute).Truncate(time.Second))
			history = append(history, operatorsv1alpha1.ClusterServiceVersionCondition{
				Phase: pending, Reason: "RequirementsUnknown", Message: fmt.Sprintf("entry %d", i), LastUpdateTime: &at, LastTransitionTime: &at,
			})
		}
		mergeStatus(t, c, csv, `{"status":{"conditions":`+c.Manifest(history)+`}}`)
		deleteObject(c, deploymentOf(csv))
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(csv); left != "" {
				return left
			}
			list := csv.Status.Conditions
			if len(list) != limit || list[0].Message == "entry 0" || list[limit-1].Phase != operatorsv1alpha1.CSVPhaseSucceeded {
				return fmt.Sprintf("%d entries: %s", len(list), c.Manifest(list))
			}
			return ""
		})
	})
}

package compat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// TestRepairPhases checks the first phase in which a version is after the loss of an object of its webhooks.
func TestRepairPhases(t *testing.T) {
	t.Parallel()
	secrets := func(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) client.ObjectList {
		name := deploymentOf(csv).Name + "-service-cert"
		return listOf(c, &corev1.SecretList{}, client.InNamespace(c.Namespace), client.MatchingFields{"metadata.name": name})
	}
	hooks := func(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) client.ObjectList {
		return listOf(c, &admissionregistrationv1.ValidatingWebhookConfigurationList{}, client.MatchingLabels(ownerLabelsOf(c.Namespace, csv.Name)))
	}
	for id, tc := range map[string]struct {
		find   func(*compattest.Cluster, *operatorsv1alpha1.ClusterServiceVersion) client.ObjectList
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		reason operatorsv1alpha1.ConditionReason
	}{
		"F-CSV-CertificateLost-Phase":    {secrets, operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonAPIServiceResourceIssue},
		"F-CSV-WebhookConfigurationLost": {hooks, operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVReasonComponentUnhealthy},
	} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			csv := c.CSV("crank.v1", ownsWebhook(strings.ToLower(id)+".lamps.example"))
			c.Make(csv)
			reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
			before := len(csv.Status.Conditions)
			lost := only(tc.find(c, csv))
			if lost == nil {
				t.Fatal("the version does not have exactly one of the objects")
			}
			deleteObject(c, lost)
			c.Eventually(compattest.Patience, func() string {
				if found := only(tc.find(c, csv)); found == nil || found.GetUID() == lost.GetUID() {
					return "the object is not created again"
				}
				return ""
			})
			reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
			after := csv.Status.Conditions[before:]
			if len(after) == 0 || after[0].Phase != tc.phase || after[0].Reason != tc.reason {
				t.Errorf("the phases after the loss are %s, want %s with the reason %s first", c.Manifest(after), tc.phase, tc.reason)
			}
		})
	}
}

// listOf lists objects.
func listOf(c *compattest.Cluster, list client.ObjectList, options ...client.ListOption) client.ObjectList {
	c.Eventually(compattest.Patience, func() string {
		if err := c.List(background(c), list, options...); err != nil {
			return err.Error()
		}
		return ""
	})
	return list
}

// only returns the only object of a list, or nil.
func only(list client.ObjectList) client.Object {
	items, err := apimeta.ExtractList(list)
	if err != nil || len(items) != 1 {
		return nil
	}
	o, _ := items[0].(client.Object)
	return o
}

package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/chandlery/chandlery/test/compat/compattest"
)

// forgetModeOfDirectory makes the API server answer as one that does not know the field emptyDir.mode: a webhook removes
// it from the Deployments of the namespace, and warns. The supervisor and the API server are of one version, so there is
// no field that only the supervisor knows.
func forgetModeOfDirectory(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	var asked atomic.Bool
	server := httptest.NewTLSServer(&admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		asked.Store(true)
		return withoutMode(request)
	})})
	t.Cleanup(server.Close)
	c.Make(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "older.server.example", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.Namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{appsv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	})
	probe := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "probe"}, Spec: c.CSV("probe.v1").Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec}
	c.Eventually(compattest.Patience, func() string {
		if err := c.Create(t.Context(), probe.DeepCopy(), client.DryRunAll); err != nil {
			return err.Error()
		}
		if !asked.Load() {
			return "the API server does not call the webhook"
		}
		return ""
	})
}

// withoutMode removes emptyDir.mode from a Deployment, with the warning of an API server that does not know the field.
func withoutMode(request admission.Request) admission.Response {
	var d unstructured.Unstructured
	if err := json.NewDecoder(bytes.NewReader(request.Object.Raw)).Decode(&d); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding a Deployment: %w", err))
	}
	path := []string{"spec", "template", "spec", "volumes"}
	volumes, _, err := unstructured.NestedSlice(d.Object, path...)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading volumes: %w", err))
	}
	var warnings []string
	for i, volume := range volumes {
		directory, _, _ := unstructured.NestedMap(volume.(map[string]any), "emptyDir")
		if _, has := directory["mode"]; has {
			unstructured.RemoveNestedField(volume.(map[string]any), "emptyDir", "mode")
			warnings = append(warnings, unknown(fmt.Sprintf("spec.template.spec.volumes[%d].emptyDir.mode", i)))
		}
	}
	if len(warnings) == 0 {
		return admission.Allowed("")
	}
	if err := unstructured.SetNestedSlice(d.Object, volumes, path...); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("writing volumes: %w", err))
	}
	changed, err := json.Marshal(&d)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("encoding a Deployment: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed).WithWarnings(warnings...)
}

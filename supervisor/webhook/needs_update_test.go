package webhook

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestNeedsUpdateBeyondCABundles changes the wanted object after it was applied, and the live one.
func TestNeedsUpdateBeyondCABundles(t *testing.T) {
	manifest := func(change func(*admissionregistrationv1.ValidatingWebhook)) *unstructured.Unstructured {
		t.Helper()
		hook := admissionregistrationv1.ValidatingWebhook{
			Name: "a.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("old")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
			}},
		}
		change(&hook)
		u, err := Manifest(&admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook},
		})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	type webhook = admissionregistrationv1.ValidatingWebhook
	applied := func() *unstructured.Unstructured { return manifest(func(*webhook) {}) }
	defaulted := applied()
	webhooksOf(defaulted)[0]["timeoutSeconds"] = int64(10)
	edited := applied()
	webhooksOf(edited)[0]["namespaceSelector"] = map[string]any{}
	for name, tt := range map[string]struct {
		want, live *unstructured.Unstructured
		stale      bool
	}{
		"the same":               {want: applied(), live: applied()},
		"with defaults":          {want: applied(), live: defaulted},
		"another authority":      {want: manifest(func(w *webhook) { w.ClientConfig.CABundle = []byte("new") }), live: defaulted},
		"other rules":            {want: manifest(func(w *webhook) { w.Rules[0].Resources = []string{"*"} }), live: defaulted, stale: true},
		"no selector any more":   {want: manifest(func(w *webhook) { w.NamespaceSelector = nil }), live: defaulted, stale: true},
		"edited by others":       {want: applied(), live: edited, stale: true},
		"another name":           {want: manifest(func(w *webhook) { w.Name = "b.example.com" }), live: applied(), stale: true},
		"nothing there":          {want: applied(), stale: true},
		"authority and selector": {want: manifest(func(w *webhook) { w.ClientConfig.CABundle, w.NamespaceSelector = []byte("new"), nil }), live: applied(), stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NeedsUpdateBeyondCABundles(tt.want, tt.live)
			if err != nil || got != tt.stale {
				t.Errorf("stale: %t, %v, want %t", got, err, tt.stale)
			}
		})
	}
}

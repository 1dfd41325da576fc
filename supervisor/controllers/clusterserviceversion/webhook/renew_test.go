package webhook

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestRenewsWhileBeingReplaced replaces a certificate that expires while the version waits for a
// replacement without progress. It skips what the replacement has taken over.
func TestRenewsWhileBeingReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		secretTaken, deploymentTaken bool
		at                           time.Duration // before the end
		renews, rolls                bool
	}{
		"Due":             {at: 24 * time.Hour, renews: true, rolls: true},
		"NotYetDue":       {at: 60 * 24 * time.Hour},
		"SecretTaken":     {at: 24 * time.Hour, secretTaken: true},
		"DeploymentTaken": {at: 24 * time.Hour, deploymentTaken: true, renews: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := hookedState(t)
			csv, old := s.version.CSV, s.certs.current["kettle"]
			csv.Status.Phase = operatorsv1alpha1.CSVPhaseReplacing
			csv.Status.CertsRotateAt = new(metav1.NewTime(old.RotateAt))
			v2 := hooked()
			v2.Name, v2.UID = "kettle.v2", "uid-2"
			v := s.version
			v.Now, v.Others = old.NotAfter.Add(-tc.at), versions.List{csv, v2}
			secret, deployment := webhook.Secret(csv, s.servers[0], old), deployment(s, "kettle")
			if tc.secretTaken {
				secret.Labels = ownership.ManagedLabels(v2)
			}
			if tc.deploymentTaken {
				deployment.Labels = ownership.ManagedLabels(v2)
			}
			cluster := memory(t, csv, v2, secret, deployment)
			o, w := inMemory(cluster)
			observe := func() (*State, bool) {
				t.Helper()
				s, seen, err := o.ObserveRotation(t.Context(), v)
				if err != nil {
					t.Fatal(err)
				}
				return s, seen.Certificates.RenewDue
			}
			s, due := observe()
			if due != tc.renews {
				t.Fatalf("it is to be renewed: %t", due)
			}
			if !tc.renews {
				return
			}
			if err := w.Renew(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if _, due := observe(); due {
				t.Error("it is to be renewed again")
			}
			var kept corev1.Secret
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(secret), &kept); err != nil {
				t.Fatal(err)
			}
			now, err := webhook.FromSecret(&kept)
			if err != nil {
				t.Fatal(err)
			}
			if !now.NotAfter.After(old.NotAfter) || !bytes.Equal(now.PreviousCA, old.CA) {
				t.Errorf("the certificate ends %s, the authority before is known: %t", now.NotAfter, bytes.Equal(now.PreviousCA, old.CA))
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
				t.Fatal(err)
			}
			if got := deployment.Spec.Template.Annotations[api.AnnotationCAHash] == now.CAHash(); got != tc.rolls {
				t.Errorf("its pods are replaced: %t", got)
			}
		})
	}
}

// TestRenewalKeepsScope renews a certificate while the version waits. Its webhooks keep the
// limits of its OperatorGroup, and are never called for the supervisor's namespace.
func TestRenewalKeepsScope(t *testing.T) {
	s := hookedState(t)
	csv := s.version.CSV
	s.version.Group.Status.Namespaces = []string{corev1.NamespaceAll}
	csv.Spec.WebhookDefinitions[0].Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}}
	var err error
	if s.servers, err = webhook.Servers(csv); err != nil {
		t.Fatal(err)
	}
	s.scope = webhook.Scope{Group: "own", AllNamespaces: true, Excluded: "supervisors"}
	before, err := s.desired()
	if err != nil {
		t.Fatal(err)
	}
	old, v := s.certs.current["kettle"], s.version
	v.Now, v.Others = old.RotateAt, versions.List{csv}
	csv.Status.Phase, csv.Status.CertsRotateAt = operatorsv1alpha1.CSVPhaseReplacing, new(metav1.NewTime(old.RotateAt))
	hook := before.Validating[0]
	cluster := memory(t, csv, webhook.Secret(csv, s.servers[0], old), hook.DeepCopy())
	o, w := inMemory(cluster)
	s, _, err = o.ObserveRotation(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Renew(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var after admissionregistrationv1.ValidatingWebhookConfiguration
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(hook), &after); err != nil {
		t.Fatal(err)
	}
	was, now := hook.Webhooks[0], after.Webhooks[0]
	if bytes.Equal(was.ClientConfig.CABundle, now.ClientConfig.CABundle) {
		t.Error("the authority of the certificate is not renewed")
	}
	if !reflect.DeepEqual(was.Rules, now.Rules) || !reflect.DeepEqual(was.NamespaceSelector, now.NamespaceSelector) {
		t.Errorf("rules %+v in namespaces %+v,\nwant %+v in %+v", now.Rules, now.NamespaceSelector, was.Rules, was.NamespaceSelector)
	}
}

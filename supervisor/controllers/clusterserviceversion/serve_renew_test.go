package clusterserviceversion

import (
	"bytes"
	"reflect"
	"slices"
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

// TestNextKeepsCertificatesOfWhatWaits checks that certificates are renewed for versions that stay
// in a phase for long, and for no others.
func TestNextKeepsCertificatesOfWhatWaits(t *testing.T) {
	due := func(o *Observation) { o.Serving.CertsDue, o.Serving.RenewDue = true, true }
	rotates := func(o *Observation) { o.CSV.Status.CertsRotateAt = new(metav1.NewTime(noon().Add(time.Hour))) }
	for name, tc := range map[string]struct {
		o     Observation
		renew bool
		after time.Duration
	}{
		"ReplacementFailed":   {o: good(replacing, "BeingReplaced", successor(broken), due), renew: true, after: time.Second},
		"ReplacementPending":  {o: good(replacing, "BeingReplaced", successor(pending), due), renew: true, after: time.Second},
		"LacksSomething":      {o: good(pending, "RequirementsNotMet", lacking, due), renew: true, after: time.Second},
		"BadSettings":         {o: good(pending, "NeedsReinstall", badConfig, due), renew: true, after: time.Second},
		"TakenOver":           {o: good(replacing, "BeingReplaced", successor(broken), oldCerts)},
		"DueLater":            {o: good(replacing, "BeingReplaced", successor(broken), rotates), after: time.Hour},
		"LooksSoonerAnyway":   {o: good(pending, "RequirementsNotMet", lacking, rotates), after: requirementsDelay},
		"InstalledAnyway":     {o: good(pending, "NeedsCertRotation", due)},
		"ReplacementVanished": {o: good(replacing, "BeingReplaced", due)},
	} {
		t.Run(name, func(t *testing.T) {
			next := Next(tc.o)
			if slices.Contains(next.Actions, Renew) != tc.renew || next.After != tc.after {
				t.Errorf("%s with %v after %s", next.Phase, next.Actions, next.After)
			}
		})
	}
}

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
			s := hookedScope(t)
			old := s.served.certs["kettle"]
			s.Now = old.NotAfter.Add(-tc.at)
			s.CSV.Status.Phase = operatorsv1alpha1.CSVPhaseReplacing
			s.CSV.Status.CertsRotateAt = new(metav1.NewTime(old.RotateAt))
			v2 := hooked()
			v2.Name, v2.UID = "kettle.v2", "uid-2"
			made, err := desiredDeployments(s.CSV, settings{}, s.mount)
			if err != nil {
				t.Fatal(err)
			}
			secret, deployment := webhook.Secret(s.CSV, s.served.servers[0], old), made[0]
			if tc.secretTaken {
				secret.Labels = ownership.ManagedLabels(v2)
			}
			if tc.deploymentTaken {
				deployment.Labels = ownership.ManagedLabels(v2)
			}
			cluster := memory(t, s.CSV, v2, secret, deployment)
			r := &reconciler{client: cluster, live: cluster, crds: cluster, fronts: cluster}
			seen := func() bool {
				t.Helper()
				s.served, s.Serving = nil, Serving{}
				if err := r.observeRotation(t.Context(), s, versions.List{s.CSV, v2}); err != nil {
					t.Fatal(err)
				}
				return s.Serving.RenewDue
			}
			if got := seen(); got != tc.renews {
				t.Fatalf("it is to be renewed: %t", got)
			}
			if !tc.renews {
				return
			}
			if err := r.renewOwn(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if seen() {
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

// TestRenewalKeepsTheReach renews a certificate while the version waits. Its webhooks keep the
// limits of its OperatorGroup, and are never called for the supervisor's namespace.
func TestRenewalKeepsTheReach(t *testing.T) {
	s := hookedScope(t)
	s.Groups[0].Status.Namespaces = []string{corev1.NamespaceAll}
	s.CSV.Spec.WebhookDefinitions[0].Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}}
	var err error
	if s.served.servers, err = webhook.Servers(s.CSV); err != nil {
		t.Fatal(err)
	}
	s.served.reach = webhook.Reach{Group: "own", AllNamespaces: true, Excluded: "supervisors"}
	before, err := s.desired()
	if err != nil {
		t.Fatal(err)
	}
	old := s.served.certs["kettle"]
	s.Now = old.RotateAt
	s.CSV.Status.Phase, s.CSV.Status.CertsRotateAt = operatorsv1alpha1.CSVPhaseReplacing, new(metav1.NewTime(old.RotateAt))
	hook := before.Validating[0]
	cluster := memory(t, s.CSV, webhook.Secret(s.CSV, s.served.servers[0], old), hook.DeepCopy())
	r := &reconciler{client: cluster, live: cluster, crds: cluster, fronts: cluster, namespace: "supervisors"}
	s.served = nil
	if err := r.observeRotation(t.Context(), s, versions.List{s.CSV}); err != nil {
		t.Fatal(err)
	}
	if err := r.renewOwn(t.Context(), s); err != nil {
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

package clusterserviceversion

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestJudgeFront checks the state for an object that was found before a version is installed, and
// after.
func TestJudgeFront(t *testing.T) {
	const validating, service = "ValidatingWebhookConfiguration", "APIService"
	cases := map[string]struct {
		found     front
		before    Serving // Installing
		installed Serving // Succeeded
	}{
		"AsWanted": {found: front{kind: validating, name: "x"}},
		"Stale": {
			found: front{kind: "Role", name: "x", stale: true}, before: Serving{SwitchDue: true}, installed: Serving{SwitchDue: true},
		},
		"NoRole": {
			found: front{kind: "Role", name: "x", missing: true}, before: Serving{SwitchDue: true}, installed: Serving{SwitchDue: true},
		},
		"NoSecret": {
			found:  front{kind: "Secret", name: "x", missing: true},
			before: Serving{Broken: "missing Secret with name=x"}, installed: Serving{Broken: "missing Secret with name=x"},
		},
		"NoService": {
			found:     front{kind: "Service", name: "x", missing: true},
			before:    Serving{Broken: "missing Service with name=x", SwitchDue: true},
			installed: Serving{Broken: "missing Service with name=x", SwitchDue: true},
		},
		"NoWebhook": {
			found:     front{kind: validating, name: "x", missing: true},
			before:    Serving{Waiting: "webhooks not installed", SwitchDue: true},
			installed: Serving{Missing: "webhooks not installed: missing ValidatingWebhookConfiguration with name=x", SwitchDue: true},
		},
		"NoMutatingWebhook": {
			found:     front{kind: "MutatingWebhookConfiguration", name: "x", missing: true},
			before:    Serving{Waiting: "webhooks not installed", SwitchDue: true},
			installed: Serving{Missing: "webhooks not installed: missing MutatingWebhookConfiguration with name=x", SwitchDue: true},
		},
		"NoAPIService": {
			found:     front{kind: service, name: "v1.x", missing: true},
			before:    Serving{Waiting: "apiServices not installed", SwitchDue: true},
			installed: Serving{Broken: "apiServices not installed: missing APIService with name=v1.x", SwitchDue: true},
		},
		"TakenAPIService": {
			found:     front{kind: service, name: "v1.x", foreign: webhook.Obstacle(service, "v1.x", "csv a/b"), stale: true},
			before:    Serving{Conflict: `APIService "v1.x" exists and belongs to csv a/b; delete or rename one of the two`},
			installed: Serving{Conflict: `APIService "v1.x" exists and belongs to csv a/b; delete or rename one of the two`},
		},
		"TakenService": {found: front{kind: "Service", name: "x", foreign: webhook.Obstacle("Service", "x", "csv a/b"), stale: true}},
		"AwayJustNow": {
			found:     front{kind: service, name: "v1.x", away: "FailedDiscoveryCheck: x", since: noon().Add(-time.Second)},
			before:    Serving{Waiting: "apiServices not installed: APIService v1.x is not available: FailedDiscoveryCheck: x"},
			installed: Serving{Disrupted: "APIService v1.x is not available: FailedDiscoveryCheck: x"},
		},
		"AwayForLong": {
			found:     front{kind: service, name: "v1.x", away: "FailedDiscoveryCheck: x", since: noon().Add(-time.Hour)},
			before:    Serving{Waiting: "apiServices not installed: APIService v1.x is not available: FailedDiscoveryCheck: x"},
			installed: Serving{Waiting: "apiServices not installed: APIService v1.x is not available: FailedDiscoveryCheck: x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for phase, want := range map[operatorsv1alpha1.ClusterServiceVersionPhase]Serving{
				operatorsv1alpha1.CSVPhaseInstalling: tc.before, operatorsv1alpha1.CSVPhaseSucceeded: tc.installed, operatorsv1alpha1.CSVPhaseFailed: tc.installed,
			} {
				var got Serving
				judgeFront(&got, good(phase, ""), tc.found)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", phase, diff)
				}
			}
		})
	}
}

// hooked returns the kettle with a webhook of each type.
func hooked() *operatorsv1alpha1.ClusterServiceVersion {
	csv := kettle()
	csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	d := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	d.Spec.Template.Labels = map[string]string{"app": "kettle"}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kettle"}}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com", Version: "v1", Kind: "Cup"}}
	csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{
		{GenerateName: "vcup.example.com", Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: "kettle"},
		{GenerateName: "mcup.example.com", Type: operatorsv1alpha1.MutatingAdmissionWebhook, DeploymentName: "kettle"},
		{GenerateName: "ccup.example.com", Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: "kettle", ConversionCRDs: []string{"cups.example.com"}},
	}
	return csv
}

// hookedScope returns its scope with all certificates.
func hookedScope(t *testing.T) *scope {
	t.Helper()
	csv := hooked()
	servers, err := webhook.Servers(csv)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := webhook.Issue(servers[0], csv.Namespace, noon())
	if err != nil {
		t.Fatal(err)
	}
	s := &scope{Observation: good(operatorsv1alpha1.CSVPhaseSucceeded, "")}
	s.CSV = csv
	s.served = &served{
		servers: servers, certs: map[string]*webhook.Certificate{"kettle": cert}, answers: map[string]bool{},
		stored: map[string]bool{}, kin: webhook.Kin{CSV: csv, Lives: func(types.NamespacedName) bool { return true }},
	}
	return s
}

func TestJudgeCertificate(t *testing.T) {
	s := hookedScope(t)
	server, cert := s.served.servers[0], s.served.certs["kettle"]
	broken := *cert
	broken.Key = []byte("damaged")
	staged, provided, providedBroken := *cert, *cert, broken
	staged.Next = cert
	provided.Provided, providedBroken.Provided = true, true
	const trouble = "certificate and key do not go together: tls: failed to find any PEM data in key input"
	cases := map[string]struct {
		cert webhook.Certificate
		at   time.Time
		want Serving
	}{
		"Good":           {cert: *cert, want: Serving{IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}},
		"Due":            {cert: *cert, at: cert.RotateAt, want: Serving{CertsDue: true, IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}},
		"Unfinished":     {cert: staged, want: Serving{CertsDue: true, IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}},
		"Broken":         {cert: broken, want: Serving{Broken: "Secret kitchen/kettle-service-cert: " + trouble, IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}},
		"Provided":       {cert: provided, at: cert.RotateAt},
		"ProvidedBroken": {cert: providedBroken, want: Serving{Waiting: "Secret kitchen/kettle-service-cert, which is provided by others: " + trouble}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Serving
			o := s.Observation
			if !tc.at.IsZero() {
				o.Now = tc.at
			}
			judgeCertificate(&got, o, server, &tc.cert)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidServing(t *testing.T) {
	for reason, want := range map[operatorsv1alpha1.ConditionReason]Serving{
		operatorsv1alpha1.CSVReasonInvalidWebhookDescription: {Invalid: "f: p; r"},
		operatorsv1alpha1.CSVReasonInvalidStrategy:           {Unsupported: "f: p; r"},
	} {
		err := &webhook.InvalidError{Reason: reason, Field: "f", Problem: "p", Remedy: "r"}
		if diff := cmp.Diff(want, invalidServing(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	if got := invalidServing(errors.New("other")); got.Unsupported != "other" {
		t.Errorf("another error gives %v", got)
	}
}

// TestSurplus checks which configurations are duplicates.
func TestSurplus(t *testing.T) {
	live := func(name, hook, owner string) *unstructured.Unstructured {
		u := ofKind(validatingKind())
		u.SetName(name)
		u.SetLabels(map[string]string{
			api.LabelWebhook: hook, api.LabelOwner: owner, api.LabelOwnerNamespace: "kitchen", api.LabelOwnerKind: "ClusterServiceVersion", api.LabelManaged: "true",
		})
		return u
	}
	cases := map[string]struct {
		live []*unstructured.Unstructured
		lack bool // of a certificate
		want []string
	}{
		"None":           {},
		"OneOfOurs":      {live: []*unstructured.Unstructured{live("vcup-x", "vcup.example.com", "kettle.v1")}},
		"Two":            {live: []*unstructured.Unstructured{live("a", "vcup.example.com", "kettle.v1"), live("b", "vcup.example.com", "kettle.v1")}, want: []string{"b"}},
		"Undeclared":     {live: []*unstructured.Unstructured{live("a", "old.example.com", "kettle.v1")}, want: []string{"a"}},
		"UndeclaredYet":  {live: []*unstructured.Unstructured{live("a", "old.example.com", "kettle.v1")}, lack: true},
		"SomebodyElse's": {live: []*unstructured.Unstructured{live("a", "old.example.com", "pot.v1")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := hookedScope(t)
			if tc.lack {
				clear(s.served.certs)
			}
			objects, err := webhook.Desired(s.CSV, &s.Groups[0], s.served.servers, s.served.certs)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range adoptKind(s, asObjects(objects.Validating), tc.live) {
				got = append(got, u.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMountChangesTheHash checks that pods are rolled out when they get a certificate and when its
// authority changes, and only those of the serving Deployment.
func TestMountChangesTheHash(t *testing.T) {
	s := hookedScope(t)
	other := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	other.Name = "idle"
	s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, other)
	hashes := func(mount func(*appsv1.Deployment)) (string, string) {
		all, err := desiredDeployments(s.CSV, settings{}, mount)
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Labels[api.LabelDeploymentHash], all[1].Labels[api.LabelDeploymentHash]
	}
	bare, idle := hashes(func(*appsv1.Deployment) {})
	first, idleFirst := hashes(s.mount)
	again, _ := hashes(s.mount)
	cert, err := webhook.Issue(s.served.servers[0], s.CSV.Namespace, noon())
	if err != nil {
		t.Fatal(err)
	}
	s.served.certs["kettle"].Next = cert
	staged, _ := hashes(s.mount)
	s.served.certs["kettle"] = s.served.certs["kettle"].Promote()
	second, idleSecond := hashes(s.mount)
	s.served.certs["kettle"] = s.served.certs["kettle"].Settle()
	settled, _ := hashes(s.mount)
	if bare == first || first != again || first != staged || first == second || second != settled {
		t.Errorf("hashes without a certificate %s, with one %s and %s, with a successor %s, after it took over %s, settled %s",
			bare, first, again, staged, second, settled)
	}
	if idle != idleFirst || idle != idleSecond {
		t.Error("a Deployment that serves nothing is rolled out")
	}
	unserved := scope{}
	unserved.mount(&appsv1.Deployment{})
}

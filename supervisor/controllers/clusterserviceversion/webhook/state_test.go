package webhook

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestObjectAddTo checks the state for an object that was found before a version is installed, and
// after.
func TestObjectAddTo(t *testing.T) {
	const validating, service = "ValidatingWebhookConfiguration", "APIService"
	cases := map[string]struct {
		found     object
		before    phase.Webhooks // Installing
		installed phase.Webhooks // Succeeded
	}{
		"AsWanted": {found: object{kind: validating, name: "x"}},
		"Stale": {
			found: object{kind: "Role", name: "x", stale: true}, before: phase.Webhooks{Switch: phase.SwitchState{Due: true}}, installed: phase.Webhooks{Switch: phase.SwitchState{Due: true}},
		},
		"NoRole": {
			found: object{kind: "Role", name: "x", missing: true}, before: phase.Webhooks{Switch: phase.SwitchState{Due: true}}, installed: phase.Webhooks{Switch: phase.SwitchState{Due: true}},
		},
		"NoSecret": {
			found:  object{kind: "Secret", name: "x", missing: true},
			before: phase.Webhooks{Broken: "missing Secret with name=x"}, installed: phase.Webhooks{Broken: "missing Secret with name=x"},
		},
		"NoService": {
			found:     object{kind: "Service", name: "x", missing: true},
			before:    phase.Webhooks{Broken: "missing Service with name=x", Switch: phase.SwitchState{Due: true}},
			installed: phase.Webhooks{Broken: "missing Service with name=x", Switch: phase.SwitchState{Due: true}},
		},
		"NoWebhook": {
			found:     object{kind: validating, name: "x", missing: true},
			before:    phase.Webhooks{Waiting: phase.Sentence{Text: "webhooks not installed"}, Switch: phase.SwitchState{Due: true}},
			installed: phase.Webhooks{Missing: "missing ValidatingWebhookConfiguration with name=x", Switch: phase.SwitchState{Due: true}},
		},
		"NoMutatingWebhook": {
			found:     object{kind: "MutatingWebhookConfiguration", name: "x", missing: true},
			before:    phase.Webhooks{Waiting: phase.Sentence{Text: "webhooks not installed"}, Switch: phase.SwitchState{Due: true}},
			installed: phase.Webhooks{Missing: "missing MutatingWebhookConfiguration with name=x", Switch: phase.SwitchState{Due: true}},
		},
		"NoAPIService": {
			found:     object{kind: service, name: "v1.x", missing: true},
			before:    phase.Webhooks{Waiting: phase.Sentence{Text: "apiServices not installed"}, Switch: phase.SwitchState{Due: true}},
			installed: phase.Webhooks{Broken: "missing APIService with name=v1.x", Switch: phase.SwitchState{Due: true}},
		},
		"TakenAPIService": {
			found:     object{kind: service, name: "v1.x", ownerConflict: webhook.ConflictMessage(service, "v1.x", "csv a/b"), stale: true},
			before:    phase.Webhooks{Conflict: `APIService "v1.x" exists and belongs to csv a/b; delete or rename one of the two`},
			installed: phase.Webhooks{Conflict: `APIService "v1.x" exists and belongs to csv a/b; delete or rename one of the two`},
		},
		"TakenService": {found: object{kind: "Service", name: "x", ownerConflict: webhook.ConflictMessage("Service", "x", "csv a/b"), stale: true}},
		"AwayJustNow": {
			found:     object{kind: service, name: "v1.x", unavailable: "FailedDiscoveryCheck: x", since: noon().Add(-time.Second)},
			before:    phase.Webhooks{Waiting: phase.Sentence{Text: "apiServices not installed", Detail: "APIService v1.x is not available: FailedDiscoveryCheck: x"}},
			installed: phase.Webhooks{Disrupted: "APIService v1.x is not available: FailedDiscoveryCheck: x"},
		},
		"AwayForLong": {
			found:     object{kind: service, name: "v1.x", unavailable: "FailedDiscoveryCheck: x", since: noon().Add(-time.Hour)},
			before:    phase.Webhooks{Waiting: phase.Sentence{Text: "apiServices not installed", Detail: "APIService v1.x is not available: FailedDiscoveryCheck: x"}},
			installed: phase.Webhooks{Waiting: phase.Sentence{Text: "apiServices not installed", Detail: "APIService v1.x is not available: FailedDiscoveryCheck: x"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for p, want := range map[operatorsv1alpha1.ClusterServiceVersionPhase]phase.Webhooks{
				operatorsv1alpha1.CSVPhaseInstalling: tc.before, operatorsv1alpha1.CSVPhaseSucceeded: tc.installed, operatorsv1alpha1.CSVPhaseFailed: tc.installed,
			} {
				s := hookedState(t)
				s.version.CSV.Status.Phase = p
				got := s.withObjects(phase.Webhooks{}, []object{tc.found})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", p, diff)
				}
			}
		})
	}
}

func TestWithCertificate(t *testing.T) {
	s := hookedState(t)
	server, cert := s.servers[0], s.certs.current["kettle"]
	broken := *cert
	broken.Key = []byte("damaged")
	staged, provided, providedBroken := *cert, *cert, broken
	staged.Next = cert
	provided.Provided, providedBroken.Provided = true, true
	const problem = "certificate and key do not match: tls: failed to find any PEM data in key input"
	cases := map[string]struct {
		cert webhook.Certificate
		at   time.Time
		want phase.Webhooks
	}{
		"Good":       {cert: *cert, want: phase.Webhooks{Certificates: phase.Certificates{IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}}},
		"Due":        {cert: *cert, at: cert.RotateAt, want: phase.Webhooks{Certificates: phase.Certificates{Due: true, IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}}},
		"Unfinished": {cert: staged, want: phase.Webhooks{Certificates: phase.Certificates{Due: true, IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}}},
		"Broken":     {cert: broken, want: phase.Webhooks{Broken: "Secret kitchen/kettle-service-cert: " + problem, Certificates: phase.Certificates{IssuedAt: cert.IssuedAt(), RotateAt: cert.RotateAt}}},
		"Provided":   {cert: provided, at: cert.RotateAt},
		"ProvidedBroken": {cert: providedBroken, want: phase.Webhooks{Waiting: phase.Sentence{
			Text: "webhooks not installed", Detail: "Secret kitchen/kettle-service-cert, which another provider manages: " + problem,
		}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := s.version
			if !tc.at.IsZero() {
				v.Now = tc.at
			}
			got := withCertificate(phase.Webhooks{}, v, server, &tc.cert)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	for reason, want := range map[operatorsv1alpha1.ConditionReason]phase.Webhooks{
		operatorsv1alpha1.CSVReasonInvalidWebhookDescription: {Invalid: phase.Sentence{Text: "f: p; r"}},
		operatorsv1alpha1.CSVReasonInvalidStrategy:           {Unsupported: "f: p; r"},
	} {
		err := &webhook.InvalidError{Reason: reason, Field: "f", Problem: "p", Remedy: "r"}
		if diff := cmp.Diff(want, invalid(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	if got := invalid(errors.New("other")); got.Unsupported != "other" {
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
			s := hookedState(t)
			if tc.lack {
				clear(s.certs.current)
			}
			objects, err := s.desired()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range s.adopt(asObjects(objects.Validating), tc.live) {
				got = append(got, u.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMountChangesPods checks that pods are replaced when they get a certificate and when its
// authority changes, and only those of the serving Deployment.
func TestMountChangesPods(t *testing.T) {
	s := hookedState(t)
	specs := func(s *State) (string, string) {
		serving, err := json.Marshal(deployment(s, "kettle").Spec)
		if err != nil {
			t.Fatal(err)
		}
		idle, err := json.Marshal(deployment(s, "idle").Spec)
		if err != nil {
			t.Fatal(err)
		}
		return string(serving), string(idle)
	}
	without := hookedState(t)
	clear(without.certs.current)
	bare, idle := specs(without)
	first, idleFirst := specs(s)
	again, _ := specs(s)
	cert, err := webhook.Issue(s.servers[0], s.version.CSV.Namespace, noon())
	if err != nil {
		t.Fatal(err)
	}
	s.certs.current["kettle"].Next = cert
	staged, _ := specs(s)
	s.certs.current["kettle"] = s.certs.current["kettle"].UseNext()
	second, idleSecond := specs(s)
	s.certs.current["kettle"] = s.certs.current["kettle"].DropPreviousCA()
	settled, _ := specs(s)
	if bare == first || first != again || first != staged || first == second || second != settled {
		t.Errorf("spec without a certificate %s,\nwith one %s and %s,\nwith a successor %s,\nafter its promotion %s,\nsettled %s",
			bare, first, again, staged, second, settled)
	}
	if idle != idleFirst || idle != idleSecond {
		t.Error("a Deployment that serves nothing is rolled out")
	}
	var none *State
	none.Mount(&appsv1.Deployment{})
}

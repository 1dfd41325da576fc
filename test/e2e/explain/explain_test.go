package explain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/sampling"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// lostNode is the node that one of the situations stops.
const lostNode = "node-3"

// Exit codes of the command.
const (
	fine        = 0
	wrong       = 2
	unseen      = 3
	unreachable = 4
)

// TestSituations creates all situations first, so they develop concurrently. It then explains each
// one, fixes those that can be fixed, and explains again.
func TestSituations(t *testing.T) {
	h := newHospital(t)
	// A slow machine must not lose the Lease.
	leader := startSupervisor(t, "--lease-duration", "60s", "--renew-deadline", "50s")
	kubeconfig := controlplane.Get(t).Kubeconfig()
	all := chosen(t)
	made := make([]*situation, len(all))
	for i, c := range all {
		made[i] = h.newSituation(t)
		c.make(made[i])
	}
	for i, c := range all {
		t.Run(c.reason, func(t *testing.T) {
			s := made[i].in(t)
			code := wrong
			if c.fine {
				code = fine
			}
			words := make([]string, 0, len(c.words))
			for _, word := range c.words {
				words = append(words, strings.ReplaceAll(word, "NAMESPACE", s.Namespace))
			}
			t.Log("\n" + eventually(t, kubeconfig, []string{"lamp", "-n", s.Namespace}, words, code))
			if c.fix != nil {
				c.fix(s)
			}
		})
	}
	for i, c := range all {
		if c.fix == nil {
			continue
		}
		t.Run(c.reason+", fixed", func(t *testing.T) {
			namespace := made[i].Namespace
			eventually(t, kubeconfig, []string{"lamp", "-n", namespace}, []string{"Subscription " + namespace + "/lamp: healthy", "is installed"}, fine)
		})
	}
	t.Run("nothing is left in a namespace that does not go", func(t *testing.T) { going(t, h) })
	t.Run("little may be seen", func(t *testing.T) { little(t, h) })
	t.Run("no supervisor runs", func(t *testing.T) {
		if err := leader.Stop(patience); err != nil {
			t.Fatal(err)
		}
		s := h.newSituation(t)
		s.Create(s.group(), s.at(), s.subscription())
		eventually(t, kubeconfig, []string{"lamp", "-n", s.Namespace}, []string{"no supervisor runs", "Lease default/chandlery-supervisor was released"}, wrong)
	})
	t.Run("the supervisor was killed outside of the cluster", func(t *testing.T) {
		s := h.newSituation(t)
		killed := startSupervisor(t)
		s.until("a supervisor that leads", func() bool {
			lease := &coordinationv1.Lease{}
			err := s.Get(t.Context(), client.ObjectKey{Namespace: leaseNamespace, Name: api.LeaseName}, lease)
			return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
		})
		if err := killed.Kill(); err != nil {
			t.Fatal(err)
		}
		s.Create(s.group(), s.at(), s.subscription())
		text := flowing(eventually(t, kubeconfig, []string{"lamp", "-n", s.Namespace}, []string{"no supervisor runs", "is held by supervisor-1_", "(no pod of namespace default)"}, wrong))
		if !strings.Contains(text, "To do: Restart the process supervisor-1, which runs outside the cluster") || strings.Contains(text, "get deployments,pods") {
			t.Errorf("the remedy is not for a process outside of the cluster:\n%s", text)
		}
	})
}

// flowing returns a text with its line ends replaced by spaces.
func flowing(text string) string { return strings.Join(strings.Fields(text), " ") }

// chosen returns the cases whose reason contains $SITUATION. Selecting one with -run would create
// all of them. Without that variable it returns one in $EXPLAIN_SHARE cases, a fixed sample.
func chosen(t *testing.T) []broken {
	t.Helper()
	if text := os.Getenv("SITUATION"); text != "" {
		return slices.DeleteFunc(cases(), func(c broken) bool { return !strings.Contains(c.reason, text) })
	}
	return sampling.OneIn(t, "EXPLAIN_SHARE", cases())
}

// in returns the situation for a subtest.
func (s *situation) in(t *testing.T) *situation {
	t.Helper()
	part := *s
	part.World = s.In(t)
	return &part
}

// little runs explain as a user who may only read Subscriptions.
func little(t *testing.T, h *hospital) {
	t.Helper()
	s := h.newSituation(t)
	s.server.Serve(lamp(operator("lamp", 1)))
	s.Create(s.group(), s.at(), s.subscription())
	s.installed("lamp.v1")
	reader := "reader-of-" + s.Namespace
	kubeconfig, err := controlplane.Get(t).NewKubeconfig(reader)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"lamp", "-n", s.Namespace}
	eventually(t, kubeconfig, args, []string{"unknown", "you cannot read subscriptions.operators.coreos.com"}, unseen)
	s.Create(fixtures.Role(s.Namespace, "reader", fixtures.User(reader),
		rbacv1.PolicyRule{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"subscriptions"}, Verbs: []string{"get", "list"}})...)
	text := eventually(t, kubeconfig, args, []string{"lamp.v1 is installed", "as far as can be seen"}, unseen)
	for _, rule := range []string{
		"clusterserviceversions.operators.coreos.com in namespace " + s.Namespace,
		"leases.coordination.k8s.io", "create role read-catalogsources --verb=get,list",
	} {
		if !strings.Contains(text, rule) {
			t.Errorf("what could not be seen lacks %q:\n%s", rule, text)
		}
	}
	// The Subscription alone shows the cause.
	s.patch(&operatorsv1alpha1.Subscription{}, "lamp", `{"spec":{"channel":"fast"}}`)
	eventually(t, kubeconfig, args, []string{"package lamp", "has no channel fast"}, wrong)
}

// TestUnreachable runs explain with an API server that does not exist.
func TestUnreachable(t *testing.T) {
	cp := controlplane.Get(t)
	access, err := os.ReadFile(cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(nowhere, bytes.ReplaceAll(access, []byte(cp.Config().Host), []byte("https://127.0.0.1:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	text, code := explain(t, nowhere, "lamp", "-n", "default")
	if code != unreachable || !strings.Contains(text, "https://127.0.0.1:1: the API server does not answer") {
		t.Errorf("code %d, want %d:\n%s", code, unreachable, text)
	}
}

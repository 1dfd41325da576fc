package suite_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/cmd/internal/command/history/timeline"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// TestHistory reads Subscriptions that are healthy, new, or have an invalid transition log.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	out, failure := w.history("my-lamp")
	contains(t, out, "Subscription "+w.Namespace+"/my-lamp: package lamp, channel stable, catalog olm/wares\n",
		"TIME (UTC)", "InstallPlan install-aaa: lamp.v1\n", "RequiresApproval", "UpgradePending: lamp.v1 is pending\n",
		"> approve it: supervisor approve install-aaa -n "+w.Namespace)
	if failure != "" {
		t.Error(failure)
	}

	w.subscribe("another")
	out, _ = w.history()
	contains(t, out, "/another: ", "no history yet", "\n\nSubscription "+w.Namespace+"/my-lamp: ")
	for form, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
	} {
		out, _ = w.history("-o", form)
		var told struct{ Subscriptions []timeline.Timeline }
		if err := decode([]byte(out), &told); err != nil || len(told.Subscriptions) != 2 || told.Subscriptions[1].Last() != 2 {
			t.Errorf("%s: %v, %s", form, err, out)
		}
	}

	_, failure = w.history("my-lamp", "nothing", "other")
	contains(t, failure, "namespace "+w.Namespace+" has no Subscription nothing, other; it has another, my-lamp", "exit status 1")

	w.annotate("another", `{"seq":1}`)
	out, failure = w.history()
	contains(t, out, "/my-lamp: ", "no history: annotation")
	contains(t, failure, "annotation chandlery.dev/transitions of Subscription "+w.Namespace+"/another is not a list of transitions; remove the annotation", "exit status 1")
}

// TestHistoryRights runs the command with fewer and fewer permissions.
func TestHistoryRights(t *testing.T) {
	w := newWorld(t)
	t.Run("NoPlans", func(t *testing.T) {
		out, failure := w.in(t).as(may("get", "list")).history()
		contains(t, out, "InstallPlan install-aaa\n", "RequiresApproval")
		if failure != "" {
			t.Error(failure)
		}
	})
	t.Run("ThisOneAlone", func(t *testing.T) {
		one := may("get", "watch")
		one.ResourceNames = []string{"my-lamp"}
		seen := w.in(t).as(one)
		out, failure := seen.history("my-lamp")
		contains(t, out, "RequiresApproval")
		if failure != "" {
			t.Error(failure)
		}
		following := seen.start("my-lamp", "--watch")
		following.await(t, "FOLLOWING")
		following.interrupt(t)
	})
	t.Run("None", func(t *testing.T) {
		seen := w.in(t).as()
		_, failure := seen.history()
		contains(t, failure, "; the missing rule: {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [list]}", "exit status 3")
		_, failure = seen.history("my-lamp")
		contains(t, failure, "; the missing rule: {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [get]}")
	})
	t.Run("NoWatch", func(t *testing.T) {
		_, failure := w.in(t).as(may("get", "list")).history("--watch")
		contains(t, failure, "; the missing rule: {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [watch]}")
	})
}

// TestFollowsAcrossRestart runs history --watch and status --watch across a restart of the API server, until they are
// interrupted. A restart takes so much processor time that the commands share one.
func TestFollowsAcrossRestart(t *testing.T) {
	w, watched := newWorld(t), newWorld(t)
	watched.well()
	status := watched.watchStatus()
	status.await(t, "No problems.")
	plan := &operatorsv1alpha1.InstallPlan{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "install-aaa"}, plan); err != nil {
		t.Fatal(err)
	}
	people, machines := w.start("my-lamp", "-w"), w.start("-w", "-o", "json")
	people.await(t, "FOLLOWING")
	machines.await(t, `"seq":2,`)

	w.went("my-lamp", plan, "Installing")
	people.await(t, "my-lamp     3  ")
	people.await(t, "my-lamp  InstallPlanPending=True Installing\n")
	machines.await(t, `"seq":3,`)

	cp := controlplane.Get(t)
	if err := cp.KillComponent(controlplane.KubeAPIServer); err != nil {
		t.Fatal(err)
	}
	people.await(t, "the watch was interrupted; retrying: ")
	status.await(t, "; retrying")
	if err := cp.StartComponent(t.Context(), controlplane.KubeAPIServer); err != nil {
		t.Fatal(err)
	}
	w.went("my-lamp", plan, "Complete")
	people.await(t, "my-lamp     4  ")
	machines.await(t, `"seq":4,`)

	w.subscribe("another")
	w.went("another", plan, "Installing")
	machines.await(t, `"subscription":"another"`)
	people.interrupt(t)
	machines.interrupt(t)
	watched.waits()
	status.await(t, "AWAITING APPROVAL")
	status.interrupt(t)
	if strings.Contains(people.text(), "another") {
		t.Errorf("another Subscription is followed: %s", people.text())
	}
	for line := range strings.Lines(machines.text()) {
		var record timeline.Record
		if !strings.HasPrefix(line, "the watch was interrupted") && json.Unmarshal([]byte(line), &record) != nil {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	return &world{w.In(t), w.kubeconfig}
}

// running is the command while it follows.
type running struct {
	cmd *exec.Cmd

	mu      sync.Mutex
	printed strings.Builder
}

// start runs the command until it is interrupted.
func (w *world) start(args ...string) *running {
	w.T.Helper()
	r := &running{cmd: w.command(args...)}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	return r
}

// watchStatus runs status --watch until it is interrupted.
func (w *world) watchStatus() *running {
	w.T.Helper()
	r := &running{cmd: exec.CommandContext(w.T.Context(), supervisorPath, "status", "--watch", "--interval", "1s", "-n", w.Namespace, "--kubeconfig", w.kubeconfig)}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	return r
}

// Write records what the command prints.
func (r *running) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.printed.Write(text)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.printed.String()
}

// await waits until a text is printed.
func (r *running) await(t *testing.T, want string) {
	t.Helper()
	ticker, deadline := time.NewTicker(20*time.Millisecond), time.After(testenv.Patience)
	defer ticker.Stop()
	for !strings.Contains(r.text(), want) {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%q is not printed; it printed:\n%s", want, r.text())
		}
	}
}

// interrupt interrupts the command, which exits without an error.
func (r *running) interrupt(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, r.text())
	}
}

package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/sampling"
)

// maxWrites exceeds the number of writes of a command.
const maxWrites = 500

// killsAtWrites takes over from a running OLM and hands back to it. It kills each command when the API server has
// answered one of its writes, and repeats the command. The cluster must then be as after a command that was not
// killed. $KILLS is the number of writes at which each command is killed, spread over all its writes; 0 for every write.
// Only one manager writes at a time.
func killsAtWrites(olm *olmScene) {
	t := olm.t
	t.Helper()
	s := newKillScene(olm)
	defer func() { oneWriterAtATime(olm, 1+2*s.rounds) }()
	kills := kills(t)
	there, back := &trial{command: "takeover"}, &trial{command: "handback"}
	// The first takeover changes what a handback leaves so, such as labels of InstallPlans.
	before := s.rollouts()
	s.round(&trial{command: there.command, first: true}, &trial{command: back.command, first: true}, 0, 0)
	s.sameRollouts("the first takeover and handback", before)
	s.round(there, back, 0, 0)
	t.Logf("an uninterrupted takeover has %d writes, and a handback %d", there.writes, back.writes)
	for i := range maxWrites {
		n, m := i+1, i+1
		if kills > 0 {
			n, m = spread(i, kills, there.writes), spread(i, kills, back.writes)
		}
		if killed := s.round(there, back, n, m); !killed && kills == 0 {
			return
		}
		if i+1 == kills {
			return
		}
	}
	t.Errorf("a command has more than %d writes", maxWrites)
}

// kills returns $KILLS.
func kills(t *testing.T) int {
	t.Helper()
	return sampling.Number(t, "KILLS", 2, 0)
}

// spread returns the ith of k numbers from 1 to n.
func spread(i, k, n int) int { return 1 + (2*i+1)*n/(2*k) }

// trial is a command with its uninterrupted run.
type trial struct {
	command string
	// first reports whether other runs are not compared with this one.
	first  bool
	writes int
	// ends is the reduced state of the cluster when the managers are idle afterwards.
	ends snapshot
}

// killScene is a cluster in which commands are killed.
type killScene struct {
	*switchScene

	// rounds is the number of takeovers, each with a handback, and runs is the number of commands.
	rounds, runs int
}

// newKillScene lets OLM and a supervisor run while their Deployments have replicas. Only OLM runs after the test.
func newKillScene(s *olmScene) *killScene {
	s.t.Helper()
	if err := s.peer.Stop(); err != nil {
		s.t.Fatal(err)
	}
	labels := map[string]string{"app.kubernetes.io/name": api.LeaseName}
	supervisors := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName, Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "supervisor", Image: "supervisor"}}},
		}},
	}
	s.create(supervisors)
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(s.t.Context())
		if err := errors.Join(s.Delete(ctx, supervisors), s.peer.Restart(ctx)); err != nil {
			s.t.Error(err)
		}
	})
	return &killScene{switchScene: newSwitchScene(s, "killed")}
}

// round takes over and hands back, and kills the commands at the nth and the mth write. It reports whether one was killed.
func (s *killScene) round(there, back *trial, n, m int) (killed bool) {
	s.t.Helper()
	begun := time.Now()
	s.rounds++
	s.works("OLM")
	supervisors := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName}}
	if err := s.Patch(s.t.Context(), supervisors, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))); err != nil {
		s.t.Fatal(err)
	}
	for _, step := range []struct {
		*trial

		at int
	}{{there, n}, {back, m}} {
		last := s.switches(step.trial, step.at)
		killed = killed || last != ""
		if last != "" {
			s.t.Logf("%s killed at write %d, %s", step.command, step.at, last)
		}
		s.idle(step.trial)
	}
	s.t.Logf("round with %d and %d took %s", n, m, time.Since(begun).Round(time.Second))
	return killed
}

// switches runs a command that is killed at its nth write, and then again. It returns the write at which it was killed; empty if it
// ended before.
func (s *killScene) switches(tr *trial, n int) string {
	s.t.Helper()
	first, err := s.run(tr.command, n)
	if !first.dead {
		if err != nil {
			s.t.Fatal(err)
		}
		tr.writes = len(first.writes)
		return ""
	}
	again, err := s.run(tr.command, 0)
	// The last write of a handback deletes the record.
	complete := len(again.writes) == 0 && err != nil && strings.Contains(err.Error(), "There is nothing to hand back")
	if err != nil && !complete {
		s.t.Fatalf("after write %d: %v", n, err)
	}
	return first.writes[n-1]
}

// attempt is a run of a command through the proxy.
type attempt struct {
	// at is the number of the write at which it is killed; 0 for none.
	at     int
	settle func()

	mu      sync.Mutex
	process *process.Process
	writes  []string
	dead    bool
}

// run runs a command until it ends or is killed.
func (s *killScene) run(command string, at int) (*attempt, error) {
	s.t.Helper()
	a := &attempt{at: at, settle: s.settle}
	s.proxy.Decide(a.decide)
	s.runs++
	name := fmt.Sprintf("%s-%d", command, s.runs)
	a.mu.Lock()
	var err error
	a.process, err = process.Start(s.t.Context(), process.Spec{
		Name: name, Path: filepath.Join(bin, "supervisor"), Args: []string{command, "--yes", "--kubeconfig", s.kubeconfig},
		Log: filepath.Join(s.t.ArtifactDir(), name+".log"),
	})
	a.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-a.process.Done():
	case <-time.After(patience):
		s.t.Errorf("%s does not end", name)
		if err := a.process.Kill(); err != nil {
			s.t.Fatal(err)
		}
	}
	// The server finishes the calls of a killed command.
	s.proxy.Leave()
	s.proxy.Return()
	return a, a.process.Result()
}

// decide kills the command at its write. Pods of a Deployment exist until their process has ended.
func (a *attempt) decide(call apiproxy.Call) apiproxy.Fault {
	if call.Resource == "pods" {
		a.settle()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.dead:
		return apiproxy.Fault{Cut: apiproxy.CutBefore}
	case !call.Mutates() || strings.HasSuffix(call.Resource, "reviews"):
		return apiproxy.Fault{}
	}
	a.writes = append(a.writes, call.String())
	if len(a.writes) != a.at {
		return apiproxy.Fault{}
	}
	a.dead = true
	return apiproxy.Fault{Cut: apiproxy.CutAfter, Answered: func() { _ = a.process.Kill() }} // run reports a process that does not end
}

// idle waits until the cluster is as after the uninterrupted run of a command. For this run, it waits until nothing changes.
func (s *killScene) idle(tr *trial) {
	s.t.Helper()
	const (
		interval = time.Second
		// equal is how often the cluster must be the same.
		equal = 2
		limit = time.Minute
	)
	want, times := tr.ends, 0
	least := equal
	if want == nil && !tr.first {
		least *= 3
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	err := pause.Until(ctx, interval, func() string {
		now := reduce(take(s.t, s.plane))
		lines := differences(s.t, want, now, nil)
		times++
		if len(lines) > 0 {
			times = 0
		}
		if tr.ends == nil {
			want = now
		}
		if times < least {
			return strings.Join(lines, "\n")
		}
		return ""
	})
	if err != nil {
		s.t.Fatalf("after %s: %v", tr.command, err)
	}
	tr.ends = want
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// limit is the longest time without a manager. At a handback, the time that OLM takes to start in that switch is added.
const limit = 3 * time.Second

// leadLimit is the longest time until a waiting supervisor leads when it may.
const leadLimit = 2 * time.Second

// outcome is the result of one switch.
type outcome struct {
	round  int
	change string
	// command is how long the command ran, and said its output if it failed.
	command time.Duration
	said    string
	// gap is the time without a manager, at most limit. It contains OLM's own start at a handback.
	gap, limit time.Duration
	// lead is how long a waiting supervisor took to lead when it was permitted to, at most leadLimit.
	lead  time.Duration
	calls result
	// objects is the number of compared objects, named the number of differences for each text of the document, and
	// unnamed those that it does not name.
	objects int
	named   map[string]int
	unnamed []difference
}

// failed reports whether the switch differs from what is promised.
func (o *outcome) failed() bool {
	return o.said != "" || o.gap > o.limit || o.lead > leadLimit || len(o.calls.failed) > 0 || len(o.unnamed) > 0
}

// rehearse migrates to the supervisors and back, several times.
func (s *scene) rehearse(ctx context.Context, rounds int) ([]outcome, error) {
	c, err := startCalls(ctx, s.bed.Config())
	if err != nil {
		return nil, err
	}
	defer c.end()
	var all []outcome
	leaders := &leaderWatch{client: s.Client}
	for round := range rounds {
		if round > 0 {
			if err := s.kubectl(ctx, "-n", home, "scale", "deployment", "chandlery-supervisor", "--replicas=2"); err != nil {
				return all, err
			}
			if err := s.awaitWaiting(ctx); err != nil {
				return all, err
			}
		}
		before, err := s.settle(ctx)
		if err != nil {
			return all, err
		}
		c.take()
		for i, step := range []struct {
			change     string
			args       []string
			watch      func(context.Context) *witness
			exceptions []exception
		}{
			{"take-over", nil, leaders.takeover, atTakeover()},
			{"hand-back", []string{"--back"}, leaders.handback, atHandback()},
		} {
			o := outcome{round: round + 1, change: step.change}
			if err := s.change(ctx, &o, &s.late[2*round+i], step.args, step.watch); err != nil {
				return all, err
			}
			after, err := s.settle(ctx)
			if err != nil {
				return all, err
			}
			o.calls, o.objects = c.take(), len(before)
			o.named, o.unnamed = judge(differences(before, after), step.exceptions)
			all = append(all, o)
		}
	}
	return all, nil
}

// change runs the command while the InstallPlan of an operator is under way, which ends afterwards.
func (s *scene) change(ctx context.Context, o *outcome, under *operator, args []string, watch func(context.Context) *witness) error {
	s.sayf("round %d, %s ...", o.round, o.change)
	if err := s.subscriptions.beginLate(ctx, under); err != nil {
		return err
	}
	w := watch(ctx)
	begun := time.Now()
	said, err := s.migrate(ctx, args...)
	o.command = time.Since(begun)
	if err != nil {
		o.said = fmt.Sprintf("%v\n%s", err, said)
	}
	s.sayf("%s", said)
	err = w.end(o)
	if err := errors.Join(err, s.subscriptions.endLate(ctx, under)); err != nil {
		return fmt.Errorf("round %d, %s: %w\n%s", o.round, o.change, err, o.said)
	}
	return nil
}

// migrate runs the command and returns its output.
func (s *scene) migrate(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"migrate", "--yes", "--kubeconfig", s.bed.Kubeconfig()}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, "kubectl-chandlery"), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

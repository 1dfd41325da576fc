// Package installation predicts, approves and awaits what a Subscription installs.
package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/command/approve"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/cmd/internal/waiting"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
)

// Predict returns what would happen in a namespace if the objects were applied to it. global is the namespace of global
// catalogs, and log shows progress.
func Predict(ctx context.Context, cluster *inputs.Cluster, namespace, global string, objects []client.Object, log io.Writer) (*dryrun.Result, error) {
	o := inputs.Options{
		Namespace: namespace, Global: global, Now: metav1.NewTime(clock.RealClock{}.Now()),
		Connect:  func() (*inputs.Cluster, error) { return cluster, nil },
		Progress: func(what string) func() { return progress.Start(log, false, what) },
	}
	if len(objects) > 0 {
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
		if err != nil {
			return nil, fmt.Errorf("encoding objects: %w", err)
		}
		o.Files, o.Stdin = []string{"-"}, bytes.NewReader(text)
	}
	requests, err := inputs.Gather(ctx, o)
	if err != nil {
		return nil, err
	}
	return dryrun.Run(ctx, requests[0])
}

// Problem returns why a Subscription would not be installed; empty if it would.
func Problem(res *dryrun.Result, subscription string) string {
	if res.Blocked != "" {
		return res.Blocked
	}
	for _, refusal := range slices.Concat(res.Refusals, res.Unknown) {
		if refusal.Subscription == subscription {
			return refusal.Reason
		}
	}
	return ""
}

// Plan is the sorted ClusterServiceVersions of an InstallPlan.
type Plan []string

// Plans returns the InstallPlans of a Subscription in their order.
func Plans(res *dryrun.Result, subscription string) []Plan {
	var plans []Plan
	for i := range res.Steps {
		if step := &res.Steps[i]; slices.Contains(step.Subscriptions, subscription) {
			plans = append(plans, PlanOf(res, step.Plan))
		}
	}
	return plans
}

// PlanOf returns the InstallPlan with a number.
func PlanOf(res *dryrun.Result, number int) Plan {
	var names Plan
	for i := range res.Steps {
		if res.Steps[i].Plan == number {
			names = append(names, res.Steps[i].Bundle)
		}
	}
	slices.Sort(names)
	return names
}

// Follower awaits the installation that a Subscription requests.
type Follower struct {
	Client    client.Client
	Namespace string
	// Agent is the field manager of approvals.
	Agent   string
	Log     io.Writer
	Timeout time.Duration
	Program string
}

// Follow waits until a Subscription has a version, which may be empty for any. It approves an InstallPlan that waits for
// approval if it is one of the expected ones.
func (f Follower) Follow(ctx context.Context, subscription, version string, expected []Plan) error {
	r := wait.Reader{Client: f.Client, Namespace: f.Namespace}
	w := waiting.Waiter{Log: f.Log, Timeout: f.Timeout, Aim: "installed", Remedy: f.Program + " status -n " + f.Namespace}
	return w.Wait(ctx, func(ctx context.Context) ([]waiting.State, error) {
		o, err := r.Subscription(ctx, subscription)
		if err != nil {
			return nil, err
		}
		s := wait.SubscriptionState(f.Namespace+"/"+subscription, o, wait.Installed, version)
		switch {
		case s.Done || !o.Pending():
		case Expects(expected, o.Plan.Spec.ClusterServiceVersionNames):
			s.Is = "has the approved InstallPlan " + o.Plan.Name
			_, err = approve.Approve(ctx, f.Client, f.Agent, o.Plan)
		default:
			s.Is = fmt.Sprintf("has InstallPlan %s, which installs %s and not what was shown; check it with '%s approve %s -n %s --dry-run'",
				o.Plan.Name, strings.Join(o.Plan.Spec.ClusterServiceVersionNames, ", "), f.Program, subscription, f.Namespace)
			s.Done, s.Failed = true, true
		}
		return []waiting.State{s}, err
	})
}

// Expects reports whether an InstallPlan with the given ClusterServiceVersions is one of the expected ones.
func Expects(expected []Plan, versions []string) bool {
	names := slices.Sorted(slices.Values(versions))
	return slices.ContainsFunc(expected, func(p Plan) bool { return slices.Equal(p, names) })
}

package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// predictor predicts what a change of a cluster has for results.
type predictor struct {
	cluster *inputs.Cluster
	// global is the namespace of global catalogs.
	global string
	// log shows progress.
	log io.Writer
	// contents are the contents of catalogs that were read before. If onlyContents is set, there are no other catalogs.
	contents     map[resolution.CatalogKey]inputs.CatalogContent
	onlyContents bool
}

// predict returns what would happen in a namespace if the objects were applied to it.
func (p predictor) predict(ctx context.Context, namespace string, objects []client.Object) (*dryrun.Result, error) {
	o := inputs.Options{
		Namespace: namespace, Global: p.global, Contents: p.contents, OnlyContents: p.onlyContents, Now: metav1.NewTime(clock.RealClock{}.Now()),
		Connect:  func() (*inputs.Cluster, error) { return p.cluster, nil },
		Progress: func(what string) func() { return progress.Start(p.log, false, what) },
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
	return dryrun.Run(ctx, requests[0].Request)
}

// problemOf returns why a Subscription would not be installed; empty if it would.
func problemOf(res *dryrun.Result, subscription string) string {
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

// versionSet is the sorted ClusterServiceVersions of an InstallPlan.
type versionSet []string

// plansOf returns the InstallPlans of a Subscription in their order.
func plansOf(res *dryrun.Result, subscription string) []versionSet {
	var plans []versionSet
	for i := range res.Steps {
		if step := &res.Steps[i]; slices.Contains(step.Subscriptions, subscription) {
			plans = append(plans, planVersions(res, step.Plan))
		}
	}
	return plans
}

// planVersions returns the versions of the InstallPlan with a number.
func planVersions(res *dryrun.Result, number int) versionSet {
	var names versionSet
	for i := range res.Steps {
		if res.Steps[i].Plan == number {
			names = append(names, res.Steps[i].Bundle)
		}
	}
	slices.Sort(names)
	return names
}

// follower awaits the installation that a Subscription requests.
type follower struct {
	Client    client.Client
	Namespace string
	// Agent is the field manager of approvals.
	Agent   string
	Log     io.Writer
	Timeout time.Duration
	Program string
	// Replaced is the UID of an InstallPlan that the supervisor replaces soon; empty for none.
	Replaced types.UID
}

// awaitsReplacement begins the state of a Subscription whose InstallPlan another one replaces.
const awaitsReplacement = "waits for the plan that replaces "

// follow waits until a Subscription has a version, which may be empty for any. It approves an InstallPlan that waits for
// approval if it is one of the expected ones.
func (f *follower) follow(ctx context.Context, subscription, version string, expected []versionSet) error {
	r := wait.Reader{Client: f.Client, Namespace: f.Namespace}
	w := console.Waiter{Log: f.Log, Timeout: f.Timeout, Aim: "the installation", Remedy: f.Program + " status -n " + f.Namespace}
	return w.Wait(ctx, func(ctx context.Context) ([]console.WaitState, error) {
		o, err := r.Subscription(ctx, subscription)
		if err != nil {
			return nil, err
		}
		replaced := f.removeReplaced(o, expected)
		s := wait.SubscriptionState(f.Namespace+"/"+subscription, o, wait.Installed, version)
		switch {
		case s.Done:
		case replaced != "":
			s.Is = awaitsReplacement + replaced
		case !o.Pending():
		case expects(expected, o.Plan.Spec.ClusterServiceVersionNames):
			s.Is = "has the approved InstallPlan " + o.Plan.Name
			_, err = approval.Approver{Client: f.Client, Agent: f.Agent}.Approve(ctx, o.Plan)
			if errors.Is(err, approval.ErrDeleted) {
				// Another plan replaces it. If that is not the expected one either, the next pass fails.
				s.Is, err = awaitsReplacement+o.Plan.Name, nil
			}
		default:
			s.Is = fmt.Sprintf("has InstallPlan %s, which installs %s and not what was shown; check it with '%s approve %s -n %s --dry-run'",
				o.Plan.Name, strings.Join(o.Plan.Spec.ClusterServiceVersionNames, ", "), f.Program, subscription, f.Namespace)
			s.Done, s.Failed = true, true
		}
		return []console.WaitState{s}, err
	})
}

// removeReplaced removes the InstallPlan that the supervisor replaces soon, and the version that the old status names. It
// returns the name of the plan if the plan waits for approval or has failed; empty otherwise.
func (f *follower) removeReplaced(o *wait.Objects, expected []versionSet) (name string) {
	if f.Replaced == "" || replacedPlan(o.Plan, expected) != f.Replaced {
		return ""
	}
	if o.Plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		name = o.Plan.Name
	}
	o.Plan, o.Current = nil, nil
	return name
}

// replacedPlan returns the UID of the existing InstallPlan of a Subscription if the supervisor replaces it after a change of
// the channel; empty if it is in progress or one of the expected ones.
func replacedPlan(p *operatorsv1alpha1.InstallPlan, expected []versionSet) types.UID {
	if p == nil || expects(expected, p.Spec.ClusterServiceVersionNames) {
		return ""
	}
	ended := p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete || p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed
	if p.Spec.Approved && !ended {
		return ""
	}
	return p.UID
}

// expects reports whether an InstallPlan with the given ClusterServiceVersions is one of the expected ones.
func expects(expected []versionSet, versions []string) bool {
	names := slices.Sorted(slices.Values(versions))
	return slices.ContainsFunc(expected, func(p versionSet) bool { return slices.Equal(p, names) })
}

package approve

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/approval"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// waiter waits until InstallPlans are installed.
type waiter struct {
	client    client.Client
	namespace string
	log       io.Writer
	timeout   time.Duration
	program   string
	// last are the last states of the InstallPlans, in their order; empty before the first read.
	last []planState
}

// planState is the state of an InstallPlan and, after it is complete, of its ClusterServiceVersions.
type planState struct {
	// phase is empty if the InstallPlan was deleted.
	phase  operatorsv1alpha1.InstallPlanPhase
	states []console.WaitState
}

// wait logs changes of the InstallPlans, and then of their ClusterServiceVersions, until all are
// installed or one has failed.
func (f *waiter) wait(ctx context.Context, plans []selectedPlan) error {
	w := console.Waiter{Log: f.log, Timeout: f.timeout, Aim: "the installation", Remedy: f.program + " status -n " + f.namespace}
	return w.Wait(ctx, func(ctx context.Context) ([]console.WaitState, error) { return f.read(ctx, plans) })
}

// read reads the states of the InstallPlans.
func (f *waiter) read(ctx context.Context, plans []selectedPlan) ([]console.WaitState, error) {
	var all []console.WaitState
	now := make([]planState, 0, len(plans))
	for _, c := range plans {
		one, err := f.plan(ctx, c.plan)
		if err != nil {
			return nil, err
		}
		now, all = append(now, one), append(all, one.states...)
	}
	f.last = now
	return all, nil
}

// plan reads the state of an InstallPlan.
func (f *waiter) plan(ctx context.Context, approved *operatorsv1alpha1.InstallPlan) (planState, error) {
	var p operatorsv1alpha1.InstallPlan
	err := f.client.Get(ctx, client.ObjectKeyFromObject(approved), &p)
	if apierrors.IsNotFound(err) {
		return planState{states: []console.WaitState{{Object: "InstallPlan " + approved.Name, Is: "was deleted", Done: true, Failed: true}}}, nil
	}
	if err != nil {
		return planState{}, fmt.Errorf("reading InstallPlan %s/%s: %w", approved.Namespace, approved.Name, err)
	}
	s := planState{phase: p.Status.Phase, states: []console.WaitState{ofPlan(&p)}}
	if s.phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		return s, nil
	}
	for _, name := range p.Spec.ClusterServiceVersionNames {
		one, err := f.version(ctx, p.Namespace, name)
		if err != nil {
			return planState{}, err
		}
		s.states = append(s.states, one)
	}
	return s, nil
}

// outcome returns the outcome of a wait.
func (s planState) outcome() string {
	switch {
	case slices.ContainsFunc(s.states, func(one console.WaitState) bool { return one.Failed }):
		return failed
	case slices.ContainsFunc(s.states, func(one console.WaitState) bool { return !one.Done }):
		return unfinished
	default:
		return installed
	}
}

// finish adds the last states to the results of the InstallPlans.
func (f *waiter) finish(results []result) {
	for i := range f.last {
		results[i].Phase, results[i].Outcome = string(f.last[i].phase), f.last[i].outcome()
	}
}

func ofPlan(p *operatorsv1alpha1.InstallPlan) console.WaitState {
	s := console.WaitState{Object: "InstallPlan " + p.Name, Is: "is in phase " + approval.PhaseText(p.Status.Phase)}
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		s.Done = true
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		s.Done, s.Failed = true, true
	default:
	}
	if i := slices.IndexFunc(p.Status.Conditions, func(c operatorsv1alpha1.InstallPlanCondition) bool {
		return c.Type == operatorsv1alpha1.InstallPlanInstalled && c.Message != ""
	}); i >= 0 && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		s.Is += ": " + p.Status.Conditions[i].Message
	}
	return s
}

// version reads the state of a ClusterServiceVersion. A newer version has replaced one that does not exist.
func (f *waiter) version(ctx context.Context, namespace, name string) (console.WaitState, error) {
	s := console.WaitState{Object: "ClusterServiceVersion " + name}
	var v operatorsv1alpha1.ClusterServiceVersion
	err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v)
	switch {
	case apierrors.IsNotFound(err):
		s.Is, s.Done = "is deleted: a newer version has replaced it", true
		return s, nil
	case err != nil:
		return s, fmt.Errorf("reading ClusterServiceVersion %s/%s: %w", namespace, name, err)
	}
	s.Is = "is in phase " + string(v.Status.Phase)
	if v.Status.Phase == "" {
		s.Is = "has no phase yet"
	}
	switch v.Status.Phase {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting:
		s.Done = true
	case operatorsv1alpha1.CSVPhaseFailed:
		s.Done, s.Failed = true, true
		s.Is += ": " + v.Status.Message
	default:
	}
	return s, nil
}

package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// pollInterval is the time between two reads of the followed InstallPlans and ClusterServiceVersions.
const pollInterval = time.Second

// waiter waits until InstallPlans are installed.
type waiter struct {
	client    client.Client
	namespace string
	log       io.Writer
	timeout   time.Duration
	program   string
}

// state is the state of an InstallPlan or a ClusterServiceVersion.
type state struct {
	// what names the object. is describes its state.
	what, is string
	// over is set when the object is in a final state, and failed when that state is a failure.
	over, failed bool
}

// wait logs changes of the InstallPlans, and then of their ClusterServiceVersions, until all are
// installed or one has failed. The log is separate from the output, which may be a document.
func (f waiter) wait(ctx context.Context, plans []selectedPlan) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	ticker := clock.RealClock{}.NewTicker(pollInterval)
	defer ticker.Stop()
	logged := map[string]string{}
	var last []state
	for {
		now, err := f.read(ctx, plans)
		if err == nil {
			last = now
			if done, failed := f.report(now, logged); done || failed {
				return verdict(failed)
			}
		} else if isAnswer(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return f.timeoutError(ctx, last)
		case <-ticker.C():
		}
	}
}

// isAnswer reports whether an error is a final answer of the API server. While the API server is
// unreachable, as during an update of the cluster, the InstallPlans may still progress.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && console.CodeOf(err) != console.Unreachable
}

func verdict(failed bool) error {
	if failed {
		return console.Verdict(console.Negative)
	}
	return nil
}

// timeoutError returns the error for what is not installed before the timeout. It returns nil after an interrupt.
func (f waiter) timeoutError(ctx context.Context, last []state) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	var open []string
	for _, s := range last {
		if !s.over {
			open = append(open, s.what+" "+s.is)
		}
	}
	return &console.Coded{Code: console.Negative, Err: fmt.Errorf("not installed within %s (--timeout): %s; '%s status -n %s' shows the reason",
		f.timeout, strings.Join(open, ", "), f.program, f.namespace)}
}

// report logs the changes, and reports whether everything is done and whether something failed.
func (f waiter) report(now []state, logged map[string]string) (done, failed bool) {
	done = true
	for _, s := range now {
		if logged[s.what] != s.is {
			logged[s.what] = s.is
			fmt.Fprintf(f.log, "%s %s\n", s.what, s.is)
		}
		done = done && s.over
		failed = failed || s.failed
	}
	return done, failed
}

// read reads the states of the InstallPlans and, after they are complete, of their ClusterServiceVersions.
func (f waiter) read(ctx context.Context, plans []selectedPlan) ([]state, error) {
	var all []state
	for _, c := range plans {
		var p operatorsv1alpha1.InstallPlan
		err := f.client.Get(ctx, client.ObjectKeyFromObject(c.plan), &p)
		if apierrors.IsNotFound(err) {
			all = append(all, state{what: "InstallPlan " + c.plan.Name, is: "was deleted", over: true, failed: true})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading InstallPlan %s/%s: %w", c.plan.Namespace, c.plan.Name, err)
		}
		all = append(all, ofPlan(&p))
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			continue
		}
		for _, name := range p.Spec.ClusterServiceVersionNames {
			one, err := f.version(ctx, p.Namespace, name)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func ofPlan(p *operatorsv1alpha1.InstallPlan) state {
	s := state{what: "InstallPlan " + p.Name, is: "is in phase " + shown(p.Status.Phase)}
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		s.over = true
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		s.over, s.failed = true, true
	default:
	}
	if i := slices.IndexFunc(p.Status.Conditions, func(c operatorsv1alpha1.InstallPlanCondition) bool {
		return c.Type == operatorsv1alpha1.InstallPlanInstalled && c.Message != ""
	}); i >= 0 && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		s.is += ": " + p.Status.Conditions[i].Message
	}
	return s
}

// version reads the state of a ClusterServiceVersion. A newer version has replaced one that does not exist.
func (f waiter) version(ctx context.Context, namespace, name string) (state, error) {
	s := state{what: "ClusterServiceVersion " + name}
	var v operatorsv1alpha1.ClusterServiceVersion
	err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v)
	switch {
	case apierrors.IsNotFound(err):
		s.is, s.over = "is deleted: a newer version has replaced it", true
		return s, nil
	case err != nil:
		return s, fmt.Errorf("reading ClusterServiceVersion %s/%s: %w", namespace, name, err)
	}
	s.is = "is in phase " + string(v.Status.Phase)
	if v.Status.Phase == "" {
		s.is = "has no phase yet"
	}
	switch v.Status.Phase {
	case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting:
		s.over = true
	case operatorsv1alpha1.CSVPhaseFailed:
		s.over, s.failed = true, true
		s.is += ": " + v.Status.Message
	default:
	}
	return s, nil
}

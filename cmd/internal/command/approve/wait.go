package approve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// pollInterval is how often plans and versions are looked at that are followed.
const pollInterval = time.Second

// standing is where a plan, or a version, has got to.
type standing struct {
	// what names the object, and is what it says.
	what, is string
	// over says that it goes no further by itself; failed that it went wrong.
	over, failed bool
}

// follow tells of the plans, and then of their versions, until all are installed or one
// has failed. What it says goes where it does not get into a document.
func (a *approver) follow(ctx context.Context, choices []choice) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	ticker := clock.RealClock{}.NewTicker(pollInterval)
	defer ticker.Stop()
	told := map[string]string{}
	var last []standing
	for {
		now, err := a.look(ctx, choices)
		if err == nil {
			last = now
			if done, failed := a.report(now, told); done || failed {
				return verdict(failed)
			}
		} else if answered(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return a.late(ctx, last)
		case <-ticker.C():
		}
	}
}

// answered says whether an error is an answer of the API server that will not change by
// itself. While it cannot be reached, as during an update of the cluster, the plans go on.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && console.CodeOf(err) != console.Unreachable
}

func verdict(failed bool) error {
	if failed {
		return console.Verdict(console.Negative)
	}
	return nil
}

// late says what is not done when the time is over. Who interrupts the command knows why
// it ends.
func (a *approver) late(ctx context.Context, last []standing) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	var open []string
	for _, s := range last {
		if !s.over {
			open = append(open, s.what+" "+s.is)
		}
	}
	return &console.Coded{Code: console.Negative, Err: fmt.Errorf("not installed within %s (--timeout): %s; '%s status -n %s' says why",
		a.timeout, strings.Join(open, ", "), a.program, a.namespace)}
}

// report tells what is new, and says whether all is done, or something failed.
func (a *approver) report(now []standing, told map[string]string) (done, failed bool) {
	done = true
	for _, s := range now {
		if told[s.what] != s.is {
			told[s.what] = s.is
			fmt.Fprintf(a.log, "%s %s\n", s.what, s.is)
		}
		done = done && s.over
		failed = failed || s.failed
	}
	return done, failed
}

// look reads how the plans are and, once they are carried out, their versions.
func (a *approver) look(ctx context.Context, choices []choice) ([]standing, error) {
	var all []standing
	for _, c := range choices {
		var p operatorsv1alpha1.InstallPlan
		err := a.client.Get(ctx, client.ObjectKeyFromObject(c.plan), &p)
		if apierrors.IsNotFound(err) {
			all = append(all, standing{what: "InstallPlan " + c.plan.Name, is: "was deleted", over: true, failed: true})
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
			one, err := a.version(ctx, p.Namespace, name)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func ofPlan(p *operatorsv1alpha1.InstallPlan) standing {
	s := standing{what: "InstallPlan " + p.Name, is: "is in phase " + shown(p.Status.Phase)}
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

// version reads how a version is. One that is gone was replaced by a newer one.
func (a *approver) version(ctx context.Context, namespace, name string) (standing, error) {
	s := standing{what: "ClusterServiceVersion " + name}
	var v operatorsv1alpha1.ClusterServiceVersion
	err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v)
	switch {
	case apierrors.IsNotFound(err):
		s.is, s.over = "is gone: a newer one has replaced it", true
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

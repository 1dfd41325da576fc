package migration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// Takeover takes over a cluster from OLM.
type Takeover struct {
	Options

	// Again permits stopping an OLM that was started again after a takeover.
	Again bool
}

// Plan returns the plan of a takeover.
func (t *Takeover) Plan(ctx context.Context) (Plan, error) {
	o, err := observe(ctx, t.Options)
	if err != nil {
		return Plan{}, err
	}
	return NewPlan(o, t.Again), nil
}

// Run takes over. It may be interrupted at any moment and repeated, also by several processes at once. If there
// is nothing to take over, it does nothing.
func (t *Takeover) Run(ctx context.Context) error {
	return t.run(ctx, "taking over", t.Plan, t.runStep)
}

func (t *Takeover) runStep(ctx context.Context, step Step) error {
	switch step.Action {
	case RecordReplicas:
		return t.recordReplicas(ctx)
	case ScaleDown:
		return t.stop(ctx, step)
	case AwaitPods:
		return t.awaitPods(ctx)
	case RecordObjects:
		return t.recordObjects(ctx)
	case CompleteTakeover:
		return t.complete(ctx)
	default:
		return fmt.Errorf("unknown action %q", step.Action)
	}
}

// recordReplicas records the replicas of Deployments that are not in the record, or that were started again.
func (t *Takeover) recordReplicas(ctx context.Context) error {
	found, err := competing.NewDetector(t.Config).CheckAll(ctx)
	if err != nil {
		return err
	}
	record, cm, err := t.records().read(ctx)
	if err != nil {
		return err
	}
	if record == nil {
		record = &Record{Begun: t.Clock.Now().UTC().Truncate(time.Second)}
	}
	record.begin(found.Workloads)
	return t.records().write(ctx, record, cm)
}

// stop scales a Deployment to 0 and marks it, in one write.
func (t *Takeover) stop(ctx context.Context, step Step) error {
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: step.Namespace, Name: step.Name}
	if err := t.Client.Get(ctx, key, d); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	labels := map[string]any{}
	if d.Labels[api.LabelTakenOver] == "" || replicas > 0 {
		labels[api.LabelTakenOver] = strconv.Itoa(int(replicas))
	}
	return t.scale(ctx, d, 0, labels)
}

// awaitPods waits until no pod of OLM is left, since a terminating pod may still write.
func (t *Takeover) awaitPods(ctx context.Context) error {
	begun := t.Clock.Now()
	for {
		found, err := competing.NewDetector(t.Config).CheckAll(ctx)
		if err != nil {
			return err
		}
		left, err := remainingPods(ctx, t.Client, found.Workloads)
		if err != nil {
			return err
		}
		if len(left) == 0 && len(found.Active()) == 0 {
			return nil
		}
		if t.Clock.Since(begun) > waitTimeout {
			return fmt.Errorf("after %s there are still pods %s; if their node is lost, delete them with: kubectl delete pod --force, and run the command again",
				waitTimeout, strings.Join(left, ", "))
		}
		if err := t.pause(ctx); err != nil {
			return err
		}
	}
}

// recordObjects records the objects that the controllers may replace. It runs after OLM has stopped and before a
// supervisor works, so no manager changes them during the step.
func (t *Takeover) recordObjects(ctx context.Context) error {
	var (
		chunks int
		plans  []string
		group  errgroup.Group
	)
	group.Go(func() error {
		objects, err := readObjects(ctx, t.Client)
		if err != nil {
			return err
		}
		chunks, err = t.records().saveObjects(ctx, objects)
		return err
	})
	group.Go(func() (err error) {
		plans, err = unfinishedPlans(ctx, t.Client)
		return err
	})
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // says what it does
	}
	// The takeover is complete with the same write: each request delays the supervisor that is to lead.
	return t.records().change(ctx, func(r *Record) { r.Chunks, r.Plans, r.Phase = chunks, plans, TakenOver })
}

// complete permits the supervisors to work, unless the record does so already.
func (t *Takeover) complete(ctx context.Context) error {
	record, _, err := t.records().read(ctx)
	if err != nil || record.is(TakenOver) {
		return err
	}
	return t.records().change(ctx, func(r *Record) { r.Phase = TakenOver })
}

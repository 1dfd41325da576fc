package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/rival"
)

const (
	// goneDelay is the polling interval for terminating pods, and gonePatience the maximum wait. A pod of a lost node
	// is not deleted without intervention.
	goneDelay    = 500 * time.Millisecond
	gonePatience = 3 * time.Minute
	// rounds is how often a plan is recreated because the cluster has changed.
	rounds = 10
)

// Mover takes over a cluster from OLM, and hands it back.
type Mover struct {
	// Config is used to find OLM and competing supervisors. Its Client also reads and writes everything else,
	// without a cache, and its Namespace has the record.
	rival.Config

	// Again permits stopping an OLM that was started again after a takeover.
	Again bool
	// Tell is called with each step before it runs.
	Tell func(step string)
}

// Plan returns the plan of a takeover.
func (m *Mover) Plan(ctx context.Context) (Plan, error) {
	o, err := observe(ctx, m.Config)
	if err != nil {
		return Plan{}, err
	}
	return NewPlan(o, m.Again), nil
}

// Run takes over. It may be interrupted at any moment and repeated, also by several processes at once. If there
// is nothing to take over, it does nothing.
func (m *Mover) Run(ctx context.Context) error {
	return m.pursue(ctx, "taking over", m.Plan, m.do)
}

// pursue executes a plan until nothing is left to do. It recreates the plan if the cluster has changed.
func (m *Mover) pursue(ctx context.Context, what string, plan func(context.Context) (Plan, error), do func(context.Context, Step) error) error {
	var last error
	for range rounds {
		p, err := plan(ctx)
		if err != nil {
			return err
		}
		switch p.Verdict {
		case Nothing, Done:
			return nil
		case Blocked:
			return fmt.Errorf("%w: %s", ErrRefused, strings.Join(p.Blockers, "; "))
		case Possible:
		}
		if last = m.execute(ctx, p.Steps, do); last != nil && !passing(last) {
			return last
		}
	}
	return fmt.Errorf("%s: others keep changing what is there: %w", what, last)
}

// passing reports whether another plan may succeed.
func passing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

func (m *Mover) execute(ctx context.Context, steps []Step, do func(context.Context, Step) error) error {
	for _, step := range steps {
		m.Tell(step.Text)
		if err := do(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step.Text, err)
		}
	}
	return nil
}

func (m *Mover) do(ctx context.Context, step Step) error {
	switch step.Action {
	case Begin:
		return m.begin(ctx)
	case Stop:
		return m.stop(ctx, step)
	case Await:
		return m.await(ctx)
	case Keep:
		return m.keep(ctx)
	case Finish:
		return m.change(ctx, func(r *Record) { r.Phase = TakenOver })
	default:
		return fmt.Errorf("unknown action %q", step.Action)
	}
}

// begin records the replicas of Deployments that are not in the record, or that were started again.
func (m *Mover) begin(ctx context.Context) error {
	found, err := rival.NewSentry(m.Config).LookFully(ctx)
	if err != nil {
		return err //nolint:wrapcheck // says what was looked for
	}
	records := NewRecords(m.Client, m.Namespace)
	record, cm, err := records.read(ctx)
	if err != nil {
		return err
	}
	if record == nil {
		record = &Record{Begun: m.Clock.Now().UTC().Truncate(time.Second)}
	}
	for i := range found.Workloads {
		record.note(&found.Workloads[i])
	}
	record.Phase = TakingOver
	return records.write(ctx, record, cm)
}

// change changes the record.
func (m *Mover) change(ctx context.Context, how func(*Record)) error {
	records := NewRecords(m.Client, m.Namespace)
	record, cm, err := records.read(ctx)
	if err != nil {
		return err
	}
	if record == nil {
		return fmt.Errorf("ConfigMap %s/%s, the record of the take-over, is gone", m.Namespace, RecordName)
	}
	how(record)
	return records.write(ctx, record, cm)
}

// stop scales a Deployment to 0 and marks it, in one write.
func (m *Mover) stop(ctx context.Context, step Step) error {
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: step.Namespace, Name: step.Name}
	if err := m.Client.Get(ctx, key, d); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	marks := map[string]any{}
	if d.Labels[api.LabelTakenOver] == "" || replicas > 0 {
		marks[api.LabelTakenOver] = strconv.Itoa(int(replicas))
	}
	return m.scale(ctx, d, 0, marks)
}

// scale sets the replicas and labels of a Deployment that was read.
func (m *Mover) scale(ctx context.Context, d *appsv1.Deployment, replicas int32, labels map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": d.ResourceVersion, "labels": labels},
		"spec":     map[string]any{"replicas": replicas},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := m.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("scaling Deployment %s to %d: %w", client.ObjectKeyFromObject(d), replicas, err)
	}
	return nil
}

// await waits until no pod of OLM is left: a terminating one may still write.
func (m *Mover) await(ctx context.Context) error {
	begun := m.Clock.Now()
	for {
		o, err := rival.NewSentry(m.Config).LookFully(ctx)
		if err != nil {
			return err //nolint:wrapcheck // says what was looked for
		}
		var left []string
		for i := range o.Workloads {
			pods, err := podsOf(ctx, m.Client, client.ObjectKey{Namespace: o.Workloads[i].Namespace, Name: o.Workloads[i].Name})
			if err != nil {
				return err
			}
			left = append(left, pods...)
		}
		if len(left) == 0 && len(o.Active()) == 0 {
			return nil
		}
		if m.Clock.Since(begun) > gonePatience {
			return fmt.Errorf("after %s there are still pods %s; if their node is lost, delete them with: kubectl delete pod --force, and begin again",
				gonePatience, strings.Join(left, ", "))
		}
		select {
		case <-m.Clock.After(goneDelay):
		case <-ctx.Done():
			return context.Cause(ctx) //nolint:wrapcheck // the caller's own
		}
	}
}

// keep records the objects that the controllers may replace. It runs after OLM has stopped and before a
// supervisor works, so that no manager changes them during the step.
func (m *Mover) keep(ctx context.Context) error {
	records := NewRecords(m.Client, m.Namespace)
	images, err := take(ctx, m.Client)
	if err != nil {
		return err
	}
	chunks, err := records.save(ctx, images)
	if err != nil {
		return err
	}
	o := &Observation{}
	if err := o.count(ctx, m.Client); err != nil {
		return err
	}
	return m.change(ctx, func(r *Record) { r.Images, r.Plans = chunks, slices.Concat(o.Waiting, o.Underway) })
}

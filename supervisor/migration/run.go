package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	// pollInterval is the interval of checks while a step waits, and waitTimeout the maximum wait. A pod of a lost
	// node is not deleted without intervention.
	pollInterval = 100 * time.Millisecond
	waitTimeout  = 3 * time.Minute
	// parallelRequests is the maximum number of requests at the same time.
	parallelRequests = 8
	// maxPlans is how often a plan is made again because the cluster has changed.
	maxPlans = 10
)

// Options are what a takeover and a handback need to reach the cluster.
type Options struct {
	// Config is used to find OLM and competing supervisors. Its Client also reads and writes everything else,
	// without a cache, and its Namespace has the record.
	competing.Config

	// GlobalCatalogNamespace is the namespace whose catalogs serve all namespaces, as the supervisors use it; empty to
	// read it from their Deployment.
	GlobalCatalogNamespace string
	// OnStep is called with the text of each step before it runs.
	OnStep func(text string)
}

func (o *Options) records() *Records { return NewRecords(o.Client, o.Namespace) }

// run executes plans until nothing is left to do. It makes another plan if the cluster has changed.
func (o *Options) run(ctx context.Context, what string, plan func(context.Context) (Plan, error), do func(context.Context, Step) error) error {
	var last error
	for range maxPlans {
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
		if last = o.execute(ctx, p.Steps, do); last != nil && !outdated(last) {
			return last
		}
	}
	return fmt.Errorf("%s: other clients keep changing the objects: %w", what, last)
}

func (o *Options) execute(ctx context.Context, steps []Step, do func(context.Context, Step) error) error {
	for len(steps) > 0 {
		// Each stopped program waits for the others, so Deployments are scaled at the same time.
		together := 1
		for together < len(steps) && steps[together].Action == steps[0].Action {
			together++
		}
		var group errgroup.Group
		for _, step := range steps[:together] {
			o.OnStep(step.Text)
			group.Go(func() error {
				if err := do(ctx, step); err != nil {
					return fmt.Errorf("%s: %w", step.Text, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err //nolint:wrapcheck // names the step
		}
		steps = steps[together:]
	}
	return nil
}

// outdated reports whether an error means that the cluster has changed since the plan was made.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// scale sets the replicas of a Deployment that was read, and some of its labels, in one write. A nil value
// removes a label; the other labels stay.
func (o *Options) scale(ctx context.Context, d *appsv1.Deployment, replicas int32, labels map[string]any) error {
	metadata := map[string]any{"resourceVersion": d.ResourceVersion}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	patch := apply.MergePatch{"metadata": metadata, "spec": map[string]any{"replicas": replicas}}
	if err := apply.Patch(ctx, o.Client, d, patch, fieldOwner); err != nil {
		return fmt.Errorf("scaling Deployment %s to %d: %w", client.ObjectKeyFromObject(d), replicas, err)
	}
	return nil
}

// scaleTo scales the Deployment of a step.
func (o *Options) scaleTo(ctx context.Context, step Step, replicas int32, labels map[string]any) error {
	d := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: step.Namespace, Name: step.Name}
	if err := o.Client.Get(ctx, key, d); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return o.scale(ctx, d, replicas, labels)
}

// disown removes this project from the field managers of a Deployment. Otherwise the replicas are a conflict for the
// client that applies the Deployment, such as Helm.
func (o *Options) disown(ctx context.Context, key client.ObjectKey) error {
	var err error
	for range maxPlans {
		d := &appsv1.Deployment{}
		if err := o.Client.Get(ctx, key, d); err != nil {
			return fmt.Errorf("reading Deployment %s: %w", key, err)
		}
		others := slices.DeleteFunc(slices.Clone(d.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == string(fieldOwner) })
		if len(others) == len(d.ManagedFields) {
			return nil
		}
		patch := apply.MergePatch{"metadata": map[string]any{"resourceVersion": d.ResourceVersion, "managedFields": others}}
		// Controllers write the status of a Deployment that was scaled.
		if err = apply.Patch(ctx, o.Client, d, patch, fieldOwner); !apierrors.IsConflict(err) {
			break
		}
		if err := o.pause(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("removing the field manager %s of Deployment %s: %w", fieldOwner, key, err)
	}
	return nil
}

// pause waits for pollInterval.
func (o *Options) pause(ctx context.Context) error { return o.pauseFor(ctx, pollInterval) }

func (o *Options) pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-o.Clock.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

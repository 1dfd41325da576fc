package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sample is one installation.
type sample struct {
	// complete is the time until the InstallPlan was Complete. latest is the time until the
	// Subscription was AtLatestKnown. Both begin at the creation of the Subscription.
	complete, latest time.Duration
}

// stage is the result for one kind of installation.
type stage struct {
	name    string
	samples []sample
	// wrote are the writes of all installations together.
	wrote tally
	// took is the time until the last InstallPlan was Complete, if all began at once.
	took time.Duration
}

// figures are the measured values.
type figures struct {
	o              options
	inARow, atOnce []stage
}

// measure sets everything up, runs the stages and removes everything.
func measure(ctx context.Context, o options, dir string) (_ *figures, err error) {
	s, tearDown, err := setUp(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tearDown()) }()
	if err := s.fill(ctx, o); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	f := &figures{o: o}
	for _, kind := range []struct{ name, namespace, pkg string }{
		{"inline manifests", "inline", "inline"},
		{"bundle image, pulled", "image", "image"},
		{"bundle image, cached, second namespace", "again", "image"},
	} {
		measured, err := s.inARow(ctx, kind.namespace, kind.pkg, o.installs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		measured.name = kind.name
		f.inARow = append(f.inARow, measured)
		fmt.Fprintln(os.Stderr, measured.line())
	}
	for _, kind := range []struct {
		name, namespace string
		pkg             func(int) string
	}{
		{"an operator for each namespace", "apart", func(i int) string { return numbered("apart", i) }},
		{"the same operator in every namespace", "same", func(int) string { return numbered("inline", 0) }},
	} {
		measured, err := s.atOnce(ctx, kind.namespace, kind.pkg, o.namespaces)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		measured.name = kind.name
		f.atOnce = append(f.atOnce, measured)
		fmt.Fprintln(os.Stderr, measured.line())
	}
	return f, nil
}

func numbered(name string, i int) string { return fmt.Sprintf("%s-%03d", name, i) }

// fill writes the catalog and pushes the bundle images. It adds one more of each than is measured, for a warm-up.
func (s *scene) fill(ctx context.Context, o options) error {
	for i := range o.installs + 1 {
		if err := writePackage(s.catalog, numbered("inline", i), ""); err != nil {
			return err
		}
		pkg := numbered("image", i)
		image, err := pushBundle(ctx, s.images, pkg)
		if err != nil {
			return err
		}
		if err := writePackage(s.catalog, pkg, image); err != nil {
			return err
		}
	}
	for i := range o.namespaces {
		if err := writePackage(s.catalog, numbered("apart", i), ""); err != nil {
			return err
		}
	}
	return nil
}

// inARow installs operators one after the other, each in a namespace with an OperatorGroup. Each
// begins when the previous one is AtLatestKnown.
func (s *scene) inARow(ctx context.Context, namespace, pkg string, count int) (stage, error) {
	var measured stage
	namespaces := make([]string, count+1)
	for i := range namespaces {
		namespaces[i] = numbered(namespace, i)
	}
	if err := s.prepare(ctx, namespaces); err != nil {
		return measured, err
	}
	for _, n := range namespaces {
		if err := s.group(ctx, n); err != nil {
			return measured, err
		}
	}
	if _, err := s.install(ctx, namespaces[0], numbered(pkg, 0)); err != nil {
		return measured, err
	}
	before, err := writeCounter{s}.whenIdle(ctx)
	if err != nil {
		return measured, err
	}
	for i := 1; i <= count; i++ {
		one, err := s.install(ctx, namespaces[i], numbered(pkg, i))
		if err != nil {
			return measured, err
		}
		measured.samples = append(measured.samples, one)
	}
	after, err := writeCounter{s}.whenIdle(ctx)
	measured.wrote = after.since(before)
	return measured, err
}

// atOnce creates an OperatorGroup and a Subscription in each of many namespaces.
func (s *scene) atOnce(ctx context.Context, namespace string, pkg func(int) string, count int) (stage, error) {
	measured := stage{samples: make([]sample, count)}
	namespaces := make([]string, count)
	for i := range namespaces {
		namespaces[i] = numbered(namespace, i)
	}
	if err := s.prepare(ctx, namespaces); err != nil {
		return measured, err
	}
	before, err := writeCounter{s}.whenIdle(ctx)
	if err != nil {
		return measured, err
	}
	begun := time.Now()
	var group errgroup.Group
	for i, n := range namespaces {
		group.Go(func() error {
			if err := s.group(ctx, n); err != nil {
				return err
			}
			var err error
			measured.samples[i], err = s.install(ctx, n, pkg(i))
			// The time counts from the beginning of the whole stage.
			late := time.Since(begun) - measured.samples[i].latest
			measured.samples[i].complete += late
			measured.samples[i].latest += late
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return measured, err
	}
	for _, one := range measured.samples {
		measured.took = max(measured.took, one.complete)
	}
	after, err := writeCounter{s}.whenIdle(ctx)
	measured.wrote = after.since(before)
	return measured, err
}

// install creates a Subscription and watches it until it is AtLatestKnown.
func (s *scene) install(ctx context.Context, namespace, pkg string) (sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s was not installed within %s", pkg, patience))
	defer cancel()
	var one sample
	plans, err := s.client.Watch(ctx, &operatorsv1alpha1.InstallPlanList{}, client.InNamespace(namespace))
	if err != nil {
		return one, fmt.Errorf("watching InstallPlans: %w", err)
	}
	defer plans.Stop()
	subscriptions, err := s.client.Watch(ctx, &operatorsv1alpha1.SubscriptionList{}, client.InNamespace(namespace))
	if err != nil {
		return one, fmt.Errorf("watching Subscriptions: %w", err)
	}
	defer subscriptions.Stop()
	begun := time.Now()
	if err := s.subscribe(ctx, namespace, pkg); err != nil {
		return one, err
	}
	last := ""
	for one.complete == 0 || one.latest == 0 {
		var event watch.Event
		select {
		case event = <-plans.ResultChan():
		case event = <-subscriptions.ResultChan():
		case <-s.supervisor.Done():
			return one, s.supervisor.Unexpected()
		case <-ctx.Done():
			return one, fmt.Errorf("installing %s: %w; last seen: %s", pkg, context.Cause(ctx), last)
		}
		if last, err = one.see(event, time.Since(begun)); err != nil {
			return one, fmt.Errorf("installing %s: %w", pkg, err)
		}
	}
	return one, nil
}

// see records an event and its time. It returns a description of the state, for the error if no
// further event comes.
func (one *sample) see(event watch.Event, now time.Duration) (string, error) {
	switch o := event.Object.(type) {
	case *operatorsv1alpha1.InstallPlan:
		if o.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete && one.complete == 0 {
			one.complete = now
		}
		return fmt.Sprintf("InstallPlan %s, %s", o.Status.Phase, o.Status.Message), nil
	case *operatorsv1alpha1.Subscription:
		if o.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest && one.latest == 0 {
			one.latest = now
		}
		said := []string{"Subscription " + string(o.Status.State)}
		for _, c := range o.Status.Conditions {
			said = append(said, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Message))
		}
		return strings.Join(said, ", "), nil
	default:
		return "", fmt.Errorf("the watch ended: %v", event)
	}
}

// at returns the time that a share of the samples does not exceed.
func at(samples []sample, share float64, of func(sample) time.Duration) time.Duration {
	times := make([]time.Duration, 0, len(samples))
	for _, one := range samples {
		times = append(times, of(one))
	}
	slices.Sort(times)
	return times[max(0, int(math.Ceil(share*float64(len(times))))-1)]
}

func complete(s sample) time.Duration { return s.complete }
func latest(s sample) time.Duration   { return s.latest }

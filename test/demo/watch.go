package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// world is the demo's view of the cluster: a client for writes, and informers that report changes.
type world struct {
	client.Client // for writes, and for reads without the cache

	seen    client.Reader // for reads from the informers
	printer *printer
	// steps enables the lines about the steps of InstallPlans.
	steps bool

	mu      sync.Mutex // guards tracker and changed
	tracker *timeline.Tracker
	changed chan struct{} // closed at the next change
}

// watched returns the kinds in the timeline.
func watched() []client.Object {
	return []client.Object{
		&operatorsv1alpha1.CatalogSource{},
		&operatorsv1alpha1.Subscription{},
		&operatorsv1alpha1.InstallPlan{},
		&operatorsv1alpha1.ClusterServiceVersion{},
		&appsv1.Deployment{},
		&coordinationv1.Lease{},
	}
}

// newScheme returns a scheme with Kubernetes' own kinds and those of operators.coreos.com.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	return s, nil
}

// newWorld watches the cluster until ctx ends. The definitions of the watched kinds must be served already.
func newWorld(ctx context.Context, config *rest.Config, p *printer) (*world, error) {
	s, err := newScheme()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	informers, err := cache.New(config, cache.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("making informers: %w", err)
	}
	w := &world{
		Client: direct, seen: informers, printer: p, steps: true,
		tracker: timeline.NewTracker(), changed: make(chan struct{}),
	}
	for _, kind := range watched() {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(w.handler()); err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	go func() {
		// The informers end with ctx. A failed watch shows as a wait that times out.
		if err := informers.Start(ctx); err != nil {
			p.printNow(timeline.Line{Subject: "demo", Name: "watch", State: "failed", Detail: err.Error(), Tone: timeline.Bad})
		}
	}()
	if !informers.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watching the cluster: %w", context.Cause(ctx))
	}
	return w, nil
}

// handler prints each change of an object and wakes all waits.
func (w *world) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.observe,
		UpdateFunc: func(_, now any) { w.observe(now) },
		DeleteFunc: w.gone,
	}
}

func (w *world) observe(seen any) {
	object, ok := seen.(client.Object)
	if !ok || !ofStory(object) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.tracker.Observe(object, w.printer.at()) {
		if w.steps || line.Subject != timeline.StepSubject {
			w.printer.printLines(line)
		}
	}
	w.wake()
}

func (w *world) gone(seen any) {
	if unknown, ok := seen.(toolscache.DeletedFinalStateUnknown); ok {
		seen = unknown.Obj
	}
	object, ok := seen.(client.Object)
	if !ok || !ofStory(object) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.printer.printLines(w.tracker.Gone(object, w.printer.at())...)
	w.wake()
}

// ofStory excludes the Leases of nodes and of the control plane.
func ofStory(object client.Object) bool {
	_, lease := object.(*coordinationv1.Lease)
	return !lease || object.GetName() == leaseName
}

// wake wakes all waits. The caller holds the lock.
func (w *world) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// next returns a channel that is closed at the next change.
func (w *world) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// lateError is the error of a condition that did not become true in time.
type lateError struct {
	what  string
	limit time.Duration
}

func (e *lateError) Error() string {
	return fmt.Sprintf("waited %s in vain until %s", e.limit, e.what)
}

// await waits until the condition holds. It checks the condition when a watched object changes.
// After limit it returns a *lateError.
func (w *world) await(ctx context.Context, what string, limit time.Duration, holds func(context.Context) (bool, error)) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		changed := w.next()
		ok, err := holds(ctx)
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return &lateError{what, limit}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

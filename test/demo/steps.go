package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/examples"
	"github.com/chandlery/chandlery/test/demo/timeline"
)

// runSample installs the first version of each package and upgrades to the second. The supervisor
// that takes over installs the third.
func (d *demo) runSample(ctx context.Context) error {
	for _, pkg := range d.packages {
		if err := d.install(ctx, pkg); err != nil {
			return err
		}
	}
	d.titlef("A new version appears in the catalog")
	if err := d.upgrade(ctx, 2); err != nil {
		return err
	}
	stopped, err := d.stopLeader(ctx)
	if err != nil {
		return err
	}
	d.titlef("Another version appears, for the new leader to install")
	if err := d.upgrade(ctx, 3); err != nil {
		return err
	}
	d.titlef("%s comes back as the standby", stopped)
	return d.env.startSupervisor(ctx, stopped)
}

// runCatalog installs the packages one by one. The supervisor that takes over repairs the last one
// that was installed.
func (d *demo) runCatalog(ctx context.Context) error {
	var failures []error
	var installed target
	for _, pkg := range d.packages {
		err := d.install(ctx, pkg)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failures = append(failures, err)
			d.printNow(timeline.Line{Subject: "package", Name: pkg, State: "not installed", Detail: err.Error(), Tone: timeline.Bad})
			continue
		}
		installed, err = find(ctx, d.env.conn, pkg, d.channel)
		failures = append(failures, err)
	}
	if installed.pkg == "" {
		return errors.Join(failures...)
	}
	stopped, err := d.stopLeader(ctx)
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	if err := d.repair(ctx, installed); err != nil {
		return errors.Join(append(failures, err)...)
	}
	d.titlef("%s comes back as the standby", stopped)
	return errors.Join(append(failures, d.env.startSupervisor(ctx, stopped))...)
}

// addCatalog creates the CatalogSource and waits until it is connected.
func (d *demo) addCatalog(ctx context.Context) error {
	if err := d.env.world.ensure(ctx, catalogSource(d.env.registry)); err != nil {
		return err
	}
	err := d.env.world.await(ctx, "the CatalogSource is READY", d.timeout, func(ctx context.Context) (bool, error) {
		var c operatorsv1alpha1.CatalogSource
		err := d.env.world.seen.Get(ctx, types.NamespacedName{Namespace: catalogNamespace, Name: catalogName}, &c)
		state := c.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY", client.IgnoreNotFound(err)
	})
	if err != nil {
		d.explain(ctx)
	}
	return err
}

// install subscribes to a package in its own namespace and waits until the head of its channel
// runs. It stores the result for the summary.
func (d *demo) install(ctx context.Context, pkg string) error {
	d.titlef("Installing %s", pkg)
	began := time.Now()
	t, err := find(ctx, d.env.conn, pkg, d.channel)
	if err == nil {
		err = d.subscribe(ctx, t)
	}
	if err == nil {
		err = d.env.world.installed(ctx, pkg, t.csv, d.timeout)
	}
	d.results = append(d.results, d.summary(ctx, pkg, time.Since(began), err))
	return err
}

// subscribe creates the namespace, the OperatorGroup and the Subscription.
func (d *demo) subscribe(ctx context.Context, t target) error {
	for _, object := range []client.Object{namespace(namespaceOf(t.pkg)), operatorGroup(t), subscription(t)} {
		if err := d.env.world.ensure(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// upgrade adds versions to the catalog, up to count for each package, and waits until the heads of
// their channels run.
func (d *demo) upgrade(ctx context.Context, count int) error {
	if err := writeSample(d.env.sampleDir(), examples.Bundles(), count); err != nil {
		return err
	}
	began := time.Now()
	for i, before := range slices.Clone(d.results[len(d.results)-len(d.packages):]) {
		head, err := d.newHead(ctx, before)
		if err == nil && i == 0 {
			err = d.env.showGraph(ctx)
		}
		if err == nil {
			err = d.env.world.installed(ctx, before.Package, head, d.timeout)
		}
		d.results = append(d.results, d.summary(ctx, before.Package, time.Since(began), err))
		if err != nil {
			return err
		}
	}
	return nil
}

// newHead waits until the registry serves a new head of the package's channel and returns it.
func (d *demo) newHead(ctx context.Context, before timeline.Summary) (string, error) {
	limited, cancel := context.WithTimeoutCause(ctx, d.timeout, &lateError{"the registry serves the new version", d.timeout})
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		t, err := find(limited, d.env.conn, before.Package, d.channel)
		if err != nil {
			return "", errors.Join(err, context.Cause(limited))
		}
		if t.csv != before.CSV {
			d.printNow(timeline.Line{Subject: "registry", Name: d.env.registry, State: "serves " + t.csv, Tone: timeline.Good})
			return t.csv, nil
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return "", context.Cause(limited)
		}
	}
}

// stopLeader stops the leading supervisor and waits until the other one leads. It returns the name
// of the stopped one.
func (d *demo) stopLeader(ctx context.Context) (string, error) {
	name, err := d.env.world.leader(ctx, "", d.timeout)
	if err != nil {
		return "", err
	}
	p := d.env.processes.named(name)
	if p == nil {
		return "", fmt.Errorf("the lease is held by %q, which is no supervisor of this demo", name)
	}
	d.titlef("The leader, %s, is stopped", name)
	began := time.Now()
	if err := d.env.processes.stop(p); err != nil {
		return "", err
	}
	d.printNow(timeline.Line{Subject: "supervisor", Name: name, State: "stopped", Tone: timeline.Busy})
	next, err := d.env.world.leader(ctx, name, d.timeout)
	if err != nil {
		return "", err
	}
	d.printNow(timeline.Line{
		Subject: "supervisor", Name: next, State: "took over", Tone: timeline.Good,
		Detail: fmt.Sprintf("%.1f s after the stop began", time.Since(began).Seconds()),
	})
	return name, nil
}

// repair deletes a Deployment and waits until the new leader has recreated it.
func (d *demo) repair(ctx context.Context, t target) error {
	var c operatorsv1alpha1.ClusterServiceVersion
	if err := d.env.world.Get(ctx, types.NamespacedName{Namespace: namespaceOf(t.pkg), Name: t.csv}, &c); err != nil {
		return fmt.Errorf("reading the installed version: %w", err)
	}
	specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if len(specs) == 0 {
		return nil
	}
	var lost appsv1.Deployment
	key := types.NamespacedName{Namespace: c.Namespace, Name: specs[0].Name}
	if err := d.env.world.Get(ctx, key, &lost); err != nil {
		return fmt.Errorf("reading the Deployment of %s: %w", t.csv, err)
	}
	d.titlef("Deployment %s is deleted, for the new leader to restore", key.Name)
	if err := d.env.world.Delete(ctx, &lost); err != nil {
		return fmt.Errorf("deleting the Deployment of %s: %w", t.csv, err)
	}
	return d.env.world.await(ctx, "Deployment "+key.Name+" is restored", d.timeout, func(ctx context.Context) (bool, error) {
		var now appsv1.Deployment
		err := d.env.world.seen.Get(ctx, key, &now)
		if err != nil || now.UID == lost.UID || !timeline.Available(&now) {
			return false, client.IgnoreNotFound(err)
		}
		var after operatorsv1alpha1.ClusterServiceVersion
		err = d.env.world.seen.Get(ctx, client.ObjectKeyFromObject(&c), &after)
		return after.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, err
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/packageserver"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// restFigures are the memory of a whole supervisor in bytes, and the age of its Lease.
type restFigures struct {
	// on and off are the anonymous memory at rest with the API and without it, for a cluster with the catalog. emptyOn and
	// emptyOff are so without catalogs.
	on, off, emptyOn, emptyOff int64
	// lease is the largest age of the Lease during full lists at once, table is the median time of a table then, and peak the
	// resident memory of the leader after them.
	lease, table time.Duration
	peak         int64
}

// measureRest runs a whole supervisor with and without the API. It removes the catalog.
func (s *scene) measureRest(ctx context.Context) (f restFigures, err error) {
	port, err := ports.Reserve(ctx)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, port.Release()) }()
	number := int32(port.Number)
	objects := append(packageserver.Endpoint(home, supervisorService, s.host, number), packageserver.Deployment(home, supervisorDeployment))
	if err := s.create(ctx, objects...); err != nil {
		return f, err
	}
	const on, off = "auto", "disabled"
	if f.on, err = s.atRest(ctx, on, number, func(ctx context.Context, started *process.Process) (err error) {
		f.lease, f.table, err = s.listAtOnceBeside(ctx)
		if err != nil {
			return err
		}
		f.peak, err = memory(started.PID(), "VmHWM:")
		return err
	}); err != nil {
		return f, err
	}
	if f.off, err = s.atRest(ctx, off, number, nil); err != nil {
		return f, err
	}
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: catalog}}
	if err := s.client.Delete(ctx, source); err != nil {
		return f, fmt.Errorf("deleting the CatalogSource: %w", err)
	}
	if f.emptyOn, err = s.atRest(ctx, on, number, nil); err != nil {
		return f, err
	}
	f.emptyOff, err = s.atRest(ctx, off, number, nil)
	return f, err
}

// The Deployment of supervisors, and their Service for PackageManifests.
const (
	supervisorDeployment = "chandlery-supervisor"
	supervisorService    = "chandlery-packagemanifests-service"
)

// settling is how long a supervisor is idle at least. An idle process collects garbage every two minutes, and then returns
// memory slowly.
const settling = 3 * time.Minute

// atRest runs a supervisor, which serves the API only in a pod, and returns its anonymous memory after it has been idle. If
// there is a function, atRest waits for packages before, and calls it after.
func (s *scene) atRest(ctx context.Context, mode string, port int32, serving func(context.Context, *process.Process) error) (bytes int64, err error) {
	started, err := s.startInPod(ctx, process.Spec{
		Name: "supervisor", Path: filepath.Join(s.dir, "supervisor"), Log: filepath.Join(s.dir, "supervisor-"+mode+".log"),
		Args: append(packageserver.Args(s.plane.Kubeconfig(), home, s.host, port), "--packagemanifests", mode, "--global-catalog-namespace", home),
	}, nil)
	if err != nil {
		return 0, fmt.Errorf("starting a supervisor: %w", err)
	}
	defer func() { err = errors.Join(err, started.Stop(grace)) }()
	if serving != nil {
		if _, err := s.awaitPackages(ctx, started); err != nil {
			return 0, err
		}
	}
	if !pause.For(ctx, max(settling, s.rest)) {
		return 0, context.Cause(ctx)
	}
	if err := started.Unexpected(); err != nil {
		return 0, err
	}
	if bytes, err = memory(started.PID(), "RssAnon:"); err != nil || serving == nil {
		return bytes, err
	}
	return bytes, serving(ctx, started)
}

// listAtOnceBeside sends full lists at once, for as many rounds as there are calls. It returns the largest age of the Lease
// during these calls, and the median time of tables that are read one after the other.
func (s *scene) listAtOnceBeside(ctx context.Context) (lease, tables time.Duration, err error) {
	watching, stop := context.WithCancel(ctx)
	var watch errgroup.Group
	watch.Go(func() error {
		var err error
		lease, err = s.watchLease(watching)
		return err
	})
	var times []time.Duration
	watch.Go(func() error {
		for watching.Err() == nil {
			took, err := s.once(ctx, table)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		return nil
	})
	for range s.calls {
		if err = s.listAtOnce(ctx); err != nil {
			break
		}
	}
	stop()
	if err := errors.Join(err, watch.Wait()); err != nil {
		return 0, 0, err
	}
	return lease, median(times), nil
}

// watchLease reads the Lease of the supervisors until ctx ends, and returns its largest age.
func (s *scene) watchLease(ctx context.Context) (oldest time.Duration, err error) {
	key := client.ObjectKey{Namespace: home, Name: supervisorDeployment}
	for {
		lease := &coordinationv1.Lease{}
		if err := s.client.Get(context.WithoutCancel(ctx), key, lease); err != nil {
			return 0, fmt.Errorf("reading Lease %s: %w", key, err)
		}
		if lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil {
			return 0, fmt.Errorf("lease %s has no holder", key)
		}
		oldest = max(oldest, time.Since(lease.Spec.RenewTime.Time))
		if !pause.For(ctx, polling) {
			return oldest, nil
		}
	}
}

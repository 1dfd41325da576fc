package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/packageserver"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// restFigures are the anonymous memory of a whole supervisor at rest, in bytes.
type restFigures struct {
	// on and off are with the API and without it, for a cluster with the catalog. emptyOn and emptyOff are so without catalogs.
	on, off, emptyOn, emptyOff int64
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
	if f.on, err = s.atRest(ctx, on, number, true); err != nil {
		return f, err
	}
	if f.off, err = s.atRest(ctx, off, number, false); err != nil {
		return f, err
	}
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: catalog}}
	if err := s.client.Delete(ctx, source); err != nil {
		return f, fmt.Errorf("deleting the CatalogSource: %w", err)
	}
	if f.emptyOn, err = s.atRest(ctx, on, number, false); err != nil {
		return f, err
	}
	f.emptyOff, err = s.atRest(ctx, off, number, false)
	return f, err
}

// The Deployment of supervisors, and their Service for PackageManifests.
const (
	supervisorDeployment = "chandlery-supervisor"
	supervisorService    = "chandlery-packagemanifests-service"
)

// settling is how long a supervisor is idle at least: the runtime returns memory slowly.
const settling = time.Minute

// atRest runs a supervisor and returns its anonymous memory after it has been idle. It waits for packages before, if it is to
// serve some.
func (s *scene) atRest(ctx context.Context, mode string, port int32, serves bool) (bytes int64, err error) {
	started, err := process.Start(ctx, process.Spec{
		Name: "supervisor", Path: filepath.Join(s.dir, "supervisor"), Log: filepath.Join(s.dir, "supervisor-"+mode+".log"),
		Args: append(packageserver.Args(s.plane.Kubeconfig(), home, s.host, port), "--packagemanifests", mode, "--global-catalog-namespace", home),
	})
	if err != nil {
		return 0, fmt.Errorf("starting a supervisor: %w", err)
	}
	defer func() { err = errors.Join(err, started.Stop(grace)) }()
	if serves {
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
	return memory(started.PID(), "RssAnon:")
}

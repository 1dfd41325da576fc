package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
)

// bench is a scene with the destination of the figures.
type bench struct {
	scene *failover.Scene
	out   io.Writer
	image string
}

// run measures everything, with one table for each target.
func (b *bench) run(ctx context.Context, rounds, plain int) error {
	if err := b.pushCatalog(ctx); err != nil {
		return err
	}
	for _, m := range []struct {
		title    string
		replicas int
		rounds   int
		kind     failover.Kind
		hosted   bool
	}{
		{"Two replicas, one lost with its node", 2, rounds, failover.LostNode, true},
		{"Two replicas, one lost with its node and with the leader on it", 2, rounds, failover.LostNodeLeader, true},
		{"One replica, lost with its node", 1, rounds, failover.LostNode, true},
		{"Leader killed (SIGKILL)", 2, rounds, failover.KilledLeader, true},
		{"Leader stopped (SIGTERM)", 2, rounds, failover.StoppedLeader, true},
		{"A plain Deployment of two replicas, one lost with its node", 2, plain, failover.LostNode, false},
		{"A plain Deployment of one replica, lost with its node", 1, plain, failover.LostNode, false},
	} {
		if m.rounds == 0 {
			continue
		}
		if _, err := fmt.Fprintf(b.out, "\n%s:\n\n", m.title); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		target, err := b.target(ctx, m.replicas, m.hosted)
		if err != nil {
			return err
		}
		if err := b.measure(ctx, target, m.kind, m.rounds); err != nil {
			return err
		}
	}
	return nil
}

// pushCatalog pushes the image of the sample catalog.
func (b *bench) pushCatalog(ctx context.Context) error {
	catalog, err := buildcache.SourceDir("examples/catalog")
	if err != nil {
		return err
	}
	registry, err := images.Local(ctx, "chandlery/registry")
	if err != nil {
		return err
	}
	image, err := images.Registry(registry, os.DirFS(catalog))
	if err != nil {
		return err
	}
	b.image = b.scene.Bed.Images.Address() + "/sample:v1"
	_, err = images.Push(ctx, b.image, image)
	return err
}

// target returns a catalog with a number of replicas, run by the supervisors or as a plain Deployment.
func (b *bench) target(ctx context.Context, replicas int, hosted bool) (failover.Target, error) {
	if !hosted {
		return b.scene.Plain(ctx, fmt.Sprintf("plain-%d", replicas), b.image, replicas)
	}
	target := failover.Hosted(fmt.Sprintf("hosted-%d", replicas), replicas)
	source := failover.NewCatalog(target.Service, b.image, replicas)
	if _, err := b.scene.Source(ctx, source.Name); err != nil {
		if err := b.scene.Client.Create(ctx, source); err != nil {
			return target, fmt.Errorf("creating CatalogSource %s: %w", source.Name, err)
		}
	}
	return target, errors.Join(b.scene.Ready(ctx, source.Name), b.scene.Strong(ctx, target))
}

// measure runs rounds while a client calls, and prints the results.
func (b *bench) measure(ctx context.Context, target failover.Target, kind failover.Kind, rounds int) error {
	calls, err := b.scene.Call(ctx, target)
	if err != nil {
		return err
	}
	var done []failover.Round
	for range rounds {
		round, err := b.scene.Go(ctx, kind, target, calls)
		if err != nil {
			return errors.Join(err, calls.Stop())
		}
		done = append(done, round)
	}
	return errors.Join(failover.Table(b.out, done), calls.Stop())
}

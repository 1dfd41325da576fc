// Package opmcache creates the cache from which "opm serve" serves a catalog without reading the catalog.
package opmcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/sirupsen/logrus" //nolint:depguard // operator-registry logs to it
)

// Create creates a directory and fills it with the cache of the catalog in another directory.
func Create(ctx context.Context, dir, catalog string) (err error) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("creating the cache for opm: %w", err)
	}
	store, err := cache.New(dir, cache.WithLog(logrus.NewEntry(log)))
	if err != nil {
		return fmt.Errorf("creating the cache for opm: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Build(ctx, os.DirFS(catalog)); err != nil {
		return fmt.Errorf("filling the cache for opm: %w", err)
	}
	return nil
}

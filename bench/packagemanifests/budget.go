package main

import (
	"errors"
	"fmt"
	"time"
)

// Budgets of the API of PackageManifests. Memory is anonymous.
const (
	maxTable   = 100 * time.Millisecond
	maxList    = 500 * time.Millisecond
	maxAPI     = 15 << 20 // a supervisor without a catalog
	maxCatalog = 4 << 20  // more, for the catalog
	// maxLease is the default of --renew-deadline: an older Lease ends the leadership.
	maxLease = 10 * time.Second
	// maxPeak is the limit of memory in deploy/supervisor/deployment.yaml.
	maxPeak = 1 << 30
	// maxServerPeak is the limit of memory in deploy/components/packagemanifests/deployment.yaml.
	maxServerPeak = 512 << 20
	// The largest parts of what OLM's package server needs.
	maxPartOfMemory    = 1.0 / 5
	maxPartOfProcessor = 1.0 / 10
)

// checkBudgets returns an error that names each budget that the API misses beside OLM's package server.
func checkBudgets(own, peer figures, rest restFigures) error {
	var missed []error
	check := func(what string, got, most float64, text func(float64) string) {
		if got > most {
			missed = append(missed, fmt.Errorf("%s: %s, want at most %s", what, text(got), text(most)))
		}
	}
	elapsed := func(nanoseconds float64) string { return time.Duration(nanoseconds).Round(time.Millisecond).String() }
	size := func(bytes float64) string { return mebibytes(int64(bytes)) }
	empty := rest.emptyOn - rest.emptyOff
	increase := rest.on - rest.off
	check("a table", float64(own.table), float64(maxTable), elapsed)
	check("a full list", float64(own.list), float64(maxList), elapsed)
	check("resident memory of a package server", float64(own.peak), maxServerPeak, size)
	check("memory of the API without a catalog", float64(empty), maxAPI, size)
	check("more memory of the API with a catalog", float64(increase-empty), maxCatalog, size)
	check("a table during full lists", float64(rest.table), float64(maxTable), elapsed)
	check("age of the Lease during full lists", float64(rest.lease), float64(maxLease), elapsed)
	check("resident memory after full lists", float64(rest.peak), maxPeak, size)
	check("memory of the API beside OLM's package server", float64(increase), maxPartOfMemory*float64(peer.idle), size)
	check("processor time beside OLM's package server", float64(own.processor), maxPartOfProcessor*float64(peer.processor), elapsed)
	return errors.Join(missed...)
}

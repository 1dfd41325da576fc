package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

// TestFrozenLeader freezes the leading supervisor early in an installation with two updates, lets
// the standby finish it, and then resumes the old leader. The old leader still acts as the leader.
// It must exit, and none of its outdated writes may arrive.
func TestFrozenLeader(t *testing.T) {
	const source = "frozen"
	c := newClient(t)
	catalog, err := buildcache.SourceDir("examples/catalog")
	if err != nil {
		t.Fatal(err)
	}
	address := programs.Serve(t, filepath.Join(bin, "registry"), catalog)
	crew := map[string]*process.Process{"cold-a": startSupervisor(t, "cold-a"), "cold-b": startSupervisor(t, "cold-b")}
	var old *process.Process
	eventually(t, "a leader of this test's", func(ctx context.Context) (bool, string) {
		name, err := holder(ctx, c)
		old = crew[name]
		return old != nil, fmt.Sprintf("%q leads, %v", name, err)
	})

	recorders := map[string]*recorder{}
	for i := range 6 {
		namespace := fmt.Sprintf("frozen-%d", i)
		create(t, c, namespaceObject(namespace))
		create(t, c, catalogSource(namespace, source, address))
		recorders[namespace] = record(t, c, namespace)
	}
	for namespace := range recorders {
		create(t, c, operatorGroup(namespace), subscription(namespace, samplePackage, firstCSV, source, namespace))
	}
	// Freeze early, with much in progress, so the state of the old leader is as outdated as
	// possible. Without fencing this test fails.
	if err := recorders["frozen-0"].after(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if err := old.Freeze(); err != nil {
		t.Fatal(err)
	}
	for namespace, r := range recorders {
		awaitInstalled(t, c, namespace)
		r.awaitPlans(t)
	}
	settled := map[string]map[string][]string{}
	for namespace, r := range recorders {
		settled[namespace] = r.history(namespace)
	}
	if err := old.Thaw(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.Done():
	case <-time.After(patience):
		t.Fatalf("%s goes on though it no longer leads; see %s", old.Name(), old.Log())
	}
	var exit *process.ExitError
	if err := old.Unexpected(); !errors.As(err, &exit) || exit.Err == nil {
		t.Errorf("%s ended without an error: %v", old.Name(), err)
	}
	for namespace, r := range recorders {
		if diff := cmp.Diff(settled[namespace], r.history(namespace)); diff != "" {
			t.Errorf("what changed in %s after the old leader came back (-before +after):\n%s", namespace, diff)
		}
		awaitInstalled(t, c, namespace)
	}
}

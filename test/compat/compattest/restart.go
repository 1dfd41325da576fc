package compattest

import (
	"context"
	"testing"
)

// StopSupervisor stops the supervisor, or OLM if OLM is tested. It returns a function that starts the program again.
func StopSupervisor(t *testing.T) (restart func()) {
	t.Helper()
	needsOwnCluster(t)
	if err := target.started.Stop(grace); err != nil {
		t.Fatalf("stopping the program: %v", err)
	}
	return func() {
		t.Helper()
		if err := target.restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// AfterOLM runs OLM in place of the supervisor while it calls prepare, and then the supervisor again. If OLM is tested,
// it runs OLM all the time, and restarts it.
func AfterOLM(t *testing.T, prepare func()) {
	t.Helper()
	restart, tested, stopped := StopSupervisor(t), target.restart, target.started
	if err := startOLM(t.Context(), target.plane); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stopOLM(t.Context()); err != nil {
			t.Errorf("stopping OLM: %v", err)
		}
		target.restart, target.started = tested, stopped
		restart()
	}()
	prepare()
}

// stopOLM stops OLM, and removes its objects unless OLM is tested.
func stopOLM(ctx context.Context) error {
	if started, is := target.started.(olm); is && !target.olm {
		return started.Remove(ctx) //nolint:wrapcheck // says what failed
	}
	return target.started.Stop(grace)
}

package compattest

import "testing"

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

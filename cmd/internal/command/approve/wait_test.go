package approve

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestWaitInterrupted ends the context of a wait for an installation.
func TestWaitInterrupted(t *testing.T) {
	t.Parallel()
	plan := installPlan("approved", operatorsv1alpha1.InstallPlanPhaseInstalling, true)
	c, _ := fixtures.RecordingClient(t, &plan)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&waiter{client: c, namespace: "shop", log: io.Discard, timeout: time.Minute}).wait(ctx, []selectedPlan{{plan: &plan}})
	if !errors.Is(err, console.ErrInterrupted) || console.CodeOf(err) != console.Interrupted {
		t.Errorf("error %v with exit code %d, want %v", err, console.CodeOf(err), console.ErrInterrupted)
	}
}

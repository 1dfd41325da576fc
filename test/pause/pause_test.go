package pause_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/pause"
)

func TestUntil(t *testing.T) {
	left := []string{"two", "one", ""}
	err := pause.Until(t.Context(), time.Microsecond, func() string {
		says := left[0]
		left = left[1:]
		return says
	})
	if err != nil || len(left) > 0 {
		t.Errorf("it ends with %v, and %q was not asked for", err, left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err = pause.Until(ctx, time.Microsecond, func() string {
		asked++
		if asked == 1 {
			return "a lamp is dark"
		}
		cancel()
		return "nothing can be read any more"
	})
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "a lamp is dark") {
		t.Errorf("when the time is over it says %v", err)
	}
}

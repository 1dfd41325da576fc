package controlplane

import (
	"os"
	"testing"
	"time"
)

// gracePeriod is short, so the loss of a node is detected quickly.
const gracePeriod = 4 * time.Second

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv(parentVariable) != "" {
		return parent()
	}

	return Main(m, Options{NodeMonitorGracePeriod: gracePeriod})
}

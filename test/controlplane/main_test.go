package controlplane

import (
	"os"
	"testing"
	"time"
)

// gracePeriod is short so that the loss of a node is seen soon.
const gracePeriod = 4 * time.Second

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv(parentVariable) != "" {
		return parent()
	}

	return Main(m, Options{NodeMonitorGracePeriod: gracePeriod})
}

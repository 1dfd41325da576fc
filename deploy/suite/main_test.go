package suite_test

import (
	"os"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{NodeMonitorGracePeriod: 5 * time.Second}))
}

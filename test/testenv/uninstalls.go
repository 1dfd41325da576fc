package testenv

import (
	"testing"

	"github.com/chandlery/chandlery/test/sampling"
)

// Uninstalls returns $UNINSTALLS, how often the supervisor is removed in each way; once without it.
func Uninstalls(t *testing.T) int {
	t.Helper()
	return sampling.Number(t, "UNINSTALLS", 1, 1)
}

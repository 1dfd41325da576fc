package testenv

import (
	"os"
	"strconv"
	"testing"
)

// Uninstalls returns $UNINSTALLS, how often the supervisor is removed in each way; once without it.
func Uninstalls(t *testing.T) int {
	t.Helper()
	text := os.Getenv("UNINSTALLS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("$UNINSTALLS is %q; it has to be a number above 0", text)
	}
	return n
}

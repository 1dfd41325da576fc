// Package sampling reads the environment variables with which tests that repeat themselves do so less often. The Makefile
// describes the variables and has their values for `make test` and `make whole`.
package sampling

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the number in an environment variable, or another one if the variable is not set. A test that gets no
// number, or one below least, fails at once.
func Number(tb testing.TB, variable string, otherwise, least int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		tb.Fatalf("$%s is %q; it has to be a number from %d on", variable, text, least)
	}
	return n
}

// OneIn returns a fixed part of a list: the first element, and one in so many as an environment variable says. Without the
// variable, it returns the whole list.
func OneIn[T any](tb testing.TB, variable string, list []T) []T {
	tb.Helper()
	share := Number(tb, variable, 1, 1)
	var part []T
	for i := 0; i < len(list); i += share {
		part = append(part, list[i])
	}
	return part
}

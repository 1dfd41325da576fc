package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWaitForEnter checks that a line ends the wait, and that the end of the input does not.
func TestWaitForEnter(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waitForEnter(ctx, strings.NewReader("\n"))
	if ctx.Err() != nil {
		t.Error("a line does not end the wait")
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waitForEnter(short, strings.NewReader("no line"))
	if !errors.Is(short.Err(), context.DeadlineExceeded) {
		t.Error("the end of the input ends the wait")
	}
}

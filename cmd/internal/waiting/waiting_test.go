package waiting

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// TestWait reads states until the wait ends.
func TestWait(t *testing.T) {
	t.Parallel()
	open := State{Object: "Lamp a", Is: "is off"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "lamps"}, "a", nil)
	for name, tt := range map[string]struct {
		reads []State
		err   error
		code  console.Code
		log   string
		says  string
	}{
		"Done":      {reads: []State{open, open, {Object: "Lamp a", Is: "is on", Done: true}}, log: "Lamp a is off\nLamp a is on\n"},
		"Failed":    {reads: []State{{Object: "Lamp a", Is: "broke", Done: true, Failed: true}}, code: console.Negative, log: "Lamp a broke\n", says: "the command ends with exit code 2"},
		"Timeout":   {reads: []State{open}, code: console.Negative, log: "Lamp a is off\n", says: "not lit within 3s (--timeout): Lamp a is off; 'lamp status' shows the reason"},
		"Forbidden": {err: forbidden, code: console.Forbidden, says: forbidden.Error()},
		"Silent":    {err: context.DeadlineExceeded, code: console.Negative, says: "not lit within 3s (--timeout): the API server does not answer; 'lamp status' shows the reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			n := 0
			err := Waiter{Log: &log, Timeout: 3 * time.Second, Aim: "lit", Remedy: "lamp status"}.Wait(t.Context(), func(context.Context) ([]State, error) {
				if tt.err != nil {
					return nil, tt.err
				}
				now := tt.reads[min(n, len(tt.reads)-1)]
				n++
				return []State{now}, nil
			})
			code := console.CodeOf(err)
			if v, is := errors.AsType[console.Verdict](err); is {
				code = console.Code(v)
			}
			says := ""
			if err != nil {
				says = err.Error()
			}
			if code != tt.code || says != tt.says || log.String() != tt.log {
				t.Errorf("code %d, want %d; error %q, want %q; log %q, want %q", code, tt.code, says, tt.says, log.String(), tt.log)
			}
		})
	}
}

// TestWaitInterrupted ends the context during a wait.
func TestWaitInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := Waiter{Log: &bytes.Buffer{}, Timeout: time.Minute}.Wait(ctx, func(context.Context) ([]State, error) {
		cancel()
		return []State{{Object: "a"}}, nil
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

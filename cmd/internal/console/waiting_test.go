package console

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWait reads states until the wait ends.
func TestWait(t *testing.T) {
	t.Parallel()
	open := WaitState{Object: "Lamp a", Is: "is off"}
	refused := &url.Error{Op: "Get", URL: "https://lamps", Err: syscall.ECONNREFUSED}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "lamps"}, "a", nil)
	noAPI := &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "operators.coreos.com", Kind: "Lamp"}}
	for name, tt := range map[string]struct {
		reads []WaitState
		// err is the error of the first read, and later that of each read after the first.
		err, later error
		code       Code
		log        string
		says       string
	}{
		"Done":      {reads: []WaitState{open, open, {Object: "Lamp a", Is: "is on", Done: true}}, log: "Lamp a is off\nLamp a is on\n"},
		"Failed":    {reads: []WaitState{{Object: "Lamp a", Is: "broke", Done: true, Failed: true}}, code: Negative, log: "Lamp a broke\n", says: "Lamp a broke"},
		"Timeout":   {reads: []WaitState{open}, code: Negative, log: "Lamp a is off\n", says: "timed out after 3s (--timeout) waiting for light: Lamp a is off; 'lamp status' shows the reason"},
		"Forbidden": {err: forbidden, code: Forbidden, says: forbidden.Error()},
		"NoAPI":     {err: noAPI, code: Failed, says: noAPI.Error()},
		"Silent":    {err: refused, code: Unreachable, says: refused.Error()},
		"Limited":   {reads: []WaitState{open}, later: errors.New("the next read would exceed the deadline"), code: Negative, log: "Lamp a is off\n", says: "timed out after 3s (--timeout) waiting for light: Lamp a is off; 'lamp status' shows the reason"},
		"Cut":       {reads: []WaitState{open}, later: refused, code: Unreachable, log: "Lamp a is off\n", says: "timed out after 3s (--timeout) waiting for light: the API server does not answer: " + refused.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			n := 0
			err := Waiter{Log: &log, Timeout: 3 * time.Second, Aim: "light", Remedy: "lamp status"}.Wait(t.Context(), func(context.Context) ([]WaitState, error) {
				if tt.err != nil {
					return nil, tt.err
				}
				if n > 0 && tt.later != nil {
					return nil, tt.later
				}
				now := tt.reads[min(n, len(tt.reads)-1)]
				n++
				return []WaitState{now}, nil
			})
			code := CodeOf(err)
			if v, is := errors.AsType[Verdict](err); is {
				code = Code(v)
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
	err := Waiter{Log: &bytes.Buffer{}, Timeout: time.Minute}.Wait(ctx, func(context.Context) ([]WaitState, error) {
		cancel()
		return []WaitState{{Object: "a"}}, nil
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

package console_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

func TestReport(t *testing.T) {
	t.Parallel()
	things := schema.GroupResource{Resource: "things"}
	dial := &url.Error{Op: "Get", URL: "https://a", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, tt := range map[string]struct {
		reason string
		err    error
		code   console.Code
		quiet  bool
		says   string // the whole output; empty for any
	}{
		"Nothing":    {reason: "all is well", code: console.Fine, quiet: true},
		"Verdict":    {reason: "the output has said it already", err: fmt.Errorf("a: %w", console.Verdict(console.Degraded)), code: console.Degraded, quiet: true},
		"Coded":      {reason: "who knows better says so", err: fmt.Errorf("a: %w", &console.Coded{Code: console.Negative, Err: dial}), code: console.Negative},
		"Usage":      {reason: "anything else is a failure", err: errors.New("unknown flag"), code: console.Failed},
		"Forbidden":  {reason: "a permission is missing", err: fmt.Errorf("a: %w", apierrors.NewForbidden(things, "x", nil)), code: console.Forbidden},
		"Unknown":    {reason: "nor may one who is not known", err: apierrors.NewUnauthorized("who?"), code: console.Forbidden},
		"Dial":       {reason: "nobody listens", err: fmt.Errorf("a: %w", dial), code: console.Unreachable},
		"Timeout":    {reason: "nobody answers", err: fmt.Errorf("a: %w", context.DeadlineExceeded), code: console.Unreachable},
		"Overloaded": {reason: "the API server has no time", err: apierrors.NewTooManyRequests("later", 1), code: console.Unreachable},
		"Interrupt":  {reason: "the user ended a request", err: fmt.Errorf("a: %w", &url.Error{Op: "Get", URL: "https://a", Err: context.Canceled}), code: console.Interrupted, says: "lamp: interrupted\n"},
		"Wait":       {reason: "the user ended a wait", err: fmt.Errorf("%w while it waited", console.ErrInterrupted), code: console.Interrupted, says: "lamp: interrupted while it waited\n"},
		"NoAPI": {
			reason: "the remedy is the same for all commands", err: fmt.Errorf("a: %w", &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "operators.coreos.com", Kind: "Lamp"}}), code: console.Negative,
			says: "lamp: a: no matches for kind \"Lamp\" in group \"operators.coreos.com\"; the cluster has no API operators.coreos.com: install it with 'kubectl apply --server-side -f prerequisites.yaml'\n",
		},
		"NoResource": {reason: "a resource has an API too", err: &apimeta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Group: "operators.coreos.com", Resource: "lamps"}}, code: console.Negative},
		"OtherAPI":   {reason: "other APIs have other remedies", err: &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Lamp"}}, code: console.Failed},
		"Namespace":  {reason: "a missing object is a problem", err: fmt.Errorf("a: %w", &explain.MissingNamespaceError{Name: "shop"}), code: console.Negative},
		"NotFound":   {reason: "an answer is none of these", err: apierrors.NewNotFound(things, "x"), code: console.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if got := console.Report(&out, "lamp", tt.err); got != tt.code {
				t.Errorf("%s: code %d, want %d", tt.reason, got, tt.code)
			}
			if (out.Len() == 0) != tt.quiet || !tt.quiet && !strings.HasPrefix(out.String(), "lamp: ") {
				t.Errorf("%s: printed %q", tt.reason, out.String())
			}
			if tt.says != "" && out.String() != tt.says {
				t.Errorf("%s: printed %q, want %q", tt.reason, out.String(), tt.says)
			}
		})
	}
}

// TestProblem covers the text of errors in documents.
func TestProblem(t *testing.T) {
	t.Parallel()
	failed := console.Waiter{Log: &strings.Builder{}, Timeout: time.Minute}.Wait(t.Context(), func(context.Context) ([]console.WaitState, error) {
		return []console.WaitState{{Object: "Lamp a", Is: "broke", Done: true, Failed: true}, {Object: "Lamp b", Is: "is on", Done: true}}, nil
	})
	noAPI := &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "operators.coreos.com", Kind: "Lamp"}}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"Nothing":   {},
		"Verdict":   {err: fmt.Errorf("a: %w", console.Verdict(console.Negative))},
		"Failed":    {err: fmt.Errorf("a: %w", failed), want: "Lamp a broke"},
		"Usage":     {err: errors.New("unknown flag"), want: "unknown flag"},
		"Interrupt": {err: &url.Error{Op: "Get", URL: "https://a", Err: context.Canceled}, want: "interrupted"},
		"NoAPI":     {err: noAPI, want: console.MissingAPI(noAPI).Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := console.Problem(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

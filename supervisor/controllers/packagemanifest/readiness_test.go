package packagemanifest

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestReadiness covers when a process gets requests before it has read the catalogs.
func TestReadiness(t *testing.T) {
	t.Parallel()
	none := fmt.Errorf("%w: Service x/y has no ready endpoint", errNotServing)
	for name, tt := range map[string]struct {
		read, serving bool
		endpoints     error
		want          error
	}{
		"Read":            {read: true, serving: true},
		"ReadLate":        {read: true}, // the time for reading has passed
		"NoOther":         {serving: true, endpoints: none},
		"Other":           {serving: true, want: errNotReady},
		"NotServing":      {endpoints: none, want: errNotReady},
		"UnknownIfOthers": {serving: true, endpoints: errors.New("forbidden"), want: errNotReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			yes := func(answer bool) func() bool { return func() bool { return answer } }
			r := &readiness{read: yes(tt.read), serving: yes(tt.serving), checkEndpoints: func(context.Context) error { return tt.endpoints }}
			if err := r.check(t.Context()); !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			r.read, r.checkEndpoints = yes(false), func(context.Context) error { return nil }
			if err := r.check(t.Context()); tt.want == nil && err != nil {
				t.Errorf("a process that was ready is not any more: %v", err)
			}
		})
	}
}

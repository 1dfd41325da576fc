package status

import (
	"slices"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// styles returns the styles of values in tables; nil for none.
type styles struct{ console.Paint }

// replicas returns the style of a number of replicas.
func (s styles) replicas(ready, wanted *int32) func(string) string {
	switch {
	case wanted == nil:
		return nil
	case *ready == 0 && *wanted > 0:
		return s.Bad
	case *ready < *wanted:
		return s.Waiting
	default:
		return s.Good
	}
}

// connection returns the style of the state of a connection.
func (s styles) connection(state string) func(string) string {
	switch state {
	case "READY":
		return s.Good
	case "CONNECTING", "IDLE":
		return s.Waiting
	case "TRANSIENT_FAILURE":
		return s.Bad
	default:
		return nil
	}
}

// subscription returns the style of a Subscription, from the worst finding that affects it.
func (s styles) subscription(status *Status, sub *Subscription) func(string) string {
	ref := explain.Ref{Kind: explain.KindSubscription, Namespace: sub.Namespace, Name: sub.Name}
	for i := range status.Findings {
		if f := &status.Findings[i]; f.Severity != explain.Note && (f.Object == ref || slices.Contains(f.Affects, ref)) {
			if f.Severity == explain.Wrong {
				return s.Bad
			}
			return s.Waiting
		}
	}
	if sub.Reason != "" {
		return s.Waiting
	}
	return s.Good
}

package catalogs

import (
	"errors"
	"testing"
)

func TestSameFailure(t *testing.T) {
	for _, tt := range []struct {
		reason string
		a, b   error
		want   bool
	}{
		{reason: "neither", want: true},
		{reason: "only one", a: errors.New("read")},
		{reason: "only the other", b: errors.New("read")},
		{reason: "another port of one's own", a: errors.New("read tcp 127.0.0.1:41522: reset"), b: errors.New("read tcp 127.0.0.1:5012: reset"), want: true},
		{reason: "another cause", a: errors.New("connection refused"), b: errors.New("no route to host")},
	} {
		if got := sameFailure(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
}

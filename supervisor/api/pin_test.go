package api_test

import (
	"testing"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		reason      string
		annotations map[string]string
		want        string
	}{
		{reason: "nobody asks", annotations: nil},
		{reason: "a name", annotations: map[string]string{api.AnnotationPin: "lamp.v1"}, want: "lamp.v1"},
		{reason: "what YAML put around it is no part of it", annotations: map[string]string{api.AnnotationPin: " lamp.v1\n"}, want: "lamp.v1"},
		{reason: "blanks ask for nothing", annotations: map[string]string{api.AnnotationPin: "  "}},
	} {
		if got := api.PinnedVersion(tt.annotations); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}

package image_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
)

// TestSourcesErrorNamesAllPlaces has answers that are longer together than a message may be.
func TestSourcesErrorNamesAllPlaces(t *testing.T) {
	t.Parallel()
	const longest = 1000 // of a message about a catalog
	err := &image.SourcesError{Skipped: []image.Skipped{{Place: "blocked.test/a", Rule: "registries.conf", Why: "it is blocked", Blocked: true}}}
	want := []string{"blocked.test/a (registries.conf): not asked, it is blocked"}
	for i := range 7 {
		place := fmt.Sprintf("mirror-%d.test/a:v1", i)
		want = append(want, place)
		err.Attempts = append(err.Attempts, image.Attempt{Place: place, Rule: "registries.conf", Reason: image.ReasonNotFound, Err: errors.New("404 " + strings.Repeat("Not Found ", 40))})
	}
	text := err.Error()
	if len(text) > longest {
		t.Errorf("%d bytes, at most %d", len(text), longest)
	}
	for _, place := range want {
		if !strings.Contains(text, place) {
			t.Errorf("%q is missing in %s", place, text)
		}
	}
}

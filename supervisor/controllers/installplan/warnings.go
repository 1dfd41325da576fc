package installplan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server returns at most a hundred warnings about the fields of one object. It truncates
// them where they have more than 4096 characters together.
const (
	maxStrict     = 100
	maxCharacters = 4 << 10
)

// stepWarnings are the warnings about one step.
type stepWarnings struct {
	// texts are the warnings of the API server, and those about the manifest.
	texts []string
	// more is the number of warnings that the API server left out.
	more int
}

func (w stepWarnings) count() int { return len(w.texts) + w.more }

// dropped returns the number of fields that were not stored. The API server names such fields only
// in the texts of its warnings.
func (w stepWarnings) dropped() int {
	n := w.more
	for _, text := range w.texts {
		if strings.HasPrefix(text, "unknown field ") || strings.HasPrefix(text, "duplicate field ") {
			n++
		}
	}
	return n
}

// truncated reports whether the API server may have left warnings out.
func truncated(texts []string) bool {
	characters := 0
	for _, text := range texts {
		characters += len(text)
	}
	const largest = 256
	return len(texts) >= maxStrict || characters > maxCharacters-largest
}

// warningRecorder reports the warnings about steps.
type warningRecorder struct {
	client  client.Client
	content *content
	// ofManifests holds the warnings about the manifests of steps, by the index of the step.
	ofManifests map[int][]string
	reporter    reporter
}

// record reports the warnings of the API server about a step, and those about the manifest of the
// step.
func (r *warningRecorder) record(ctx context.Context, index int, s *operatorsv1alpha1.Step, texts []string) {
	w := stepWarnings{}
	if len(texts) > 0 {
		w = r.complete(ctx, s, texts)
	}
	// A step that waits for its API has recorded the warnings about its manifest before.
	if s.Status != operatorsv1alpha1.StepStatusWaitingForAPI {
		w.texts = append(w.texts, r.ofManifests[index]...)
	}
	if len(w.texts) > 0 {
		r.reporter.warned(index, s, w)
	}
}

// complete returns the warnings about a step that the API server gave while it was applied, with
// the number of those that it left out.
func (r *warningRecorder) complete(ctx context.Context, s *operatorsv1alpha1.Step, texts []string) stepWarnings {
	w := stepWarnings{texts: texts}
	u, err := r.content.manifest(ctx, s)
	if err != nil {
		return w
	}
	w.texts = withSuggestions(texts, caseMismatches(r.client.Scheme(), u))
	if !truncated(texts) {
		return w
	}
	// Compare with the stored object to count all dropped fields.
	live := u.DeepCopy()
	if r.client.Get(ctx, client.ObjectKeyFromObject(u), live) == nil {
		w.more = max(0, notStored(u.Object, live.Object)-w.dropped())
	}
	return w
}

// withSuggestions adds the correct names to the warnings about unknown fields.
func withSuggestions(texts []string, meant map[string]string) []string {
	out := slices.Clone(texts)
	for path, name := range meant {
		if i := slices.Index(out, fmt.Sprintf("unknown field %q", path)); i >= 0 {
			out[i] += fmt.Sprintf(" (did you mean %q?)", name)
		}
	}
	return out
}

// notStored counts the fields of a manifest that the stored object lacks. It counts a lost field
// once, without the fields within it.
func notStored(manifest, stored any) int {
	n := 0
	switch m := manifest.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		if !ok {
			return 0
		}
		for key, value := range m {
			if has, found := s[key]; found {
				n += notStored(value, has)
			} else if value != nil {
				n++
			}
		}
	case []any:
		s, ok := stored.([]any)
		if !ok || len(s) != len(m) {
			return 0
		}
		for i := range m {
			n += notStored(m[i], s[i])
		}
	}
	return n
}

package installplan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/event"
)

// reasonWarnings is the reason of the Event that tells of warnings.
const reasonWarnings = "AppliedWithWarnings"

// reasonValidation is the reason of the Event that tells of custom resources that
// would not be valid without conversion.
const reasonValidation = "CRDValidation"

// hearing collects what the API server says beside its answers to the requests of one
// step.
type hearing struct {
	mu    sync.Mutex
	heard []string
}

type hearingKey struct{}

// in makes the requests with a context heard.
func (h *hearing) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, hearingKey{}, h)
}

func (h *hearing) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// listener hands warnings to the hearing of the request's context.
type listener struct{}

// HandleWarningHeaderWithContext notes a warning once.
func (listener) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	const miscellaneous = 299
	h, ok := ctx.Value(hearingKey{}).(*hearing)
	if !ok || code != miscellaneous || text == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.heard, text) {
		h.heard = append(h.heard, text)
	}
}

// warningNote words the warnings about a step.
func warningNote(s *operatorsv1alpha1.Step, texts []string) string {
	during := "operator installation"
	if s.Resolving != "" {
		during = fmt.Sprintf("installation of operator %q", s.Resolving)
	}
	return fmt.Sprintf("%d warning(s) generated during %s (%s %q): %s", len(texts), during, s.Resource.Kind, s.Resource.Name, strings.Join(texts, ", "))
}

// tellWarnings makes an Event of the warnings about a step.
func (r *Reconciler) tellWarnings(p *operatorsv1alpha1.InstallPlan) func(int, *operatorsv1alpha1.Step, []string) {
	return func(index int, s *operatorsv1alpha1.Step, texts []string) {
		warnings.Add(float64(len(texts)))
		ref := &corev1.ObjectReference{
			APIVersion: operatorsv1alpha1.InstallPlanAPIVersion, Kind: operatorsv1alpha1.InstallPlanKind,
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			FieldPath: fmt.Sprintf("status.plan[%d]", index),
		}
		r.recorder.Eventf(ref, nil, corev1.EventTypeWarning, reasonWarnings, "Install", "%s", event.Note(warningNote(s, texts)))
	}
}

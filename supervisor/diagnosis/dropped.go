package diagnosis

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// reasonWarnings is the reason of the Event about warnings of the API server.
const reasonWarnings = "AppliedWithWarnings"

// planWarnings looks at the plan that the Subscription refers to.
func planWarnings(s *story) []*Finding {
	ref := s.sub.Status.InstallPlanRef
	if ref == nil {
		return nil
	}
	p := s.plan(s.sub.Namespace, ref.Name)
	if p == nil {
		return nil
	}
	return s.warnings(p)
}

// warnings returns a note for what the API server warned about while a plan was carried out.
func (s *story) warnings(p *operatorsv1alpha1.InstallPlan) []*Finding {
	var about []*corev1.Event
	for i := range s.Events {
		e := &s.Events[i]
		if e.Reason == reasonWarnings && e.InvolvedObject.Kind == KindInstallPlan && e.InvolvedObject.UID == p.UID &&
			e.InvolvedObject.Namespace == p.Namespace && e.InvolvedObject.Name == p.Name {
			about = append(about, e)
		}
	}
	slices.SortFunc(about, func(a, b *corev1.Event) int {
		first, second := a.InvolvedObject.FieldPath, b.InvolvedObject.FieldPath
		return cmp.Or(cmp.Compare(len(first), len(second)), cmp.Compare(first, second))
	})
	if len(about) == 0 {
		return nil
	}
	at := s.to(refTo(KindInstallPlan, p), string(p.Status.Phase), "")
	texts := make([]string, 0, len(about))
	for _, e := range about {
		texts = append(texts, e.Message)
	}
	return []*Finding{at.found(CodeFieldsDropped, Note, strings.Join(texts, "; "))}
}

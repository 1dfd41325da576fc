package explain

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// bundleWarnings returns the warnings about the Subscription's plan and about its version.
func bundleWarnings(s *search) []*Finding {
	var found []*Finding
	if ref := s.sub.Status.InstallPlanRef; ref != nil {
		if p := s.plan(s.sub.Namespace, ref.Name); p != nil {
			found = planWarnings(s, p)
		}
	}
	if csv := s.version(s.sub.Namespace, s.sub.Status.InstalledCSV); csv != nil {
		at := s.follow(refTo(KindVersion, csv), string(csv.Status.Phase), "")
		found = append(found, warningsAbout(at, KindVersion, csv)...)
	}
	return found
}

// planWarnings returns notes about the API server's warnings for the objects of a plan.
func planWarnings(s *search, p *operatorsv1alpha1.InstallPlan) []*Finding {
	return warningsAbout(s.follow(refTo(KindInstallPlan, p), string(p.Status.Phase), ""), KindInstallPlan, p)
}

// warningsAbout returns notes about the Events of an object that report warnings of the API server.
func warningsAbout(s *search, kind string, o metav1.Object) []*Finding {
	var about []*corev1.Event
	for i := range s.Events {
		e := &s.Events[i]
		if e.Reason == api.ReasonAppliedWithWarnings && e.InvolvedObject.Kind == kind && e.InvolvedObject.UID == o.GetUID() &&
			e.InvolvedObject.Namespace == o.GetNamespace() && e.InvolvedObject.Name == o.GetName() {
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
	texts := make([]string, 0, len(about))
	for _, e := range about {
		texts = append(texts, e.Message)
	}
	return []*Finding{s.finding(CodeFieldsDropped, Note, strings.Join(texts, "; "))}
}

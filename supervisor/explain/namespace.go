package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/refusal"
)

// terminatingFinding is for a namespace that is being deleted: the Namespace says so, or,
// where it may not be read, the API server by what it refuses. It goes by itself unless
// something in it is held.
func terminatingFinding(s *search, namespace string) *Finding {
	at := s.to(Ref{Kind: KindNamespace, Name: namespace}, "Terminating", "")
	going := find(s.Terminating, at.at())
	if going == nil && !refusedByTermination(s, namespace) {
		return nil
	}
	when, held := "", rest{}
	if going != nil {
		when, held = since(going.DeletionTimestamp), restOf(going)
	}
	if s.sub != nil && !s.sub.DeletionTimestamp.IsZero() && len(s.sub.Finalizers) > 0 {
		what := fmt.Sprintf("%s is held in it by its finalizers %s", s.subject, strings.Join(s.sub.Finalizers, ", "))
		held = rest{what: what, remedy: finalizerRemedy(s.sub.Finalizers)}
	}
	f := at.finding(CodeNamespaceGoing, Waiting, "namespace "+namespace+" is being deleted"+when)
	if held.what != "" {
		f.Cause += ", and " + held.what
		if going != nil && s.Taken.Sub(going.DeletionTimestamp.Time) > gracePeriod {
			f.Severity = Wrong
		}
	}
	return f.withRemedy(held.remedy).withCommands(held.commands...).withCommands("kubectl get namespace " + namespace + " -o yaml")
}

// namespaceFindings explains a namespace itself: for those who look where nothing is left that
// could be explained.
func namespaceFindings(s *search) []Finding {
	s.path = nil
	return collected(compact(terminatingFinding(s, s.subject.Name)))
}

// rest is what keeps a namespace that is being deleted; empty when it only takes time.
type rest struct {
	what, remedy string
	commands     []string
}

// restOf goes by the conditions of a Namespace: what could not even be looked for comes
// before what is left. Where nothing is, only the Namespace's own finalizers hold it.
func restOf(namespace *corev1.Namespace) rest {
	said := map[corev1.NamespaceConditionType]string{}
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			said[c.Type] = oneLine(c.Message)
		}
	}
	for _, kind := range []corev1.NamespaceConditionType{
		corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure,
	} {
		if message := said[kind]; message != "" {
			return rest{
				what:     "what is left in it cannot be found: " + message,
				remedy:   "bring what serves the API that is named back, or delete its APIService if it is gone for good",
				commands: []string{"kubectl get apiservices"},
			}
		}
	}
	if said[corev1.NamespaceFinalizersRemaining] != "" {
		finalizers := remainingFinalizers(said[corev1.NamespaceFinalizersRemaining])
		resources := remainingResources(said[corev1.NamespaceContentRemaining])
		return rest{
			what:   fmt.Sprintf("%s are held in it by their finalizers %s", orWords(resources, "objects"), orWords(finalizers, "")),
			remedy: finalizerRemedy(finalizers),
			commands: []string{fmt.Sprintf("kubectl -n %s get %s -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers",
				namespace.Name, cmp.Or(strings.Join(resources, ","), "RESOURCE"))},
		}
	}
	if message := said[corev1.NamespaceDeletionContentFailure]; message != "" {
		return rest{what: "not all in it can be deleted: " + message, remedy: "see to what refuses the deletion"}
	}
	return ownFinalizers(namespace, said[corev1.NamespaceContentRemaining])
}

// ownFinalizers is for a Namespace in which nothing is left, or nothing that is held.
func ownFinalizers(namespace *corev1.Namespace, content string) rest {
	var own []string
	for _, f := range namespace.Spec.Finalizers {
		if f != corev1.FinalizerKubernetes {
			own = append(own, string(f))
		}
	}
	own = append(own, namespace.Finalizers...)
	if content != "" || len(own) == 0 {
		return rest{}
	}
	return rest{what: "its own finalizers hold it (spec.finalizers and metadata.finalizers): " + strings.Join(own, ", "), remedy: finalizerRemedy(own)}
}

// finalizerRemedy is what helps where finalizers stay.
func finalizerRemedy(finalizers []string) string {
	return "see why whoever set the finalizers " + strings.Join(finalizers, ", ") +
		" does not take them away; the namespace goes once they are gone. Where whoever set them is gone for good, take them away by hand"
}

func orWords(list []string, otherwise string) string {
	return cmp.Or(strings.Join(list, ", "), otherwise)
}

// refusedByTermination says whether something could not be made because the namespace is being
// deleted.
func refusedByTermination(s *search, namespace string) bool {
	for i := range s.Events {
		if s.Events[i].InvolvedObject.Namespace == namespace && refusal.Of(s.Events[i].Message) == refusal.NamespaceTerminating {
			return true
		}
	}
	for i := range s.InstallPlans {
		p := &s.InstallPlans[i]
		if p.Namespace == namespace && refusal.Of(p.Status.Message) == refusal.NamespaceTerminating {
			return true
		}
	}
	return slices.ContainsFunc(s.Versions, func(csv operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == namespace && refusal.Of(csv.Status.Message) == refusal.NamespaceTerminating
	})
}

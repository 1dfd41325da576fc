package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
)

// terminatingFinding returns the finding about a namespace that is being deleted; nil if it is not. If the Namespace
// cannot be read, refusals of the API server show its deletion.
func terminatingFinding(s *search, namespace string) *Finding {
	at := s.follow(Ref{Kind: KindNamespace, Name: namespace}, "Terminating", "")
	object := find(s.Terminating, at.current())
	if object == nil && !refusedByTermination(s, namespace) {
		return nil
	}
	when, held := "", deletionBlocker{}
	if object != nil {
		when, held = since(object.DeletionTimestamp), deletionBlockerOf(object)
	}
	if s.sub != nil && !s.sub.DeletionTimestamp.IsZero() && len(s.sub.Finalizers) > 0 {
		what := fmt.Sprintf("%s still has the finalizers %s", s.subject, strings.Join(s.sub.Finalizers, ", "))
		held = deletionBlocker{what: what, remedy: finalizerRemedy(s.sub.Finalizers)}
	}
	f := at.finding(CodeNamespaceTerminating, Waiting, "namespace "+namespace+" is being deleted"+when)
	if held.what != "" {
		f.Cause += ", and " + held.what
		if object != nil && s.ReadAt.Sub(object.DeletionTimestamp.Time) > gracePeriod {
			f.Severity = Wrong
		}
	}
	return f.withRemedy(held.remedy).withCommands(held.commands...).withCommands("kubectl get namespace " + namespace + " -o yaml")
}

// namespaceFindings returns what blocks the deletion of the Namespace of the question.
func namespaceFindings(s *search) []Finding {
	s.path = nil
	return collected(compact(terminatingFinding(s, s.subject.Name)))
}

// deletionBlocker is what blocks the deletion of a namespace; empty if it only takes time.
type deletionBlocker struct {
	what, remedy string
	commands     []string
}

// deletionBlockerOf returns what blocks the deletion by the conditions of a Namespace. APIs that cannot be listed come
// before remaining objects. If no object remains, the finalizers of the Namespace itself block it.
func deletionBlockerOf(namespace *corev1.Namespace) deletionBlocker {
	messages := map[corev1.NamespaceConditionType]string{}
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			messages[c.Type] = oneLine(c.Message)
		}
	}
	for _, kind := range []corev1.NamespaceConditionType{
		corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure,
	} {
		if message := messages[kind]; message != "" {
			return deletionBlocker{
				what:     "its remaining objects cannot be listed: " + message,
				remedy:   "restore the server of the API in the message, or delete its APIService if the API is no longer in use",
				commands: []string{"kubectl get apiservices"},
			}
		}
	}
	if messages[corev1.NamespaceFinalizersRemaining] != "" {
		finalizers := remainingFinalizers(messages[corev1.NamespaceFinalizersRemaining])
		resources := remainingResources(messages[corev1.NamespaceContentRemaining])
		return deletionBlocker{
			what:   fmt.Sprintf("%s still have the finalizers %s", orWords(resources, "objects"), orWords(finalizers, "")),
			remedy: finalizerRemedy(finalizers),
			commands: []string{fmt.Sprintf("kubectl -n %s get %s -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers",
				namespace.Name, cmp.Or(strings.Join(resources, ","), "RESOURCE"))},
		}
	}
	if message := messages[corev1.NamespaceDeletionContentFailure]; message != "" {
		return deletionBlocker{what: "some of its objects cannot be deleted: " + message, remedy: "fix the cause in the message"}
	}
	return ownFinalizers(namespace, messages[corev1.NamespaceContentRemaining])
}

// ownFinalizers returns the finalizers of a Namespace as its blocker, if no object remains in it.
func ownFinalizers(namespace *corev1.Namespace, content string) deletionBlocker {
	var own []string
	for _, f := range namespace.Spec.Finalizers {
		if f != corev1.FinalizerKubernetes {
			own = append(own, string(f))
		}
	}
	own = append(own, namespace.Finalizers...)
	if content != "" || len(own) == 0 {
		return deletionBlocker{}
	}
	return deletionBlocker{what: "its own finalizers block it (spec.finalizers and metadata.finalizers): " + strings.Join(own, ", "), remedy: finalizerRemedy(own)}
}

// finalizerRemedy returns the remedy for finalizers that remain.
func finalizerRemedy(finalizers []string) string {
	return "find out why the controller of the finalizers " + strings.Join(finalizers, ", ") +
		" does not remove them. If that controller no longer exists, remove the finalizers manually"
}

// orWords returns a list in words, or other words if it is empty.
func orWords(list []string, otherwise string) string {
	return cmp.Or(strings.Join(list, ", "), otherwise)
}

// refusedByTermination reports whether the API server refused an object because its namespace is being deleted.
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

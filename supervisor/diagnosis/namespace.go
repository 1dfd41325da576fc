package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// terminated is what the API server says when something is to be made in a namespace that
// is being deleted.
const terminated = "because it is being terminated"

// namespaceGoing is for a namespace that is being deleted: the Namespace says so, or,
// where it may not be read, the API server by what it refuses.
func (s *story) namespaceGoing(namespace string) *Finding {
	at := s.to(Ref{Kind: KindNamespace, Name: namespace}, "Terminating", "")
	going := find(s.Terminating, at.at())
	if going == nil && !s.saidTerminated(namespace) {
		return nil
	}
	when, held := "", ""
	if going != nil {
		when = since(going.DeletionTimestamp)
	}
	if s.sub != nil && !s.sub.DeletionTimestamp.IsZero() && len(s.sub.Finalizers) > 0 {
		held = fmt.Sprintf("; %s is held in it by its finalizers %s", s.subject, strings.Join(s.sub.Finalizers, ", "))
	}
	f := at.found(CodeNamespaceGoing, Waiting, "namespace "+namespace+" is being deleted"+when+held)
	if held != "" {
		f = f.advising("see why whoever set the finalizers " + strings.Join(s.sub.Finalizers, ", ") + " does not take them away; the namespace goes once they are gone")
	}
	return f.with("kubectl get namespace " + namespace + " -o yaml")
}

// saidTerminated says whether something could not be made because the namespace is being
// deleted.
func (s *story) saidTerminated(namespace string) bool {
	for i := range s.Events {
		if s.Events[i].InvolvedObject.Namespace == namespace && strings.Contains(s.Events[i].Message, terminated) {
			return true
		}
	}
	for i := range s.InstallPlans {
		p := &s.InstallPlans[i]
		if p.Namespace == namespace && strings.Contains(p.Status.Message, terminated) {
			return true
		}
	}
	return slices.ContainsFunc(s.Versions, func(csv operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == namespace && strings.Contains(csv.Status.Message, terminated)
	})
}

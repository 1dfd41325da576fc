package explain

import (
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// subscribedGroup returns the problem of the OperatorGroups in the Subscription's namespace.
func subscribedGroup(s *search) []*Finding {
	if f := groupFinding(s, s.sub.Namespace); f != nil {
		return []*Finding{f}
	}
	return nil
}

// groupFinding returns the problem of the OperatorGroups of a namespace; nil if there is none, or if they cannot be
// read.
func groupFinding(s *search, namespace string) *Finding {
	if f := terminatingFinding(s, namespace); f != nil {
		return f
	}
	groups, seen := s.groups(namespace)
	if !seen {
		return nil
	}
	if len(groups) == 0 {
		f := s.finding(CodeOperatorGroupMissing, Wrong, "namespace "+namespace+" has no OperatorGroup, so the supervisor installs nothing in it")
		f.Object = Ref{Kind: KindNamespace, Name: namespace}
		return f.withCommands("kubectl create -f - <<EOF\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata:\n  name: operators\n  namespace: " + namespace +
			"\nspec:\n  targetNamespaces: [" + namespace + "]\nEOF")
	}
	if len(groups) > 1 {
		names := make([]string, 0, len(groups))
		newest := groups[0]
		for _, g := range groups {
			names = append(names, g.Name)
			if !g.CreationTimestamp.Before(&newest.CreationTimestamp) {
				newest = g
			}
		}
		f := s.finding(CodeOperatorGroupAmbiguous, Wrong, fmt.Sprintf("namespace %s has %d OperatorGroups (%s), so the supervisor installs nothing in it",
			namespace, len(groups), strings.Join(names, ", ")))
		f.Object = Ref{Kind: KindNamespace, Name: namespace}
		return f.withCommands("kubectl -n " + namespace + " delete operatorgroup " + newest.Name)
	}
	group := groups[0]
	at := s.follow(refTo(KindOperatorGroup, group), "", "")
	for i := range group.Status.Conditions {
		c := &group.Status.Conditions[i]
		switch {
		case c.Type == operatorsv1.OperatorGroupServiceAccountCondition && c.Status == metav1.ConditionTrue:
			return groupAccountFinding(at, group.Spec.ServiceAccountName)
		case c.Type == api.ConditionTargetsResolved && c.Status == metav1.ConditionFalse:
			return at.finding(CodeOperatorGroupTargetsInvalid, Wrong, at.current().String()+": "+c.Message).withCommands(kubectl("edit", at.current(), ""))
		}
	}
	return nil
}

// groupAccountFinding returns the finding about an OperatorGroup whose ServiceAccount does not exist.
func groupAccountFinding(s *search, account string) *Finding {
	group := s.current()
	return s.finding(CodeOperatorGroupServiceAccountMissing, Wrong, fmt.Sprintf("%s names ServiceAccount %s in spec.serviceAccountName, which does not exist", group, account)).
		withCommands(fmt.Sprintf("kubectl -n %s create serviceaccount %s", group.Namespace, account))
}

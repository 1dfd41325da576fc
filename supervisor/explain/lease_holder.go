package explain

import (
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ofSupervisor returns a selector for the Deployment and the pods of a supervisor that was installed as
// documented.
func ofSupervisor() labels.Selector {
	return labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "chandlery-supervisor"})
}

// holder describes the holder of the Lease of supervisors, and the pods that could hold it.
type holder struct {
	// identity is the holder in the Lease.
	identity string
	// what describes the holder, for the text after the identity.
	what string
	// cause is what blocks the pods of the supervisor.
	cause    string
	remedy   string
	commands []string
}

// describeHolder distinguishes pods from processes outside the cluster, as far as the Lease allows. The identity of
// a process is its host name unless --identity is set, and a pod's host name is its own name.
func describeHolder(s *search, lease *coordinationv1.Lease) holder {
	namespace := lease.Namespace
	h := holder{identity: holderOf(lease)}
	name := h.identity
	if i := strings.LastIndex(name, "_"); i >= 0 {
		name = name[:i] // the suffix that makes the name unique
	}
	get := fmt.Sprintf("kubectl -n %s get deployments,pods -l %s", namespace, ofSupervisor())
	if pod := find(s.Pods, Ref{Namespace: namespace, Name: name}); pod != nil {
		at := refTo(KindPod, pod)
		h.what = fmt.Sprintf(" (%s, %s)", at, pod.Status.Phase)
		h.remedy = fmt.Sprintf("find out in the log of %s why it does not lead, and whether it reaches the API server; if the pod hangs, delete it", at)
		h.commands = []string{fmt.Sprintf("kubectl -n %s logs %s", namespace, name), get}
		h.cause = supervisorCause(s, namespace)
		return h
	}
	if s.needsToConfirm("pods", namespace) {
		h.remedy = fmt.Sprintf("find out why the pods of the supervisor in namespace %s do not run or do not lead; if it runs outside the cluster, check its process", namespace)
		h.commands = []string{get}
		return h
	}
	switch {
	case supervisorDeployed(s, namespace):
		if h.identity != "" {
			h.what = " (a deleted pod)"
		}
		h.cause = supervisorCause(s, namespace)
		h.commands = []string{get, fmt.Sprintf("kubectl -n %s logs -l %s --tail=20", namespace, ofSupervisor())}
	case h.identity == "":
		h.remedy = fmt.Sprintf("start a supervisor: namespace %s has no Deployment of a supervisor; if it runs outside the cluster, start its process", namespace)
	default:
		h.what = fmt.Sprintf(" (no pod of namespace %s)", namespace)
		h.remedy = fmt.Sprintf("restart the process %s, which runs outside the cluster, or find out in its log why it does not renew the Lease; if the process no longer exists, start another supervisor", name)
	}
	return h
}

// supervisorDeployed reports whether a supervisor is installed in a namespace.
func supervisorDeployed(s *search, namespace string) bool {
	selector := ofSupervisor()
	for i := range s.Deployments {
		if d := &s.Deployments[i]; d.Namespace == namespace && selector.Matches(labels.Set(d.Labels)) {
			return true
		}
	}
	return len(s.pods(namespace, selector)) > 0
}

// supervisorCause returns what blocks the pods of the supervisor; empty if nothing was found.
func supervisorCause(s *search, namespace string) string {
	selector := ofSupervisor()
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if d.Namespace != namespace || !selector.Matches(labels.Set(d.Labels)) {
			continue
		}
		if wanted(d) == 0 {
			return refTo(KindDeployment, d).String() + " is scaled to 0 replicas (spec.replicas)"
		}
		if f := deploymentFinding(s, d); f != nil {
			return f.Cause
		}
	}
	if f := podFinding(s, s.pods(namespace, selector)); f != nil {
		return f.Cause
	}
	return ""
}

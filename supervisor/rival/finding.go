package rival

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// Supervisor is one of our own that competes for another Lease.
type Supervisor struct {
	// Namespace is that of its Lease.
	Namespace string `json:"namespace"`
	// Holder is who holds the Lease.
	Holder string `json:"holder"`
}

// Finding is what a look at the cluster found.
type Finding struct {
	// State is that of OLM and of other supervisors together.
	State State `json:"state"`
	// Workloads are the Deployments of OLM, by namespace and name.
	Workloads []Workload `json:"workloads,omitempty"`
	// Supervisors are those of our own that work now.
	Supervisors []Supervisor `json:"supervisors,omitempty"`
	// Hidden says what could not be looked at, and why; empty when all could.
	Hidden []string `json:"hidden,omitempty"`
}

// Observation is what a look at the cluster saw.
type Observation struct {
	// Deployments are all, or those among which a lifecycle manager may be.
	Deployments []appsv1.Deployment
	// Supervisors are those whose Lease was seen to be renewed.
	Supervisors []Supervisor
	// Hidden says what could not be looked at.
	Hidden []string
}

// Recognise says what an observation means.
func Recognise(o Observation) Finding {
	f := Finding{State: None, Supervisors: slices.Clone(o.Supervisors), Hidden: slices.Clone(o.Hidden)}
	for i := range o.Deployments {
		if w := recognise(&o.Deployments[i]); w != nil {
			f.Workloads = append(f.Workloads, *w)
		}
	}
	slices.SortFunc(f.Workloads, func(a, b Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(f.Supervisors, func(a, b Supervisor) int { return strings.Compare(a.Namespace, b.Namespace) })
	// What is seen to run counts, whatever else there may be that one may not see.
	order := []State{None, Unknown, HandedOver, Stopped, Running}
	raise := func(s State) {
		if slices.Index(order, s) > slices.Index(order, f.State) {
			f.State = s
		}
	}
	for i := range f.Workloads {
		raise(f.Workloads[i].State())
	}
	if len(f.Supervisors) > 0 {
		raise(Running)
	}
	if len(f.Hidden) > 0 {
		raise(Unknown)
	}
	return f
}

// Active are the Deployments of OLM that work.
func (f *Finding) Active() []Workload {
	var active []Workload
	for i := range f.Workloads {
		if f.Workloads[i].State() == Running {
			active = append(active, f.Workloads[i])
		}
	}
	return active
}

// Err is the refusal to work beside what was found; nil when nothing stands against it.
func (f *Finding) Err() error {
	if f.State != Running {
		return nil
	}
	return &Error{Finding: *f}
}

// Error says that another lifecycle manager works in the cluster.
type Error struct {
	// Finding names it.
	Finding Finding
}

// Error names the rival, and what to do.
func (e *Error) Error() string {
	var who, todo []string
	active := e.Finding.Active()
	for i := range active {
		who = append(who, active[i].Describe())
	}
	if len(active) > 0 {
		todo = append(todo, remedies(active)...)
	}
	for _, s := range e.Finding.Supervisors {
		who = append(who, fmt.Sprintf("another supervisor (%s, Lease %s/%s)", s.Holder, s.Namespace, LeaseName))
		todo = append(todo, fmt.Sprintf("stop the supervisor of namespace %s, or let both compete for one Lease by --leader-election-namespace", s.Namespace))
	}
	return "refusing to work beside another lifecycle manager of the same kinds, as each would undo what the other does: " +
		strings.Join(who, "; ") + ". Do one of: " + strings.Join(todo, "; ")
}

// Describe names a Deployment and how it is.
func (w *Workload) Describe() string {
	text := fmt.Sprintf("Deployment %s/%s (%d of %d replicas ready, image %s", w.Namespace, w.Name, w.Ready, max(w.Replicas, w.Pods), w.Image)
	if w.Version != "" && w.Version != tag(w.Image) {
		text += ", version " + w.Version
	}
	if w.Keeper != "" {
		text += ", kept by " + w.Keeper
	}
	if w.TakenOver && w.State() == Running {
		text += ", scaled up again since it was taken over from"
	}
	return text + ")"
}

func remedies(active []Workload) []string {
	todo := []string{
		"see what taking over would change, with: supervisor takeover --dry-run",
		"take over with: supervisor takeover, or by starting with --takeover",
	}
	byNamespace := map[string][]string{}
	var namespaces []string
	for i := range active {
		if w := &active[i]; w.Keeper == "" {
			if byNamespace[w.Namespace] == nil {
				namespaces = append(namespaces, w.Namespace)
			}
			byNamespace[w.Namespace] = append(byNamespace[w.Namespace], w.Name)
		}
	}
	for _, namespace := range namespaces {
		todo = append(todo, fmt.Sprintf("stop it by hand, with: kubectl -n %s scale deployment %s --replicas=0 (nothing is written down then, so that handback cannot put back what supervisors change)",
			namespace, strings.Join(byNamespace[namespace], " ")))
	}
	if len(namespaces) == 0 {
		todo = []string{
			"read what stands in the way of taking over, with: supervisor takeover --dry-run",
			"leave this cluster to its own lifecycle manager",
		}
	}
	return todo
}

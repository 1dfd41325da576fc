package rival

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/supervisor/api"
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
	// Suspects are the first of the active Deployments that look like OLM's and do not
	// count, since their service accounts may not do its work. SuspectCount is how many
	// there are.
	Suspects     []Workload `json:"suspects,omitempty"`
	SuspectCount int        `json:"suspectCount,omitempty"`
	// Supervisors are those of our own that work now.
	Supervisors []Supervisor `json:"supervisors,omitempty"`
	// SuspectLeases are the first of the Leases that are renewed and do not count, since
	// their holders are no pods that may do a supervisor's work. SuspectLeaseCount is how
	// many there are.
	SuspectLeases     []Supervisor `json:"suspectLeases,omitempty"`
	SuspectLeaseCount int          `json:"suspectLeaseCount,omitempty"`
	// Hidden says what could not be looked at, and why; empty when all could.
	Hidden []string `json:"hidden,omitempty"`
}

// WorkloadsAmong returns those Deployments that look like those of a lifecycle manager.
func WorkloadsAmong(deployments []appsv1.Deployment) []Workload {
	var all []Workload
	for i := range deployments {
		if w := recognise(&deployments[i]); w != nil {
			all = append(all, *w)
		}
	}
	return all
}

// Observation is what a look at the cluster saw.
type Observation struct {
	// Workloads are the Deployments that look like those of a lifecycle manager.
	Workloads []Workload
	// Judge returns whether one of them is what it looks like; nil when all are.
	Judge func(*Workload) Judgement
	// Omitted is how many more there are that are active and have not been judged.
	Omitted int
	// Supervisors are those whose Lease was seen to be renewed.
	Supervisors []Supervisor
	// SuspectLeases are those that were seen to be renewed by what is no supervisor.
	SuspectLeases []Supervisor
	// Hidden says what could not be looked at.
	Hidden []string
}

// Recognise says what an observation means.
func Recognise(o Observation) Finding {
	f := Finding{State: None, Supervisors: slices.Clone(o.Supervisors), Hidden: slices.Clone(o.Hidden), SuspectCount: o.Omitted}
	workloads := slices.SortedFunc(slices.Values(o.Workloads), func(a, b Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for i := range workloads {
		f.judge(&workloads[i], o.Judge)
	}
	byNamespace := func(a, b Supervisor) int { return strings.Compare(a.Namespace, b.Namespace) }
	slices.SortFunc(f.Supervisors, byNamespace)
	f.SuspectLeases, f.SuspectLeaseCount = slices.SortedFunc(slices.Values(o.SuspectLeases), byNamespace), len(o.SuspectLeases)
	f.SuspectLeases = f.SuspectLeases[:min(len(f.SuspectLeases), maxSuspects)]
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

// judge adds a Deployment to those that it belongs to.
func (f *Finding) judge(w *Workload, judge func(*Workload) Judgement) {
	judgement := Competes
	if judge != nil {
		judgement = judge(w)
	}
	switch {
	case judgement == Competes:
		f.Workloads = append(f.Workloads, *w)
	case judgement == Suspect && w.State() == Running:
		f.SuspectCount++
		if len(f.Suspects) < maxSuspects {
			f.Suspects = append(f.Suspects, *w)
		}
	}
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
		who = append(who, fmt.Sprintf("another supervisor (%s, Lease %s/%s)", s.Holder, s.Namespace, api.LeaseName))
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

package competing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Supervisor is a supervisor with another Lease.
type Supervisor struct {
	// Namespace is the namespace of its Lease.
	Namespace string `json:"namespace"`
	// Holder is the holder of the Lease.
	Holder string `json:"holder"`
}

// Finding is the result of a check of the cluster.
type Finding struct {
	// State is the state of OLM and of other supervisors together.
	State State `json:"state"`
	// Workloads are the Deployments of OLM, by namespace and name.
	Workloads []Workload `json:"workloads,omitempty"`
	// Suspects are the first active Deployments that look like OLM's and do not count, since their service accounts
	// may not do its work. SuspectCount is the number of all.
	Suspects     []Workload `json:"suspects,omitempty"`
	SuspectCount int        `json:"suspectCount,omitempty"`
	// Supervisors are the other supervisors that work now.
	Supervisors []Supervisor `json:"supervisors,omitempty"`
	// SuspectLeases are the first renewed Leases that do not count, since their holders are not pods that may act as
	// a supervisor. SuspectLeaseCount is the number of all.
	SuspectLeases     []Supervisor `json:"suspectLeases,omitempty"`
	SuspectLeaseCount int          `json:"suspectLeaseCount,omitempty"`
	// Hidden lists what could not be read, and why; empty if everything could.
	Hidden []string `json:"hidden,omitempty"`
}

// WorkloadsAmong returns the Deployments that look like a lifecycle manager.
func WorkloadsAmong(deployments []appsv1.Deployment) []Workload {
	var all []Workload
	for i := range deployments {
		if w := recognize(&deployments[i]); w != nil {
			all = append(all, *w)
		}
	}
	return all
}

// Input is what was read from the cluster.
type Input struct {
	// Workloads are the Deployments that look like a lifecycle manager.
	Workloads []Workload
	// Classify classifies one of them; nil if all are what they look like.
	Classify func(*Workload) Verdict
	// Omitted is the number of further active Deployments that have not been classified.
	Omitted int
	// Supervisors are those whose Lease was seen to be renewed.
	Supervisors []Supervisor
	// SuspectLeases are Leases that were renewed by a process that is not a supervisor.
	SuspectLeases []Supervisor
	// Hidden lists what could not be read.
	Hidden []string
}

// Evaluate returns the finding for an observation.
func Evaluate(o Input) Finding {
	f := Finding{State: None, Supervisors: slices.Clone(o.Supervisors), Hidden: slices.Clone(o.Hidden), SuspectCount: o.Omitted}
	workloads := slices.SortedFunc(slices.Values(o.Workloads), func(a, b Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for i := range workloads {
		f.classify(&workloads[i], o.Classify)
	}
	byNamespace := func(a, b Supervisor) int { return strings.Compare(a.Namespace, b.Namespace) }
	slices.SortFunc(f.Supervisors, byNamespace)
	f.SuspectLeases, f.SuspectLeaseCount = slices.SortedFunc(slices.Values(o.SuspectLeases), byNamespace), len(o.SuspectLeases)
	f.SuspectLeases = f.SuspectLeases[:min(len(f.SuspectLeases), maxSuspects)]
	// A running manager counts, even if other objects could not be read.
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

// classify adds a Deployment to the list for its verdict.
func (f *Finding) classify(w *Workload, classify func(*Workload) Verdict) {
	verdict := Competes
	if classify != nil {
		verdict = classify(w)
	}
	switch {
	case verdict == Competes:
		f.Workloads = append(f.Workloads, *w)
	case verdict == Suspect && w.State() == Running:
		f.SuspectCount++
		if len(f.Suspects) < maxSuspects {
			f.Suspects = append(f.Suspects, *w)
		}
	}
}

// Active returns the Deployments of OLM that work.
func (f *Finding) Active() []Workload {
	var active []Workload
	for i := range f.Workloads {
		if f.Workloads[i].State() == Running {
			active = append(active, f.Workloads[i])
		}
	}
	return active
}

// Err returns an error if a competing manager works; nil otherwise.
func (f *Finding) Err() error {
	if f.State != Running {
		return nil
	}
	return &Error{Finding: *f}
}

// Error reports that another lifecycle manager works in the cluster.
type Error struct {
	// Finding holds the other manager.
	Finding Finding
	// Recorded is true if a takeover is recorded, so that a handback can restore objects.
	Recorded bool
}

// SameManagers reports whether another error is about the same Deployments and supervisors, in whatever state.
func (e *Error) SameManagers(other *Error) bool {
	return slices.Equal(e.names(), other.names())
}

// names returns the Deployments and the Leases of the other managers.
func (e *Error) names() []string {
	var all []string
	active := e.Finding.Active()
	for i := range active {
		all = append(all, active[i].Namespace+"/"+active[i].Name)
	}
	for _, s := range e.Finding.Supervisors {
		all = append(all, s.Namespace)
	}
	return all
}

// Error returns a message with the competing manager and the remedy.
func (e *Error) Error() string {
	var who, todo []string
	active := e.Finding.Active()
	for i := range active {
		who = append(who, active[i].Describe())
	}
	if len(active) > 0 {
		todo = append(todo, e.remedies(active)...)
	}
	for _, s := range e.Finding.Supervisors {
		who = append(who, fmt.Sprintf("another supervisor (%s, Lease %s/%s)", s.Holder, s.Namespace, api.LeaseName))
		todo = append(todo, fmt.Sprintf("stop the supervisor of namespace %s, or let both compete for one Lease by --leader-election-namespace", s.Namespace))
	}
	return "refusing to run beside another lifecycle manager of the same kinds, because each would revert the changes of the other: " +
		strings.Join(who, "; ") + ". Do one of: " + strings.Join(todo, "; ")
}

// Describe returns the name and the state of a Deployment.
func (w *Workload) Describe() string {
	text := fmt.Sprintf("Deployment %s/%s (%d of %d replicas ready, image %s", w.Namespace, w.Name, w.Ready, max(w.Replicas, w.Pods), w.Image)
	if w.Version != "" && w.Version != tag(w.Image) {
		text += ", version " + w.Version
	}
	if w.ManagedBy != "" {
		text += ", kept by " + w.ManagedBy
	}
	if w.TakenOver && w.State() == Running {
		text += ", scaled up again since it was taken over from"
	}
	return text + ")"
}

func (e *Error) remedies(active []Workload) []string {
	todo := []string{
		"show the changes of a takeover, with: kubectl chandlery migrate --dry-run",
		"take over with: kubectl chandlery migrate, or by starting supervisors with --takeover",
	}
	byNamespace := map[string][]string{}
	var namespaces []string
	for i := range active {
		if w := &active[i]; w.ManagedBy == "" {
			if byNamespace[w.Namespace] == nil {
				namespaces = append(namespaces, w.Namespace)
			}
			byNamespace[w.Namespace] = append(byNamespace[w.Namespace], w.Name)
		}
	}
	for _, namespace := range namespaces {
		stop := fmt.Sprintf("stop it manually, with: kubectl -n %s scale deployment %s --replicas=0", namespace, strings.Join(byNamespace[namespace], " "))
		if !e.Recorded {
			stop += " (without a record, handback cannot restore the objects that supervisors change)"
		}
		todo = append(todo, stop)
	}
	if len(namespaces) == 0 {
		todo = []string{
			"show the obstacles to a takeover, with: kubectl chandlery migrate --dry-run",
			"leave this cluster to its own lifecycle manager",
		}
	}
	return todo
}

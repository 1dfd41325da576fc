package status

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/rival"
)

// supervisorName is what pods of the supervisor bear as app.kubernetes.io/name, and what
// their container may be called.
const supervisorName = "chandlery-supervisor"

// Supervisor is a Lease for which supervisors stand, with those that are seen.
type Supervisor struct {
	Namespace string `json:"namespace"`
	// Leads says whether somebody does: the Lease is held and has not run out.
	Leads bool `json:"leads"`
	// Leader holds the Lease, or held it when it ran out.
	Leader string `json:"leader,omitempty"`
	// Since is when it took the Lease, and Renewed when it last showed that it lives.
	Since   *time.Time `json:"since,omitempty"`
	Renewed *time.Time `json:"renewed,omitempty"`
	// Image is what the leader runs, where its pod is seen.
	Image string `json:"image,omitempty"`
	// Standbys are the other pods of supervisors.
	Standbys []Standby `json:"standbys,omitempty"`
}

// Standby is a supervisor that does not lead.
type Standby struct {
	Pod   string `json:"pod"`
	Ready bool   `json:"ready"`
	Image string `json:"image,omitempty"`
}

// clockSlack is how much the clocks of two machines may differ.
const clockSlack = 10 * time.Second

func supervisors(o *explain.Observation) []Supervisor {
	all := []Supervisor{}
	for i := range o.Leases {
		all = append(all, supervisor(o, &o.Leases[i]))
	}
	slices.SortFunc(all, func(a, b Supervisor) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}

func supervisor(o *explain.Observation, lease *coordinationv1.Lease) Supervisor {
	s := Supervisor{Namespace: lease.Namespace}
	if lease.Spec.HolderIdentity != nil {
		s.Leader = *lease.Spec.HolderIdentity
	}
	if lease.Spec.AcquireTime != nil {
		s.Since = new(lease.Spec.AcquireTime.Time)
	}
	if lease.Spec.RenewTime != nil {
		s.Renewed = new(lease.Spec.RenewTime.Time)
	}
	if s.Leader != "" && s.Renewed != nil && lease.Spec.LeaseDurationSeconds != nil {
		lasts := min(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, rival.MaxLeaseDuration) + clockSlack
		s.Leads = o.Taken.Before(s.Renewed.Add(lasts))
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		switch {
		case pod.Namespace != lease.Namespace || pod.Labels["app.kubernetes.io/name"] != supervisorName:
		case strings.HasPrefix(s.Leader, pod.Name+"_"):
			s.Image = imageOf(pod)
		default:
			s.Standbys = append(s.Standbys, Standby{Pod: pod.Name, Ready: ready(pod), Image: imageOf(pod)})
		}
	}
	slices.SortFunc(s.Standbys, func(a, b Standby) int { return strings.Compare(a.Pod, b.Pod) })
	return s
}

// imageOf is the image of the supervisor in a pod that may hold other containers too.
func imageOf(pod *corev1.Pod) string {
	containers := pod.Spec.Containers
	if len(containers) == 0 {
		return ""
	}
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "supervisor" })
	return containers[max(i, 0)].Image
}

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/explain"
)

// supervisorName is the value of the label app.kubernetes.io/name on pods of the supervisor.
const supervisorName = "chandlery-supervisor"

// Supervisor is a Lease of supervisors, with their pods.
type Supervisor struct {
	Namespace string `json:"namespace"`
	// Leads reports whether there is a leader: the Lease is held and has not expired.
	Leads bool `json:"leads"`
	// Leader is the holder of the Lease, or the last holder of an expired Lease.
	Leader string `json:"leader,omitempty"`
	// Since is the time at which the leader acquired the Lease. Renewed is the time of the last renewal.
	Since   *time.Time `json:"since,omitempty"`
	Renewed *time.Time `json:"renewed,omitempty"`
	// Image is the image of the leader, if its pod could be read.
	Image string `json:"image,omitempty"`
	// Standbys are the other pods of supervisors.
	Standbys []Standby `json:"standbys,omitempty"`
}

// Standby is a supervisor that is not the leader.
type Standby struct {
	Pod   string `json:"pod"`
	Ready bool   `json:"ready"`
	Image string `json:"image,omitempty"`
}

func supervisors(o *explain.ClusterState) []Supervisor {
	all := []Supervisor{}
	for i := range o.Leases {
		all = append(all, supervisor(o, &o.Leases[i]))
	}
	if len(all) == 0 && !slices.ContainsFunc(o.Unreadable, isLease) {
		all = append(all, waitingSupervisors(o)...)
	}
	slices.SortFunc(all, func(a, b Supervisor) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}

// waitingSupervisors returns the supervisors of a cluster without their Lease, which the first leader creates. Beside OLM,
// there is none before the takeover.
func waitingSupervisors(o *explain.ClusterState) []Supervisor {
	in := map[string]bool{}
	for i := range o.Pods {
		if o.Pods[i].Labels["app.kubernetes.io/name"] == supervisorName {
			in[o.Pods[i].Namespace] = true
		}
	}
	all := make([]Supervisor, 0, len(in))
	for namespace := range in {
		all = append(all, supervisor(o, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}))
	}
	return all
}

// isLease reports whether Leases could not be read.
func isLease(u explain.Unreadable) bool { return strings.HasPrefix(u.Resource, "leases.") }

func supervisor(o *explain.ClusterState, lease *coordinationv1.Lease) Supervisor {
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
	s.Leads = explain.Leads(lease, o.ReadAt)
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

// supervisorsIn returns the pods of supervisors among pods, as NAMESPACE/NAME.
func supervisorsIn(pods []corev1.Pod) []string {
	var names []string
	for i := range pods {
		if pods[i].Labels["app.kubernetes.io/name"] == supervisorName {
			names = append(names, pods[i].Namespace+"/"+pods[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// imageOf returns the image of the supervisor's container in a pod, which may have other containers.
func imageOf(pod *corev1.Pod) string {
	containers := pod.Spec.Containers
	if len(containers) == 0 {
		return ""
	}
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "supervisor" })
	return containers[max(i, 0)].Image
}

// describeSupervisor returns a text about the leader and the standbys.
func describeSupervisor(s *Supervisor, now time.Time, wide bool) string {
	var text string
	switch {
	case s.Leads && s.Since != nil:
		text = fmt.Sprintf("%s has led for %s (Lease in namespace %s)", s.Leader, ago(now, *s.Since), s.Namespace)
	case s.Leads:
		text = fmt.Sprintf("%s leads (Lease in namespace %s)", s.Leader, s.Namespace)
	case s.Leader != "" && s.Renewed != nil:
		text = fmt.Sprintf("no leader: %s last renewed the Lease in namespace %s %s ago", s.Leader, s.Namespace, ago(now, *s.Renewed))
	case s.Renewed == nil:
		text = fmt.Sprintf("no leader: there is no Lease in namespace %s", s.Namespace)
	default:
		text = fmt.Sprintf("no leader: the Lease in namespace %s is free", s.Namespace)
	}
	return text + describeStandbys(s, wide)
}

// describeStandbys returns a text about the standbys and the images, as far as the pods could be read.
func describeStandbys(s *Supervisor, wide bool) string {
	if len(s.Standbys) == 0 && s.Image == "" {
		return ""
	}
	ready := 0
	var others strings.Builder
	for _, standby := range s.Standbys {
		if standby.Ready {
			ready++
		}
		if wide || standby.Image != s.Image && s.Image != "" {
			fmt.Fprintf(&others, "; %s runs %s", standby.Pod, standby.Image)
		}
	}
	text := fmt.Sprintf("; %d of %d others stand by", ready, len(s.Standbys))
	if s.Image != "" {
		text += "; image " + s.Image
	}
	return text + others.String()
}

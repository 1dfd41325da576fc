package uninstall

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// labelName labels the Deployment and the pods of supervisors with supervisorName.
const labelName = "app.kubernetes.io/name"

// Supervisors are the supervisors of a cluster.
type Supervisors struct {
	// Installed reports whether the namespace of the plan has a Deployment of supervisors, and Ready whether it has a ready one.
	Installed, Ready bool
	// Elsewhere are the Deployments of supervisors in other namespaces.
	Elsewhere []Object
	// Leaders hold a Lease that has not expired.
	Leaders []Leader
}

// Leader is the holder of a Lease.
type Leader struct {
	// Namespace is the namespace of the Lease.
	Namespace string
	// Holder is the holder of the Lease.
	Holder string
	// Here reports whether the Lease or the holder's pod is in the namespace of the plan.
	Here bool
}

// readSupervisors returns the supervisors of a cluster for the plan of a namespace.
func readSupervisors(ctx context.Context, c client.Reader, namespace string, now time.Time) (Supervisors, error) {
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments, client.MatchingLabels{labelName: supervisorName}); err != nil {
		return Supervisors{}, fmt.Errorf("finding the Deployments of supervisors: %w", err)
	}
	var leases coordinationv1.LeaseList
	if err := c.List(ctx, &leases, client.MatchingFields{"metadata.name": api.LeaseName}); err != nil {
		return Supervisors{}, fmt.Errorf("finding the Leases of supervisors: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{labelName: supervisorName}); err != nil {
		return Supervisors{}, fmt.Errorf("listing the pods of supervisors in namespace %s: %w", namespace, err)
	}
	var s Supervisors
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.Namespace == namespace {
			s.Installed = true
			s.Ready = s.Ready || d.Status.ReadyReplicas > 0
		} else {
			s.Elsewhere = append(s.Elsewhere, Object{"apps", "v1", "Deployment", d.Namespace, d.Name})
		}
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if !explain.Leads(lease, now) {
			continue
		}
		leader := Leader{Namespace: lease.Namespace, Holder: *lease.Spec.HolderIdentity}
		leader.Here = leader.Namespace == namespace || slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
			return pod.Name == competing.Identity(leader.Holder)
		})
		s.Leaders = append(s.Leaders, leader)
	}
	return s, nil
}

// obstacles returns the reasons why the supervisor of a namespace must not be removed. An uninstallation without a
// supervisor in its namespace would remove the cluster-wide permissions of one in another namespace. With everything, no
// other supervisor may be installed or lead, because it would run on without the kinds and could not clean up operators.
func (s *Supervisors) obstacles(namespace string, everything bool) []string {
	if s.Installed && !everything {
		return nil
	}
	var reasons []string
	for _, d := range s.Elsewhere {
		reason := fmt.Sprintf("%s is a supervisor in another namespace than %s. To uninstall it, set --supervisor-namespace=%s", d, namespace, d.Namespace)
		if s.Installed {
			reason = fmt.Sprintf("%s is another supervisor. Uninstall it first, without --everything and with --supervisor-namespace=%s", d, d.Namespace)
		}
		reasons = append(reasons, reason)
	}
	for _, l := range s.Leaders {
		covered := slices.ContainsFunc(s.Elsewhere, func(d Object) bool { return d.Namespace == l.Namespace })
		if !everything || covered || l.Here && s.Ready {
			continue
		}
		reason := fmt.Sprintf("supervisor %s leads (Lease %s/%s), but no supervisor in namespace %s is ready. ", l.Holder, l.Namespace, api.LeaseName, namespace)
		if !l.Here {
			reason = fmt.Sprintf("supervisor %s leads (Lease %s/%s), and is not in namespace %s. ", l.Holder, l.Namespace, api.LeaseName, namespace)
		}
		reasons = append(reasons, reason+"Set --supervisor-namespace to the namespace of its Deployment. "+
			"To skip the clean-up of operators, stop the supervisor and wait until its Lease expires")
	}
	return reasons
}

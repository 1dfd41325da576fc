package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
)

// Loss holds the times of a loss.
type Loss struct {
	// Begun is the time of the loss.
	Begun time.Time
	// NotReady is the time at which the control plane declared the node lost; zero for other losses.
	NotReady time.Time
	// Restored is the time at which the full number of replicas existed again, without the lost
	// node. For a leader, it is the time at which another one acted.
	Restored time.Time
}

// faults takes leaders, nodes and replicas away.
type faults struct{ scene *Scene }

// leader returns the pod of the leading supervisor.
func (f *faults) leader(ctx context.Context) (*corev1.Pod, error) {
	var leader *corev1.Pod
	err := Eventually(ctx, "a leader", func(ctx context.Context) string {
		holder, err := f.holder(ctx)
		if err != nil {
			return err.Error()
		}
		leader = &corev1.Pod{}
		if err := f.scene.Client.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: supervisor.IdentityOf(holder)}, leader); err != nil {
			return err.Error()
		}
		return ""
	})
	return leader, err
}

func (f *faults) holder(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := f.scene.Client.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: api.LeaseName}, lease); err != nil {
		return "", fmt.Errorf("reading the Lease of the supervisors: %w", err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// killLeader kills the leading supervisor with SIGKILL and waits until another one acts.
func (f *faults) killLeader(ctx context.Context) (Loss, error) {
	return f.loseLeader(ctx, func(pod *corev1.Pod) error { return f.scene.Bed.KillPod(ctx, pod.Namespace, pod.Name) })
}

// stopLeader deletes the pod of the leading supervisor, which ends it with SIGTERM, and waits until
// another one acts.
func (f *faults) stopLeader(ctx context.Context) (Loss, error) {
	return f.loseLeader(ctx, func(pod *corev1.Pod) error {
		return client.IgnoreNotFound(f.scene.Client.Delete(ctx, pod))
	})
}

func (f *faults) loseLeader(ctx context.Context, lose func(*corev1.Pod) error) (Loss, error) {
	pod, err := f.leader(ctx)
	if err != nil {
		return Loss{}, err
	}
	before, err := f.holder(ctx)
	if err != nil {
		return Loss{}, err
	}
	loss := Loss{Begun: time.Now()}
	if err := lose(pod); err != nil {
		return loss, fmt.Errorf("taking leader %s away: %w", pod.Name, err)
	}
	err = Eventually(ctx, "another leader than "+before, func(ctx context.Context) string {
		holder, err := f.holder(ctx)
		if err != nil {
			return err.Error()
		}
		if holder == before || holder == "" {
			return fmt.Sprintf("the Lease is held by %q", holder)
		}
		return ""
	})
	if err != nil {
		return loss, err
	}
	loss.Restored, err = f.acts(ctx)
	return loss, err
}

// acts waits until a supervisor does something that only the leader does: it writes the status of a
// CatalogSource that cannot be served.
func (f *faults) acts(ctx context.Context) (time.Time, error) {
	probe := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: CatalogNamespace, GenerateName: "probe-"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc},
	}
	if err := f.scene.Client.Create(ctx, probe); err != nil {
		return time.Time{}, fmt.Errorf("creating a CatalogSource for the leader to judge: %w", err)
	}
	err := Eventually(ctx, "a leader to act", func(ctx context.Context) string {
		source, err := f.scene.Source(ctx, probe.Name)
		if err != nil {
			return err.Error()
		}
		if source.Status.Reason == "" {
			return "no word on CatalogSource " + probe.Name
		}
		return ""
	})
	at := time.Now()
	if err != nil {
		return at, err
	}
	return at, f.scene.Client.Delete(ctx, probe)
}

// loseNode stops a node. It waits until the control plane has declared it lost and the target has
// its full number of replicas without it.
func (f *faults) loseNode(ctx context.Context, node string, target Target) (Loss, error) {
	loss := Loss{Begun: time.Now()}
	if err := f.scene.Bed.Lose(ctx, f.number(node)); err != nil {
		return loss, err
	}
	err := Eventually(ctx, "node "+node+" to be NotReady", func(ctx context.Context) string {
		n := &corev1.Node{}
		if err := f.scene.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return err.Error()
		}
		if nodeReady(n) {
			return "it is Ready"
		}
		return ""
	})
	loss.NotReady = time.Now()
	if err != nil {
		return loss, err
	}
	err = Eventually(ctx, target.String()+" to be at full strength without "+node, func(ctx context.Context) string {
		pods, err := f.scene.pods(ctx, target)
		if err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node }) {
			return "there is a pod on " + node
		}
		return weakness(pods, target.Replicas)
	})
	loss.Restored = time.Now()
	return loss, err
}

// number returns the number of a node on the bed.
func (f *faults) number(node string) int { return slices.Index(f.scene.Bed.Nodes(), node) + 1 }

// nodeOf returns the node of one of the target's pods. If there is a choice, it is not the node elsewhere.
func (f *faults) nodeOf(ctx context.Context, target Target, elsewhere string) (string, error) {
	pods, err := f.scene.pods(ctx, target)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if pods[i].Spec.NodeName != elsewhere {
			return pods[i].Spec.NodeName, nil
		}
	}
	if len(pods) == 0 {
		return "", fmt.Errorf("%s has no pods", target)
	}
	return pods[0].Spec.NodeName, nil
}

// killReplica kills the process of one replica. The kubelet detects this.
func (f *faults) killReplica(ctx context.Context, target Target) (Loss, error) {
	return f.loseReplica(ctx, target, func(p *corev1.Pod) error { return f.scene.Bed.KillPod(ctx, p.Namespace, p.Name) })
}

// deleteReplica deletes the pod of one replica.
func (f *faults) deleteReplica(ctx context.Context, target Target) (Loss, error) {
	return f.loseReplica(ctx, target, func(p *corev1.Pod) error { return f.scene.Client.Delete(ctx, p) })
}

func (f *faults) loseReplica(ctx context.Context, target Target, lose func(*corev1.Pod) error) (Loss, error) {
	pods, err := f.scene.pods(ctx, target)
	if err != nil {
		return Loss{}, err
	}
	if len(pods) == 0 {
		return Loss{}, fmt.Errorf("%s has no pods", target)
	}
	loss := Loss{Begun: time.Now()}
	if err := lose(&pods[0]); err != nil {
		return loss, fmt.Errorf("taking replica %s away: %w", pods[0].Name, err)
	}
	err = Eventually(ctx, "replica "+pods[0].Name+" to be made good", func(ctx context.Context) string {
		now, err := f.scene.pods(ctx, target)
		if err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(now, func(p corev1.Pod) bool { return same(&p, &pods[0]) }) {
			return "nobody has noticed the loss"
		}
		return weakness(now, len(pods))
	})
	loss.Restored = time.Now()
	return loss, err
}

// same reports whether a pod has the same UID and number of restarts.
func same(a, b *corev1.Pod) bool { return a.UID == b.UID && restarts(a) == restarts(b) }

func restarts(p *corev1.Pod) int32 {
	var sum int32
	for i := range p.Status.ContainerStatuses {
		sum += p.Status.ContainerStatuses[i].RestartCount
	}
	return sum
}

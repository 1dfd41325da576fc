package disconnected_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/process"
)

const (
	// resolveLimit is the longest time from the start of a leader to an InstallPlan.
	resolveLimit = 5 * time.Second
	// pinnedNode has the only replica of the hosted catalog.
	pinnedNode = "node-3"
)

// TestCatalogsAway restarts and replaces all supervisors while two catalogs are away: a hosted one without image and
// pods, and one whose address is unreachable. Each leader resolves new Subscriptions soon.
func TestCatalogsAway(t *testing.T) {
	s := newScene(t)
	hosted := s.hosted("hosted", 1)
	hosted.Spec.GrpcPodConfig.NodeSelector = map[string]string{corev1.LabelHostname: pinnedNode}
	distant := failover.NewCatalog("distant", "", 0)
	distant.Spec.Address = s.distant
	server := s.serveDistant()
	s.create(hosted, distant)
	s.ready("hosted")
	s.ready("distant")

	must(t, server.Stop(patience))
	s.removeHosted()
	s.away("hosted")
	s.away("distant")

	all := supervisors{s}
	killed := all.restart()
	s.subscribe("restarted-lantern", "lantern", "", "hosted")
	s.subscribe("restarted-compass", "compass", "", "distant")
	s.resolvesSoon(all.nextLeader(killed), map[string]string{"restarted-lantern": "lantern", "restarted-compass": "compass"})

	// A new pod has an empty disk, and reads the contents from a running one.
	replaced := all.nextLeader(all.replace())
	s.subscribe("replaced-compass", "compass", "", "hosted")
	s.subscribe("replaced-buoy", "buoy", "", "distant")
	s.resolvesSoon(replaced, map[string]string{"replaced-compass": "compass", "replaced-buoy": "buoy"})

	// The bundles are in the mirror, so the versions install.
	s.succeeded("replaced-compass", "compass", head("compass"))
	s.succeeded("replaced-buoy", "buoy", head("buoy"))
}

// serveDistant serves the catalog on this machine, for CatalogSources with an address.
func (s *scene) serveDistant() *process.Process {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.distant)
	must(s.t, err)
	p, err := process.Start(s.t.Context(), process.Spec{
		Name: "registry", Path: filepath.Join(bin, "registry"), Log: filepath.Join(s.t.ArtifactDir(), "registry.log"),
		Args: []string{"serve", filepath.Join(bin, "made"), "--host=" + host, "--port=" + port, "--metrics-address=0", "--pprof-addr=0", "--termination-log="},
	})
	must(s.t, err)
	s.t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			s.t.Error(err)
		}
	})
	return p
}

// removeHosted removes the image of the hosted catalog from the mirror, and its pods. New ones find no node.
func (s *scene) removeHosted() {
	s.t.Helper()
	s.mirror.remove("/" + catalogRepository + "/")
	must(s.t, kubectl(s.t.Context(), s.bed, "cordon", pinnedNode))
	s.t.Cleanup(func() {
		s.mirror.remove()
		if err := kubectl(context.WithoutCancel(s.t.Context()), s.bed, "uncordon", pinnedNode); err != nil {
			s.t.Error(err)
		}
	})
	must(s.t, kubectl(s.t.Context(), s.bed, "--namespace", failover.CatalogNamespace, "delete", "pods", "--selector", api.LabelCatalogSource+"=hosted", "--wait", "--now"))
}

// away waits until no replica of a catalog answers.
func (s *scene) away(name string) {
	s.t.Helper()
	s.eventually(name+" to be away", func() string {
		source := &operatorsv1alpha1.CatalogSource{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: failover.CatalogNamespace, Name: name}, source); err != nil {
			return err.Error()
		}
		if state := source.Status.GRPCConnectionState; state != nil && state.LastObservedState == "READY" {
			return "it is READY"
		}
		var pods corev1.PodList
		if err := s.List(s.t.Context(), &pods, client.InNamespace(failover.CatalogNamespace), client.MatchingLabels{api.LabelCatalogSource: name}); err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase != corev1.PodPending || pods.Items[i].Spec.NodeName != "" {
				return fmt.Sprintf("pod %s is %s", pods.Items[i].Name, pods.Items[i].Status.Phase)
			}
		}
		return ""
	})
}

// supervisors are the pods of the supervisors.
type supervisors struct{ *scene }

// list returns those that are not being deleted.
func (s supervisors) list() ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.List(s.t.Context(), &pods, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/name": supervisorName}); err != nil {
		return nil, fmt.Errorf("listing the supervisors: %w", err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// restart kills the containers of all supervisors at once, and returns the time.
func (s supervisors) restart() time.Time {
	s.t.Helper()
	pods, err := s.list()
	must(s.t, err)
	killed := time.Now()
	for i := range pods {
		must(s.t, s.bed.KillPod(s.t.Context(), systemNamespace, pods[i].Name))
	}
	return killed
}

// replace deletes one pod after the other, the leader's last. Before each deletion, all pods are ready. It
// returns the time of the last one.
func (s supervisors) replace() time.Time {
	s.t.Helper()
	pods := s.ready()
	lease, err := s.lease()
	must(s.t, err)
	leader := supervisor.IdentityOf(*lease.Spec.HolderIdentity)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(rank(&a, leader), rank(&b, leader)) })
	if pods[len(pods)-1].Name != leader {
		s.t.Fatalf("pod %s has the Lease, and is none of the supervisors", leader)
	}
	var deleted time.Time
	for i := range pods {
		s.ready()
		deleted = time.Now()
		must(s.t, s.Delete(s.t.Context(), &pods[i]))
	}
	return deleted
}

// rank sorts the leader last.
func rank(pod *corev1.Pod, leader string) string {
	if pod.Name == leader {
		return "1"
	}
	return "0" + pod.Name
}

// ready waits until all supervisors are ready, and returns them.
func (s supervisors) ready() []corev1.Pod {
	s.t.Helper()
	const replicas = 2
	var pods []corev1.Pod
	s.eventually("the supervisors to be ready", func() string {
		var err error
		if pods, err = s.list(); err != nil {
			return err.Error()
		}
		ready := 0
		for i := range pods {
			if isReady(&pods[i]) {
				ready++
			}
		}
		if ready != replicas || len(pods) != replicas {
			return fmt.Sprintf("%d of %d supervisors are ready", ready, len(pods))
		}
		return ""
	})
	return pods
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// lease returns the Lease of the leader.
func (s supervisors) lease() (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: supervisorName}, lease); err != nil {
		return nil, fmt.Errorf("reading the Lease: %w", err)
	}
	return lease, nil
}

// nextLeader waits until a supervisor takes the Lease after a time, and returns when it did.
func (s supervisors) nextLeader(after time.Time) time.Time {
	s.t.Helper()
	var acquired time.Time
	s.eventually("the next leader", func() string {
		lease, err := s.lease()
		if err != nil {
			return err.Error()
		}
		if lease.Spec.AcquireTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || !lease.Spec.AcquireTime.After(after) {
			return fmt.Sprintf("the Lease is %+v", lease.Spec)
		}
		acquired = lease.Spec.AcquireTime.Time
		return ""
	})
	s.t.Logf("the next leader started after %s", acquired.Sub(after).Round(time.Millisecond))
	return acquired
}

// resolvesSoon checks that Subscriptions resolve soon after the start of a leader. They are namespaces and packages.
func (s *scene) resolvesSoon(started time.Time, subscriptions map[string]string) {
	s.t.Helper()
	for namespace, pkg := range subscriptions {
		s.eventually("Subscription "+namespace+"/"+pkg, func() string { return s.unresolved(namespace, pkg) })
		took := time.Since(started)
		s.t.Logf("%s/%s resolved %s after the start of the leader", namespace, pkg, took.Round(time.Millisecond))
		if took > resolveLimit {
			s.t.Errorf("%s/%s resolved %s after the start of the leader, want at most %s", namespace, pkg, took.Round(time.Millisecond), resolveLimit)
		}
	}
}

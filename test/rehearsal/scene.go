package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/nodes"
)

const (
	// home is the namespace of the supervisors.
	home = "chandlery-system"
	// catalogName is the CatalogSource in the manifests of OLM.
	catalogName = "operatorhubio-catalog"
)

// olmPrograms are the Deployments of OLM that a takeover stops, with the programs of their containers.
var olmPrograms = map[string]string{"olm-operator": "/bin/olm", "catalog-operator": "/bin/catalog"}

// scene is a cluster with OLM, its operators, and supervisors that wait.
type scene struct {
	client.Client

	bed      *nodes.Bed
	dir      string // built programs
	progress io.Writer
	// subscriptions installs the operators.
	subscriptions *subscriptions
	// late are the operators whose InstallPlans are under way at a switch.
	late []operator
}

// newScene installs OLM and the operators, and then the supervisors.
func newScene(ctx context.Context, bed *nodes.Bed, dir string, rounds int, progress io.Writer) (*scene, error) {
	c, err := failover.NewClient(bed)
	if err != nil {
		return nil, err
	}
	s := &scene{Client: c, bed: bed, dir: dir, progress: progress, subscriptions: &subscriptions{client: c}}
	for round := range rounds {
		s.late = append(s.late, late(round+1, "there"), late(round+1, "back"))
	}
	return s, (&installer{scene: s}).install(ctx)
}

func (s *scene) sayf(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

// kubectl runs kubectl in the cluster.
func (s *scene) kubectl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, s.bed.Kubectl(), append([]string{"--kubeconfig", s.bed.Kubeconfig()}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// awaitWaiting waits until all supervisors wait for OLM to stop: their pods run and are not ready.
func (s *scene) awaitWaiting(ctx context.Context) error {
	return failover.Eventually(ctx, "supervisors to wait", func(ctx context.Context) string {
		d := &appsv1.Deployment{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: home, Name: "chandlery-supervisor"}, d); err != nil {
			return err.Error()
		}
		pods := &corev1.PodList{}
		if err := s.List(ctx, pods, client.InNamespace(home), client.MatchingLabels{"app.kubernetes.io/name": "chandlery-supervisor"}); err != nil {
			return err.Error()
		}
		waiting := 0
		for i := range pods.Items {
			if c := pods.Items[i].Status.ContainerStatuses; len(c) == 1 && c[0].Started != nil && *c[0].Started {
				waiting++
			}
		}
		wanted, current := int(*d.Spec.Replicas), d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas
		if !current || waiting != wanted || len(pods.Items) != wanted {
			return fmt.Sprintf("%d of %d pods run", waiting, len(pods.Items))
		}
		return ""
	})
}

package takeover_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/testenv"
)

// olmPrograms are the Deployments of OLM that a takeover stops.
var olmPrograms = []string{"olm-operator", "catalog-operator"}

// switchScene is a cluster with OLM and supervisors, whose processes follow the scale of their Deployments.
type switchScene struct {
	*olmScene

	workloads  *workloads
	proxy      *apiproxy.Proxy
	kubeconfig string // of the proxy
}

// newSwitchScene starts the processes of OLM's Deployments and of the supervisors', which exist. One supervisor with a name
// and further arguments stands for all replicas.
func newSwitchScene(s *olmScene, name string, more ...string) *switchScene {
	s.t.Helper()
	args, err := s.supervisorArgs(name, more...)
	if err != nil {
		s.t.Fatal(err)
	}
	supervise := process.Spec{Name: name, Path: filepath.Join(bin, "supervisor"), Args: args, Log: filepath.Join(s.t.ArtifactDir(), "supervisor.log")}
	w := &workloads{Client: s.Client, all: []*workload{
		{key: client.ObjectKey{Namespace: s.namespace, Name: olmPrograms[0]}, start: s.peer.StartOperator},
		{key: client.ObjectKey{Namespace: s.namespace, Name: olmPrograms[1]}, start: s.peer.StartCatalog},
		{key: client.ObjectKey{Namespace: home, Name: api.LeaseName}, start: func(ctx context.Context) (*process.Process, error) {
			return process.Start(ctx, supervise)
		}},
	}}
	w.follow(s.t)
	out := &switchScene{olmScene: s, workloads: w, proxy: apiproxy.Start(s.t, s.plane.Config())}
	out.kubeconfig = filepath.Join(s.t.TempDir(), "proxy.kubeconfig")
	const cluster = "proxy"
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{cluster: {Server: out.proxy.Config().Host}},
		Contexts: map[string]*clientcmdapi.Context{cluster: {Cluster: cluster}}, CurrentContext: cluster,
	}, out.kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// settle brings all processes into the state of their Deployments.
func (s *switchScene) settle() {
	if err := s.workloads.sync(s.t.Context()); err != nil {
		s.t.Error(err)
	}
}

// awaitsPods lets the pods of a Deployment exist until their process has ended, for commands that use the proxy.
func (s *switchScene) awaitsPods() {
	s.proxy.Decide(func(call apiproxy.Call) apiproxy.Fault {
		if call.Resource == "pods" {
			s.settle()
		}
		return apiproxy.Fault{}
	})
}

// works removes what a manager writes, and waits until it has written it again.
func (s *switchScene) works(who string) {
	s.t.Helper()
	key := client.ObjectKey{Namespace: "lamps", Name: "lamp"}
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := s.Status().Patch(s.t.Context(), sub, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"catalogHealth":null}}`))); err != nil {
		s.t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
		s.t.Fatal(err)
	}
	before := ns.DeepCopy()
	const prefix = "olm.operatorgroup.uid/"
	for label := range ns.Labels {
		if strings.HasPrefix(label, prefix) {
			delete(ns.Labels, label)
		}
	}
	if err := s.Patch(s.t.Context(), ns, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
	testenv.Until(s.t, patience, who+" to work", func(ctx context.Context) string {
		if err := s.Get(ctx, key, sub); err != nil {
			return err.Error()
		}
		if err := s.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
			return err.Error()
		}
		if len(sub.Status.CatalogHealth) == 0 || len(ns.Labels) != len(before.Labels) {
			return fmt.Sprintf("health %v, labels %v", sub.Status.CatalogHealth, ns.Labels)
		}
		return ""
	})
}

// process returns the process of a Deployment.
func (s *switchScene) process(name string) *process.Process {
	s.t.Helper()
	s.settle()
	s.workloads.mu.Lock()
	defer s.workloads.mu.Unlock()
	i := slices.IndexFunc(s.workloads.all, func(w *workload) bool { return w.key.Name == name })
	if i < 0 || s.workloads.all[i].running == nil {
		s.t.Fatalf("Deployment %s has no process", name)
	}
	return s.workloads.all[i].running
}

package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/process"
)

const (
	soon     = 30 * time.Second
	interval = 50 * time.Millisecond
)

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}

	return client
}

// deployment returns a Deployment of n pods that kwok runs.
func deployment(name string, n int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(n),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/none:1"}}},
			},
		},
	}
}

func TestServerHasTheVersionOfItsModule(t *testing.T) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		t.Fatal(err)
	}

	want, err := buildcache.Required(dir, kubernetesModule)
	if err != nil {
		t.Fatal(err)
	}

	got, err := clientset(t, Get(t).Config()).Discovery().ServerVersion()
	if err != nil {
		t.Fatalf("ask for the version: %v", err)
	}

	if diff := cmp.Diff(want, got.GitVersion); diff != "" {
		t.Errorf("version: -want, +got:\n%s", diff)
	}
}

func TestKubeconfigGivesAccess(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", Get(t).Kubeconfig())
	if err != nil {
		t.Fatalf("read the kubeconfig: %v", err)
	}

	nodes, err := clientset(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("list nodes: %v", err)
	}

	for _, node := range nodes.Items {
		err := unready(&node)
		if err != nil {
			t.Error(err)
		}
	}

	if diff := cmp.Diff(defaultNodes, len(nodes.Items)); diff != "" {
		t.Errorf("number of nodes: -want, +got:\n%s", diff)
	}
}

func TestDeploymentBecomesAvailable(t *testing.T) {
	g := gomega.NewWithT(t)
	deployments := clientset(t, Get(t).Config()).AppsV1().Deployments(Namespace(t))

	_, err := deployments.Create(t.Context(), deployment("web", 3), metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())

	g.Eventually(func(g gomega.Gomega) {
		got, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(got.Status.AvailableReplicas).To(gomega.BeEquivalentTo(3))
	}, soon, interval).Should(gomega.Succeed())
}

func TestGarbageIsCollected(t *testing.T) {
	g := gomega.NewWithT(t)
	maps := clientset(t, Get(t).Config()).CoreV1().ConfigMaps(Namespace(t))

	owner, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())

	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())

	g.Expect(maps.Delete(t.Context(), "owner", metav1.DeleteOptions{})).To(gomega.Succeed())

	g.Eventually(func() bool {
		_, err := maps.Get(t.Context(), "owned", metav1.GetOptions{})

		return apierrors.IsNotFound(err)
	}, soon, interval).Should(gomega.BeTrue())
}

func TestNamespaceIsFreshAndDiscarded(t *testing.T) {
	g := gomega.NewWithT(t)
	client := clientset(t, Get(t).Config())

	var names []string

	for range 2 {
		t.Run("Same", func(t *testing.T) {
			name := Namespace(t)
			names = append(names, name)

			_, err := client.AppsV1().Deployments(name).Create(t.Context(), deployment("thing", 1), metav1.CreateOptions{})
			if err != nil {
				t.Errorf("create an object that another test has in its namespace: %v", err)
			}
		})
	}

	g.Expect(names[0]).NotTo(gomega.Equal(names[1]))
	g.Eventually(func(g gomega.Gomega) {
		for _, name := range names {
			namespace, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(namespace.Status.Phase).To(gomega.Equal(corev1.NamespaceTerminating), name)

			deployments, err := client.AppsV1().Deployments(name).List(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(deployments.Items).To(gomega.BeEmpty(), name)

			pods, err := client.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(pods.Items).To(gomega.BeEmpty(), name)
		}
	}, soon, interval).Should(gomega.Succeed())
}

func TestAccessIsChecked(t *testing.T) {
	namespace := Namespace(t)
	config := Get(t).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":default"}

	_, err := clientset(t, config).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list secrets without a role: want forbidden, got %v", err)
	}
}

func TestNodeIsLostAndComesBack(t *testing.T) {
	g := gomega.NewWithT(t)
	c := Get(t)
	nodes := clientset(t, c.Config()).CoreV1().Nodes()

	g.Expect(c.StopNode(t.Context(), "node-2")).To(gomega.Succeed())

	g.Eventually(func(g gomega.Gomega) {
		node, err := nodes.Get(t.Context(), "node-2", metav1.GetOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(unready(node)).To(gomega.HaveOccurred())
		g.Expect(node.Spec.Taints).NotTo(gomega.BeEmpty())
	}, soon, interval).Should(gomega.Succeed())

	g.Expect(c.StartNode(t.Context(), "node-2")).To(gomega.Succeed())
}

func TestRestartKeepsAddressAndData(t *testing.T) {
	for _, component := range []Component{KubeAPIServer, Etcd} {
		t.Run(string(component), func(t *testing.T) {
			g := gomega.NewWithT(t)
			c := Get(t)
			client := clientset(t, c.Config())
			maps := client.CoreV1().ConfigMaps(Namespace(t))

			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())

			g.Expect(c.StartComponent(t.Context(), component)).To(gomega.MatchError(ErrRunning))
			g.Expect(c.KillComponent(component)).To(gomega.Succeed())
			g.Expect(c.StartComponent(t.Context(), component)).To(gomega.Succeed())
			g.Expect(c.waitForComponent(t.Context(), KubeAPIServer)).To(gomega.Succeed())

			_, err = maps.Get(t.Context(), "kept", metav1.GetOptions{})
			g.Expect(err).NotTo(gomega.HaveOccurred())
		})
	}
}

func TestDeathOfAComponentIsTold(t *testing.T) {
	g := gomega.NewWithT(t)
	c := Get(t)

	c.mu.Lock()
	scheduler := c.running[KubeScheduler]
	c.mu.Unlock()

	g.Expect(scheduler.Kill()).To(gomega.Succeed())

	var failed *ComponentError

	g.Expect(errors.As(c.Err(), &failed)).To(gomega.BeTrue())
	g.Expect(failed.Component).To(gomega.Equal(KubeScheduler))
	g.Expect(errors.As(c.StopComponent(KubeScheduler), &failed)).To(gomega.BeTrue())
	g.Expect(c.Err()).To(gomega.Succeed())
	g.Expect(c.StartComponent(t.Context(), KubeScheduler)).To(gomega.Succeed())
}

func TestStopLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())

	c, err := Start(t.Context(), Options{Nodes: 1})
	if err != nil {
		t.Fatalf("Start(...) beside the control plane of the package: %v", err)
	}

	var pids []int
	for _, p := range c.running {
		pids = append(pids, p.PID())
	}

	logs := filepath.Join(t.TempDir(), "logs")

	err = c.SaveLogs(logs)
	if err != nil {
		t.Errorf("SaveLogs(...): %v", err)
	}

	for range 2 {
		err = c.Stop()
		if err != nil {
			t.Errorf("Stop(): %v", err)
		}
	}

	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}

	_, err = os.Stat(c.layout.dir)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder after Stop: want %v, got %v", os.ErrNotExist, err)
	}

	if process.Tail(filepath.Join(logs, string(KubeAPIServer)+".log")) == "" {
		t.Error("saved log of kube-apiserver: want content, got none")
	}
}

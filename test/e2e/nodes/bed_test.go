package nodes_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// gracePeriod is short, so the loss of a node is detected quickly.
	gracePeriod = 15 * time.Second
	// patience bounds waits that should take a few seconds.
	patience = 3 * time.Minute
	// webImage serves the files of its container on webPort.
	webImage = "chandlery/web:test"
	webPort  = 8080
	// contentImage holds configs/greeting.
	contentImage = "chandlery/content:test"
)

// webProgram is the path of the program of webImage.
var webProgram string

// TestMain starts the one bed that the tests of this package share: three nodes that are NotReady
// soon after they are lost, and the images of bed_test.go in its registry. Every test has its own
// namespace (bed(t).Namespace(t)) and returns the nodes that it stops. After the tests, nothing of
// the bed may be left on the machine.
func TestMain(m *testing.M) {
	os.Exit(nodes.Main(m, nodes.Options{NodeMonitorGracePeriod: gracePeriod}, pushImages))
}

// bed returns the bed of the package.
func bed(t *testing.T) *nodes.Bed {
	t.Helper()
	return nodes.Get(t)
}

// pushImages pushes the images of this file to the registry of the bed.
func pushImages(ctx context.Context, b *nodes.Bed) error {
	// The folder is removed with the folder of the bed.
	dir := filepath.Dir(b.LogDir())
	if err := programs.Build(ctx, dir, "./test/e2e/nodes/web"); err != nil {
		return err
	}
	webProgram = filepath.Join(dir, "web")
	web, err := images.Program(webProgram, "web")
	if err != nil {
		return err
	}
	content, err := images.Content(fstest.MapFS{"greeting": &fstest.MapFile{Data: []byte("hello")}})
	if err != nil {
		return err
	}
	if _, err = b.Images.Push(ctx, web, webImage); err != nil {
		return err
	}
	_, err = b.Images.Push(ctx, content, contentImage)
	return err
}

func clientOf(t *testing.T, b *nodes.Bed) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(b.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// pod returns a pod of webImage. An empty node means any.
func pod(name, node string, args ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "web", Image: webImage, Args: args}},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	if node != "" {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return p
}

// server returns a pod that serves its files.
func server(name, node string) *corev1.Pod {
	p := pod(name, node, "serve", fmt.Sprintf(":%d", webPort))
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1,
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/etc/hostname", Port: intstr.FromInt32(webPort)}},
	}
	return p
}

// run creates a pod and waits until it is Ready.
func run(t *testing.T, client kubernetes.Interface, namespace string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	g := gomega.NewWithT(t)
	pods := client.CoreV1().Pods(namespace)
	_, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var seen *corev1.Pod
	g.Eventually(func() (string, error) {
		seen, err = pods.Get(t.Context(), p.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return condition(seen), nil
	}, patience, 100*time.Millisecond).Should(gomega.Equal("Ready"), "pod %s", p.Name)
	return seen
}

// condition returns "Ready", or the reason why a pod is not ready.
func condition(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return "Ready"
		}
	}
	reasons := []string{string(p.Status.Phase)}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Waiting != nil {
			reasons = append(reasons, s.State.Waiting.Reason, s.State.Waiting.Message)
		}
	}
	return strings.Join(reasons, " ")
}

// get fetches a URL from a machine of the bed.
func get(t *testing.T, machine, url string) func() (string, error) {
	t.Helper()
	return func() (string, error) {
		var stdout, stderr bytes.Buffer
		cmd := nodes.Command(t.Context(), machine, webProgram, "get", url)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%w: %s", err, stderr.String())
		}
		return strings.TrimSpace(stdout.String()), nil
	}
}

// podURL returns the URL of a pod.
func podURL(p *corev1.Pod) string {
	return "http://" + net.JoinHostPort(p.Status.PodIP, strconv.Itoa(webPort))
}

// expose creates a Service of the pods of a namespace and returns its URL.
func expose(t *testing.T, client kubernetes.Interface, namespace string) string {
	t.Helper()
	service, err := client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(webPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + service.Spec.ClusterIP
}

func TestNodesAreReadyInTheirZones(t *testing.T) {
	list, err := clientOf(t, bed(t)).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]string{}
	for _, node := range list.Items {
		if ready(&node) == corev1.ConditionTrue {
			zones[node.Name] = node.Labels[corev1.LabelTopologyZone]
		}
	}
	if diff := cmp.Diff(map[string]string{"node-1": "zone-1", "node-2": "zone-2", "node-3": "zone-3"}, zones); diff != "" {
		t.Errorf("zones of the nodes that are Ready: -want, +got:\n%s", diff)
	}
}

func ready(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func TestServiceIsReachedFromEverywhere(t *testing.T) {
	g := gomega.NewWithT(t)
	b := bed(t)
	client, namespace := clientOf(t, b), b.Namespace(t)
	address := expose(t, client, namespace)
	served := run(t, client, namespace, server("server", "node-1"))
	page := "/etc/hostname"
	// This machine has no kube-proxy, so it connects to the pod directly.
	for machine, url := range map[string]string{
		nodes.Client: address, "node-1": address, "node-2": address, "node-3": address,
	} {
		g.Eventually(get(t, machine, url+page), patience, 100*time.Millisecond).Should(gomega.Equal("server"), "from %s", machine)
	}
	out, err := exec.CommandContext(t.Context(), webProgram, "get", podURL(served)+page).CombinedOutput()
	g.Expect(err).NotTo(gomega.HaveOccurred(), string(out))

	// If the pod is on the same node, the answer also passes the rules of the Service.
	for i, node := range b.Nodes() {
		name := fmt.Sprintf("caller-%d", i+1)
		caller := pod(name, node, "get", address+page)
		caller.Labels = nil
		caller.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), caller, metav1.CreateOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Eventually(func() (corev1.PodPhase, error) {
			p, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
			return p.Status.Phase, err
		}, patience, 100*time.Millisecond).Should(gomega.Or(gomega.Equal(corev1.PodSucceeded), gomega.Equal(corev1.PodFailed)))
		log, err := client.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(string(log)).To(gomega.Equal("server\n"), "from a pod on %s", node)
	}
}

func TestImagesComeByEveryName(t *testing.T) {
	b := bed(t)
	client, namespace := clientOf(t, b), b.Namespace(t)
	for name, image := range map[string]string{
		"docker": "docker.io/" + webImage, "other": "quay.example.com/" + webImage, "own": b.Images.Address() + "/" + webImage,
	} {
		p := server(name, "")
		p.Spec.Containers[0].Image = image
		p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		run(t, client, namespace, p)
	}
}

func TestImageVolume(t *testing.T) {
	b := bed(t)
	client, namespace := clientOf(t, b), b.Namespace(t)
	for name, tc := range map[string]struct{ subPath, page string }{
		"whole": {"", "/content/configs/greeting"},
		"part":  {"configs", "/content/greeting"},
	} {
		t.Run(name, func(t *testing.T) {
			p := server(name, "")
			p.Spec.Volumes = []corev1.Volume{{Name: "content", VolumeSource: corev1.VolumeSource{
				Image: &corev1.ImageVolumeSource{Reference: contentImage},
			}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "content", MountPath: "/content", SubPath: tc.subPath, ReadOnly: true}}
			address := podURL(run(t, client, namespace, p))
			if got, err := get(t, nodes.Client, address+tc.page)(); err != nil || got != "hello" {
				t.Errorf("content of the image: want hello, got %q, %v", got, err)
			}
		})
	}
}

func TestKilledPodIsRestarted(t *testing.T) {
	g := gomega.NewWithT(t)
	b := bed(t)
	client, namespace := clientOf(t, b), b.Namespace(t)
	run(t, client, namespace, server("server", ""))
	g.Expect(b.KillPod(t.Context(), namespace, "server")).To(gomega.Succeed())
	g.Eventually(func() (int32, error) {
		p, err := client.CoreV1().Pods(namespace).Get(t.Context(), "server", metav1.GetOptions{})
		if err != nil || condition(p) != "Ready" {
			return 0, err
		}
		return p.Status.ContainerStatuses[0].RestartCount, nil
	}, patience, 100*time.Millisecond).Should(gomega.BeEquivalentTo(1))
}

func TestLostNodeReturns(t *testing.T) {
	g := gomega.NewWithT(t)
	b := bed(t)
	client, namespace := clientOf(t, b), b.Namespace(t)
	address := expose(t, client, namespace)
	run(t, client, namespace, server("here", "node-1"))
	lost := run(t, client, namespace, server("lost", "node-2"))
	g.Expect(b.Lose(t.Context(), 2)).To(gomega.Succeed())
	g.Expect(b.Lose(t.Context(), 2)).To(gomega.MatchError(nodes.ErrState))
	g.Expect(b.Lost()).To(gomega.Equal([]int{2}))
	_, err := get(t, nodes.Client, podURL(lost)+"/etc/hostname")()
	g.Expect(err).To(gomega.HaveOccurred(), "a pod on a node without power answers")

	g.Eventually(func() (corev1.ConditionStatus, error) {
		node, err := client.CoreV1().Nodes().Get(t.Context(), "node-2", metav1.GetOptions{})
		return ready(node), err
	}, patience, 100*time.Millisecond).Should(gomega.Equal(corev1.ConditionUnknown))
	// The node's endpoint is removed with it, and the client only reaches the other.
	g.Eventually(get(t, nodes.Client, address+"/etc/hostname"), patience, 100*time.Millisecond).Should(gomega.Equal("here"))

	g.Expect(b.Return(t.Context(), 2)).To(gomega.Succeed())
	g.Expect(b.Lost()).To(gomega.BeEmpty())
	run(t, client, namespace, server("again", "node-2"))
	g.Expect(b.Err()).To(gomega.Succeed())
}

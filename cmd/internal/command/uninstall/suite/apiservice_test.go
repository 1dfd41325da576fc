package suite_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// deletion is the time in which a namespace can be deleted after the product was uninstalled.
const deletion = time.Minute

// packageServing is a cluster on which a process serves PackageManifests.
type packageServing struct {
	*cluster

	// deployment is the name of the Deployment and of the ServiceAccount of the process, and service is that of its Service.
	deployment, service string
	// flag is a flag of the process.
	flag string
}

// serving returns a cluster on which a supervisor serves PackageManifests.
func serving(c *cluster) packageServing {
	return packageServing{c, "chandlery-supervisor", "chandlery-packagemanifests-service", "--packagemanifests=auto"}
}

// servingApart returns a cluster on which the component packagemanifests serves PackageManifests.
func servingApart(c *cluster) packageServing {
	return packageServing{c, "chandlery-packageserver", "chandlery-packageserver-service", "--packagemanifests=only"}
}

// TestUninstallingLeavesNoAPIService uninstalls a supervisor that serves PackageManifests, $UNINSTALLS times in each
// documented way and by the deletion of its namespace; once only with kubectl and by that deletion. It uninstalls the
// component packagemanifests with the command. An APIService without a server would block the deletion of the namespace
// of others.
func TestUninstallingLeavesNoAPIService(t *testing.T) {
	c := preparedCluster(t)
	serving(c).emptyNodes()
	all := append(ways(), way{
		"namespace", ways()[0].install, func(c *cluster) { c.kubectl("delete", "namespace", home) }, false,
	})
	times := testenv.Uninstalls(t)
	if times == 1 {
		all = []way{all[0], all[len(all)-1]}
	}
	run := func(w way, serving func(*cluster) packageServing) {
		for n := range times {
			t.Run(fmt.Sprintf("%s %d", w.name, n+1), func(t *testing.T) {
				sub := *c
				sub.t, sub.WithT = t, gomega.NewWithT(t)
				serving(&sub).leavesNoAPIService(w)
			})
		}
	}
	for _, w := range all {
		run(w, serving)
	}
	run(way{"component", installWithComponent, uninstallWithoutDelay, false}, servingApart)
	leaves(t, prerequisites)
}

// installWithComponent installs the product with the component packagemanifests.
func installWithComponent(c *cluster) {
	c.t.Helper()
	dir := c.t.TempDir()
	deploy, err := filepath.Rel(dir, c.deploy())
	c.Expect(err).NotTo(gomega.HaveOccurred())
	text := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", deploy, filepath.Join(deploy, "components", "packagemanifests"))
	c.Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)).To(gomega.Succeed())
	c.kubectl("apply", "-k", dir)
	for _, name := range []string{"chandlery-packageserver", "chandlery-supervisor"} {
		c.kubectl("wait", "--for=create", "--timeout", patience.String(), "-n", home, "pod", "-l", "app.kubernetes.io/name="+name)
	}
}

// uninstallWithoutDelay uninstalls the product with the command, which must not wait for pods whose Deployment exists.
func uninstallWithoutDelay(c *cluster) {
	c.t.Helper()
	begun := time.Now()
	c.chandlery(0, "uninstall", "--yes")
	if took := time.Since(begun); took >= patience {
		c.t.Errorf("it took %s, the limit of a wait for pods", took)
	}
}

// leavesNoAPIService installs the product and uninstalls it.
func (c packageServing) leavesNoAPIService(w way) {
	c.t.Helper()
	w.install(c.cluster)
	c.servePackages()
	c.Eventually(c.available, patience, polling).Should(gomega.Succeed())
	bystander := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bystander-"}}
	c.Expect(c.Create(c.t.Context(), bystander)).To(gomega.Succeed())

	stopped := c.stopWithDeployment()
	w.uninstall(c.cluster)
	if err := <-stopped; err != nil {
		c.t.Error(err)
	}
	c.supervisor = nil
	begun := time.Now()
	c.Expect(c.Delete(c.t.Context(), bystander)).To(gomega.Succeed())
	c.Eventually(func() bool {
		return apierrors.IsNotFound(c.Get(c.t.Context(), client.ObjectKeyFromObject(bystander), bystander))
	}, deletion, polling).Should(gomega.BeTrue(), "the namespace is still there")
	c.t.Logf("the namespace was deleted within %s", time.Since(begun).Round(10*time.Millisecond))
	live := apiService()
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(live), live); !apierrors.IsNotFound(err) {
		c.t.Errorf("APIService %s exists: %v", live.GetName(), err)
	}
	c.kubectl("delete", "-k", c.deploy(), "--ignore-not-found")
}

// apiService returns the APIService of PackageManifests.
func apiService() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiregistration.k8s.io/v1")
	u.SetKind("APIService")
	u.SetName("v1.packages.operators.coreos.com")
	return u
}

// available returns an error until the API server forwards requests for PackageManifests.
func (c packageServing) available() error {
	live := apiService()
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		return err
	}
	if ok, _, why := webhook.Available(live); !ok {
		return fmt.Errorf("APIService %s is not available: %s", live.GetName(), why)
	}
	return nil
}

// emptyNodes keeps pods from the simulated nodes until the test ends. Services would lead to the pods, which run nothing.
func (c packageServing) emptyNodes() {
	c.t.Helper()
	var nodes corev1.NodeList
	c.Expect(c.List(c.t.Context(), &nodes)).To(gomega.Succeed())
	for i := range nodes.Items {
		c.kubectl("cordon", nodes.Items[i].Name)
		c.t.Cleanup(func() { c.kubectlAtEnd("uncordon", nodes.Items[i].Name) })
	}
}

// servePackages runs the process as in a pod, and adds its endpoint to the Service of PackageManifests.
func (c packageServing) servePackages() {
	c.t.Helper()
	host := ports.MachineAddress(c.t)
	_, port, err := net.SplitHostPort(ports.Address(c.t))
	c.Expect(err).NotTo(gomega.HaveOccurred())
	number, err := strconv.ParseInt(port, 10, 32)
	c.Expect(err).NotTo(gomega.HaveOccurred())
	service := &corev1.Service{}
	c.Expect(c.Get(c.t.Context(), client.ObjectKey{Namespace: home, Name: c.service}, service)).To(gomega.Succeed())
	c.Expect(c.Create(c.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: home, GenerateName: service.Name + "-", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("packages"), Port: new(int32(number)), Protocol: new(corev1.ProtocolTCP)}},
	})).To(gomega.Succeed())
	kubeconfig, err := c.cp.NewKubeconfig("system:serviceaccount:"+home+":"+c.deployment, "system:serviceaccounts", "system:serviceaccounts:"+home)
	c.Expect(err).NotTo(gomega.HaveOccurred())
	c.supervisor = programs.StartInPod(c.t, "supervisor", home, program("supervisor"), "run", "--kubeconfig", kubeconfig,
		"--metrics-address=0", "--health-address=0", "--packagemanifests-address", net.JoinHostPort(host, port), c.flag)
}

// stopWithDeployment stops the process when its Deployment has been deleted, as the kubelet does, and returns the result.
func (c packageServing) stopWithDeployment() <-chan error {
	stopped := make(chan error, 1)
	running, ctx := c.supervisor, c.t.Context()
	key := client.ObjectKey{Namespace: home, Name: c.deployment}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := pause.Until(ctx, polling, func() string {
			if apierrors.IsNotFound(c.Get(ctx, key, &appsv1.Deployment{})) {
				return ""
			}
			return "the Deployment exists"
		})
		if err == nil {
			// Its permissions may be deleted before, so any exit code is right.
			_ = running.Stop(patience)
		}
		stopped <- err
	}()
	return stopped
}

// kubectlAtEnd runs kubectl after the end of the test.
func (c packageServing) kubectlAtEnd(args ...string) {
	c.t.Helper()
	ctx := context.WithoutCancel(c.t.Context())
	if out, err := exec.CommandContext(ctx, c.cp.Kubectl(), append([]string{"--kubeconfig", c.cp.Kubeconfig()}, args...)...).CombinedOutput(); err != nil {
		c.t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

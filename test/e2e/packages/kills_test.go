package packages_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	service = "chandlery-packagemanifests-service"
	// noticed is the time within which the API server uses a changed EndpointSlice.
	noticed = time.Second
	// span is the time in which no call may fail after the Service has moved.
	span = 5 * time.Second
	// packageCount is the number of packages.
	packageCount = 30
)

// scene is a control plane with two supervisors that serve PackageManifests.
type scene struct {
	*testenv.World

	// pods are the supervisors by identity.
	pods map[string]*pod
}

// pod is a supervisor with the files of a pod. The test does what the kubelet does: it marks the endpoint.
type pod struct {
	identity, health, metrics string
	args                      []string
	process                   *process.Process
}

// TestKilledSupervisors kills the supervisor that leads, then the one that does not. While clients call every 100 ms, none of
// their calls fails after the Service has moved. None fails after the killed supervisor has returned, either.
func TestKilledSupervisors(t *testing.T) {
	s := open(t)
	calls := startClients(t, s.Namespace, packageCount)
	testenv.Until(t, testenv.Patience, "calls of both supervisors to succeed", func(context.Context) string {
		if failed := calls.failed(time.Now().Add(-span)); len(failed) > 0 {
			return failed[len(failed)-1].err.Error()
		}
		return lackOf(len(calls.since(time.Now().Add(-span))), clientCount)
	})
	s.loses(calls, s.leader(""))
	s.loses(calls, s.standby())
}

// loses kills a supervisor, removes its endpoint from the Service, and starts it again.
func (s *scene) loses(calls *clients, p *pod) {
	s.T.Helper()
	led, begun := s.leader("") == p, time.Now()
	if err := p.process.Kill(); err != nil {
		s.T.Fatal(err)
	}
	testenv.Until(s.T, testenv.Patience, "a call of "+p.identity+" to fail", func(context.Context) string {
		return lackOf(len(calls.failed(begun)), 1)
	})
	moved := s.mark(p, false)
	if led {
		s.leader(p.identity)
	}
	s.serves(calls, moved, p.identity+" was killed")
	s.start(p)
	s.mark(p, true)
	s.serves(calls, moved, p.identity+" returned")
	s.T.Logf("%s (leader: %t): %d of %d calls failed until the Service moved, %s after the kill", p.identity, led, len(calls.failed(begun)), len(calls.since(begun)),
		moved.Sub(begun).Round(time.Millisecond))
}

// serves waits for a span of calls, and checks that no call has failed since the Service moved.
func (s *scene) serves(calls *clients, moved time.Time, after string) {
	s.T.Helper()
	from, now := moved.Add(noticed), time.Now()
	testenv.Until(s.T, testenv.Patience, "calls after "+after, func(context.Context) string {
		made := calls.since(now.Add(noticed))
		if len(made) == 0 || made[len(made)-1].begun.Sub(made[0].begun) < span {
			return fmt.Sprintf("%d calls", len(made))
		}
		return ""
	})
	if failed := calls.failed(from); len(failed) > 0 {
		s.T.Errorf("%s: %d of %d calls failed, the first %s after the Service had moved: %v",
			after, len(failed), len(calls.since(from)), failed[0].begun.Sub(moved), failed[0].err)
	}
}

func lackOf(n, want int) string {
	if n >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d calls", n, want)
}

// open starts two supervisors and a catalog, and waits until the API server forwards requests to both.
func open(t *testing.T) *scene {
	t.Helper()
	s := &scene{World: testenv.New(t), pods: map[string]*pod{}}
	deployment := fixtures.Deployment(home, "chandlery-supervisor", "supervisor")
	deployment.Spec.Replicas = new(int32(2))
	s.Create(deployment, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: service},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "packages", Port: 443, TargetPort: intstr.FromString("packages")}}},
	})
	s.Create(fixtures.ServedCatalog(s.Namespace, "shop", fakecatalog.StartExtended(t, packages()...).Address()))
	kubeconfig, err := controlplane.Get(t).NewKubeconfig("system:serviceaccount:"+home+":chandlery-supervisor", "system:serviceaccounts", "system:serviceaccounts:"+home)
	if err != nil {
		t.Fatal(err)
	}
	for _, identity := range []string{"one", "two"} {
		s.add(identity, kubeconfig)
	}
	for _, p := range s.pods {
		s.start(p)
		s.mark(p, true)
	}
	return s
}

// packages returns the packages of the catalog.
func packages() []fakecatalog.Package {
	var all []fakecatalog.Package
	for n := range packageCount {
		name := fmt.Sprintf("lamp%d", n)
		all = append(all, fakecatalog.Simple(name, fakecatalog.Entry{
			Name: name + ".v1", Version: "1.0.0",
			Objects: []string{fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"%s.v1"},"spec":{"version":"1.0.0"}}`, name)},
		}))
	}
	return all
}

// add creates the endpoint of a supervisor, which is not ready.
func (s *scene) add(identity, kubeconfig string) {
	s.T.Helper()
	host := ports.MachineAddress(s.T)
	_, port, err := net.SplitHostPort(ports.Address(s.T))
	if err != nil {
		s.T.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		s.T.Fatal(err)
	}
	slice := s.slice(identity)
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	slice.AddressType = discoveryv1.AddressTypeIPv4
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("packages"), Port: new(int32(number)), Protocol: new(corev1.ProtocolTCP)}}
	s.Create(slice)
	health, metrics := ports.Address(s.T), ports.Address(s.T)
	s.pods[identity] = &pod{identity: identity, health: health, metrics: metrics, args: []string{
		"run", "--kubeconfig", kubeconfig, "--identity", identity, "--metrics-address", metrics, "--health-address", health,
		"--packagemanifests-address", net.JoinHostPort(host, port), "--catalog-refresh-interval", "1s",
	}}
}

func (*scene) slice(identity string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "supervisor-" + identity}}
}

// start runs a supervisor, and waits until it is ready.
func (s *scene) start(p *pod) {
	s.T.Helper()
	p.process = programs.StartInPod(s.T, p.identity, home, filepath.Join(bin, "supervisor"), p.args...)
	s.probes(p, http.StatusOK)
}

// probes waits until the probe of readiness of a supervisor has a status.
func (s *scene) probes(p *pod, want int) {
	s.T.Helper()
	testenv.Until(s.T, testenv.Patience, "the probe of "+p.identity+" to change", func(ctx context.Context) string {
		if err := p.process.Unexpected(); err != nil {
			s.T.Fatal(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", http.NoBody)
		if err != nil {
			return err.Error()
		}
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		_ = reply.Body.Close()
		if reply.StatusCode != want {
			return reply.Status
		}
		return ""
	})
}

// mark sets whether the endpoint of a supervisor is ready, and returns the time afterwards.
func (s *scene) mark(p *pod, ready bool) time.Time {
	s.T.Helper()
	slice := s.slice(p.identity)
	s.Modify(slice, func() { slice.Endpoints[0].Conditions.Ready = &ready })
	return time.Now()
}

// leader waits until a supervisor leads that has not this identity, and returns it.
func (s *scene) leader(not string) (leading *pod) {
	s.T.Helper()
	testenv.Until(s.T, testenv.Patience, "a leader", func(ctx context.Context) string {
		lease := &coordinationv1.Lease{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
			return err.Error()
		}
		holder := supervisor.IdentityOf(ptr.Deref(lease.Spec.HolderIdentity, ""))
		leading = s.pods[holder]
		if leading == nil || holder == not {
			return fmt.Sprintf("%q leads", holder)
		}
		return ""
	})
	return leading
}

// standby returns the supervisor that does not lead.
func (s *scene) standby() *pod {
	s.T.Helper()
	leading := s.leader("")
	for _, p := range s.pods {
		if p != leading {
			return p
		}
	}
	s.T.Fatal("there is only one supervisor")
	return nil
}

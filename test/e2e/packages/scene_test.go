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
	// packageCount is the number of packages.
	packageCount = 30
)

// scene is a control plane with supervisors that serve PackageManifests.
type scene struct {
	*testenv.World

	// catalog has the packages.
	catalog *fakecatalog.Server
	// pods are the supervisors by identity.
	pods map[string]*pod
}

// pod is a supervisor with the files of a pod. The test does what the kubelet does: it marks the endpoint.
type pod struct {
	identity, health, metrics string
	args                      []string
	process                   *process.Process
}

// open starts two supervisors and a catalog, and waits until the API server forwards requests to both.
func open(t *testing.T) *scene {
	t.Helper()
	catalog := fakecatalog.StartExtended(t, packages(1)...)
	s := openWith(t, catalog.Address(), "one", "two")
	s.catalog = catalog
	return s
}

// openWith starts supervisors that read the catalog at an address.
func openWith(t *testing.T, address string, identities ...string) *scene {
	t.Helper()
	s := &scene{World: testenv.New(t), pods: map[string]*pod{}}
	deployment := fixtures.Deployment(home, "chandlery-supervisor", "supervisor")
	deployment.Spec.Replicas = new(int32(len(identities)))
	s.Create(deployment, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: service},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "packages", Port: 443, TargetPort: intstr.FromString("packages")}}},
	})
	s.Create(fixtures.ServedCatalog(s.Namespace, "shop", address))
	kubeconfig, err := controlplane.Get(t).NewKubeconfig("system:serviceaccount:"+home+":chandlery-supervisor", "system:serviceaccounts", "system:serviceaccounts:"+home)
	if err != nil {
		t.Fatal(err)
	}
	for _, identity := range identities {
		s.add(identity, kubeconfig)
	}
	for _, p := range s.pods {
		s.start(p)
		s.mark(p, true)
	}
	return s
}

// packages returns the packages of the catalog, with one bundle each.
func packages(version int) []fakecatalog.Package {
	var all []fakecatalog.Package
	for n := range packageCount {
		name, number := fmt.Sprintf("lamp%d", n), fmt.Sprintf("%d.0.0", version)
		all = append(all, fakecatalog.Simple(name, fakecatalog.Entry{
			Name: name + ".v" + number, Version: number,
			Objects: []string{fmt.Sprintf(
				`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"%s.v%s"},"spec":{"version":%q}}`, name, number, number)},
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
	s.run(p)
	s.probes(p, http.StatusOK)
}

// run runs a supervisor.
func (s *scene) run(p *pod) {
	s.T.Helper()
	p.process = programs.StartInPod(s.T, p.identity, home, filepath.Join(bin, "supervisor"), p.args...)
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

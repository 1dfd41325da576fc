package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

const (
	// home is the namespace of the catalog and of the servers.
	home = "olm"
	// catalog is the name of the CatalogSource.
	catalog = "community"
	// patience bounds every wait, and grace how long a process may take to stop.
	patience = 10 * time.Minute
	grace    = 30 * time.Second
	polling  = 200 * time.Millisecond
)

// scene is a control plane with a catalog of 331 packages.
type scene struct {
	options

	dir, host string
	plane     *controlplane.ControlPlane
	client    client.Client
	// paths sends requests without a limit of their rate.
	paths    rest.Interface
	registry *process.Process
}

// setUp starts the control plane and the catalog. The returned function stops everything.
func setUp(ctx context.Context, o options, dir string) (_ *scene, tearDown func() error, err error) {
	ctrllog.SetLogger(logr.Discard())
	host, err := machineAddress()
	if err != nil {
		return nil, nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{Nodes: -1})
	if err != nil {
		return nil, nil, err
	}
	s := &scene{options: o, dir: dir, host: host, plane: plane}
	tearDown = func() error {
		var failure error
		if s.registry != nil {
			failure = s.registry.Stop(grace)
		}
		return errors.Join(failure, plane.Stop())
	}
	if err := s.furnish(ctx); err != nil {
		return nil, nil, errors.Join(err, tearDown())
	}
	return s, tearDown, nil
}

// furnish makes the clients, and creates the kinds, the namespace and the catalog.
func (s *scene) furnish(ctx context.Context) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.New(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	typed, err := kubernetes.NewForConfig(s.plane.Config())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	s.paths = typed.RESTClient()
	if err := programs.InstallCRDs(ctx, filepath.Join(s.dir, "supervisor"), s.plane.Kubeconfig()); err != nil {
		return err
	}
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", home, err)
	}
	return s.addCatalog(ctx)
}

// addCatalog serves the real catalog and creates its CatalogSource. OLM's package server reads no catalog whose status lacks
// the address.
func (s *scene) addCatalog(ctx context.Context) error {
	content, err := realcatalogs.Find(ctx, realcatalogs.Metadata)
	if err != nil {
		return fmt.Errorf("finding the catalog: %w", err)
	}
	port, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	s.registry, err = process.Start(ctx, process.Spec{
		Name: "registry", Path: filepath.Join(s.dir, "registry"), Log: filepath.Join(s.dir, "registry.log"),
		Args: []string{
			"serve", content, "--host", "127.0.0.1", "--port", strconv.Itoa(port.Number),
			"--metrics-address", "0", "--pprof-addr", "0", "--termination-log", "",
		},
	})
	if err != nil {
		return err
	}
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: catalog},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: port.Address(), DisplayName: "Community"},
	}
	if err := s.client.Create(ctx, source); err != nil {
		return fmt.Errorf("creating the CatalogSource: %w", err)
	}
	now := metav1.Now()
	source.Status.RegistryServiceStatus = &operatorsv1alpha1.RegistryServiceStatus{
		Protocol: "grpc", ServiceName: source.Name, ServiceNamespace: home, Port: strconv.Itoa(port.Number), CreatedAt: now,
	}
	if err := s.client.Status().Update(ctx, source); err != nil {
		return fmt.Errorf("writing the status of the CatalogSource: %w", err)
	}
	return nil
}

// machineAddress returns an address of this machine that endpoints may have, which excludes loopback addresses.
func machineAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("listing the addresses of this machine: %w", err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no IPv4 address but that of the loopback interface; connect it to a network")
}

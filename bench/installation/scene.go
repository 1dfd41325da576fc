package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// catalogNamespace and catalogName name the only catalog.
	catalogNamespace, catalogName = "olm", "bench"
	// patience bounds every wait.
	patience = 2 * time.Minute
	// polling is the interval between checks of a condition that is not measured.
	polling = 100 * time.Millisecond
)

// scene is the measured supervisor with its environment.
type scene struct {
	dir, catalog string
	plane        *controlplane.ControlPlane
	client       client.WithWatch
	// api reads the metrics of the API server.
	api        *http.Client
	images     string
	running    []*process.Process
	supervisor *process.Process
	metrics    string
}

// setUp starts a control plane and an image registry. The returned function stops everything.
func setUp(ctx context.Context, dir string) (_ *scene, tearDown func() error, err error) {
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, nil, err
	}
	s := &scene{dir: dir, catalog: filepath.Join(dir, "catalog"), plane: plane}
	images, err := s.serveImages(ctx)
	tearDown = func() error { return errors.Join(s.stop(), images.Close(), plane.Stop()) }
	if err == nil {
		err = s.connect(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, tearDown())
	}
	return s, tearDown, nil
}

// serveImages starts an image registry over plain HTTP.
func (s *scene) serveImages(ctx context.Context) (*http.Server, error) {
	server := &http.Server{
		Handler:           ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: patience,
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return server, fmt.Errorf("starting a registry of images: %w", err)
	}
	s.images = listener.Addr().String()
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

// connect creates the clients and installs the kinds.
func (s *scene) connect(ctx context.Context) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.NewWithWatch(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if s.api, err = rest.HTTPClientFor(s.plane.Config()); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := programs.InstallCRDs(ctx, filepath.Join(s.dir, "supervisor"), s.plane.Kubeconfig()); err != nil {
		return err
	}
	if err := os.Mkdir(s.catalog, 0o755); err != nil {
		return fmt.Errorf("making a folder for the catalog: %w", err)
	}
	return s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: catalogNamespace}})
}

// begin starts the registry that serves the catalog and the supervisor. It waits until the
// supervisor has read the catalog.
func (s *scene) begin(ctx context.Context) error {
	address, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	metrics, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	s.metrics = metrics.Address()
	if _, err := s.start(ctx, "registry", "serve", s.catalog, "--host", "127.0.0.1", "--port", strconv.Itoa(address.Number),
		"--metrics-address", "0", "--termination-log", ""); err != nil {
		return err
	}
	if s.supervisor, err = s.start(ctx, "supervisor", "run", "--kubeconfig", s.plane.Kubeconfig(), "--leader-election-namespace", catalogNamespace,
		"--image-plain-http", "--metrics-address", s.metrics, "--health-address", "0"); err != nil {
		return err
	}
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: catalogNamespace, Name: catalogName},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address.Address()},
	}
	if err := s.create(ctx, source); err != nil {
		return err
	}
	return s.await(ctx, "the catalog to be READY", func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(source), source)
		state := source.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY", err
	})
}

func (s *scene) start(ctx context.Context, program string, args ...string) (*process.Process, error) {
	p, err := process.Start(ctx, process.Spec{
		Name: program, Path: filepath.Join(s.dir, program), Args: args, Log: filepath.Join(s.dir, program+".log"),
	})
	if err == nil {
		s.running = append(s.running, p)
	}
	return p, err
}

// stop stops the programs, the last one first.
func (s *scene) stop() error {
	const grace = 10 * time.Second
	var failures []error
	for _, p := range slices.Backward(s.running) {
		failures = append(failures, p.Stop(grace))
	}
	if s.api != nil {
		s.api.CloseIdleConnections()
	}
	return errors.Join(failures...)
}

// prepare creates namespaces and waits until Kubernetes has created its default objects in them.
func (s *scene) prepare(ctx context.Context, namespaces []string) error {
	for _, n := range namespaces {
		if err := s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}); err != nil {
			return err
		}
	}
	for _, n := range namespaces {
		err := s.await(ctx, "the ServiceAccount of namespace "+n, func(ctx context.Context) (bool, error) {
			err := s.client.Get(ctx, client.ObjectKey{Namespace: n, Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// group creates the OperatorGroup of a namespace.
func (s *scene) group(ctx context.Context, namespace string) error {
	return s.create(ctx, &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	})
}

// subscribe creates a Subscription with the name of the namespace.
func (s *scene) subscribe(ctx context.Context, namespace, pkg string) error {
	return s.create(ctx, &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: pkg, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace,
		},
	})
}

func (s *scene) create(ctx context.Context, o client.Object) error {
	if err := s.client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// await waits until a condition holds.
func (s *scene) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		if s.supervisor != nil {
			err = errors.Join(err, s.supervisor.Unexpected())
		}
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

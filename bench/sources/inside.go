package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

// podAddresses are the addresses that kwok assigns to pods.
const podAddresses = "10.0.0.0/16"

// image is never pulled, because kwok pulls no images. With a digest, the supervisor need not resolve it.
const image = "registry.invalid/catalog@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// patience bounds the wait until the sources are read.
const patience = 10 * time.Minute

// scene is the measured supervisor with its environment.
type scene struct {
	o          options
	out        io.Writer
	dir        string
	client     client.Client
	plane      *controlplane.ControlPlane
	supervisor *process.Process
	metrics    string
}

// inside measures in a network namespace without any configuration.
func inside(ctx context.Context, o options) (err error) {
	log.SetLogger(logr.Discard())
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"route", "add", "local", podAddresses, "dev", "lo"},
	} {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v (of Debian's iproute2): %w: %s", args, err, out)
		}
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for logs: %w", err)
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	s := &scene{o: o, out: os.Stdout, dir: dir, plane: plane}
	if err := s.setUp(ctx); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	if err := s.measure(ctx); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	return os.RemoveAll(dir)
}

// setUp starts the registry that answers for every pod, and the supervisor.
func (s *scene) setUp(ctx context.Context) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.New(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := programs.InstallCRDs(ctx, filepath.Join(s.o.bin, "supervisor"), s.plane.Kubeconfig()); err != nil {
		return err
	}
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	catalog, err := buildcache.SourceDir("examples/catalog")
	if err != nil {
		return err
	}
	if _, err := s.start(ctx, "registry", "serve", catalog, "--metrics-address", "0", "--termination-log", "", "--max-connections", "0"); err != nil {
		return err
	}
	port, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	s.metrics = net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Number))
	s.supervisor, err = s.start(ctx, "supervisor", "run", "--kubeconfig", s.plane.Kubeconfig(), "--leader-election-namespace", "olm",
		"--metrics-address", s.metrics, "--health-address", "0")
	return err
}

func (s *scene) start(ctx context.Context, program string, args ...string) (*process.Process, error) {
	return process.Start(ctx, process.Spec{
		Name: program, Path: filepath.Join(s.o.bin, program), Args: args, Log: filepath.Join(s.dir, program+".log"),
	})
}

// measure measures memory with few and with many sources, and then the writes while idle.
func (s *scene) measure(ctx context.Context) error {
	if err := s.add(ctx, 0, s.o.first); err != nil {
		return err
	}
	few, err := s.memory(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := s.add(ctx, s.o.first, s.o.first+s.o.sources); err != nil {
		return err
	}
	ready := time.Since(begun)
	many, err := s.memory(ctx)
	if err != nil {
		return err
	}
	before, err := s.requests(ctx)
	if err != nil {
		return err
	}
	if err := s.pause(ctx, s.o.span); err != nil {
		return err
	}
	after, err := s.requests(ctx)
	if err != nil {
		return err
	}
	total := s.o.first + s.o.sources
	s.table([][2]string{
		{fmt.Sprintf("%d sources, from their creation until all are READY", s.o.sources), fmt.Sprintf("%.0f s", ready.Seconds())},
		{fmt.Sprintf("private memory with %d sources", s.o.first), fmt.Sprintf("%.1f MiB", mebi(few))},
		{fmt.Sprintf("private memory with %d sources", total), fmt.Sprintf("%.1f MiB", mebi(many))},
		{"growth for each source, with connections to two replicas and a small snapshot", fmt.Sprintf("%.0f kB", float64(many-few)/float64(s.o.sources)/1000)},
		{fmt.Sprintf("writes in %s with %d sources, apart from the Lease", s.o.span, total), strconv.Itoa(after.writes - before.writes)},
		{"renewals of the Lease meanwhile", strconv.Itoa(after.renewals - before.renewals)},
	})
	return nil
}

// table prints figures as a table for a document.
func (s *scene) table(rows [][2]string) {
	fmt.Fprintln(s.out, "| Figure | Value |\n|---|---|")
	for _, row := range rows {
		fmt.Fprintf(s.out, "| %s | %s |\n", row[0], row[1])
	}
}

// add creates sources and waits until every one is READY.
func (s *scene) add(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		source := &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: fmt.Sprintf("catalog-%03d", i)},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image},
		}
		if err := s.client.Create(ctx, source); err != nil {
			return fmt.Errorf("creating CatalogSource %s: %w", source.Name, err)
		}
	}
	ready := 0
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list := catalogs.NewList()
		if err := s.client.List(ctx, list, client.InNamespace("olm")); err != nil {
			return false, fmt.Errorf("listing CatalogSources: %w", err)
		}
		ready = 0
		for i := range list.Items {
			source, err := catalogs.Decode(&list.Items[i])
			if err != nil {
				return false, err
			}
			if state := source.Status.GRPCConnectionState; state != nil && state.LastObservedState == "READY" {
				ready++
			}
		}
		return ready == to, s.supervisor.Unexpected()
	})
	if err != nil {
		return fmt.Errorf("waiting for %d sources to be READY, of which %d are: %w", to, ready, err)
	}
	return nil
}

func (s *scene) pause(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(span):
		return nil
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// namespace has the catalog and the operator.
	namespace = "bench"
	// patience bounds every wait, and polling is the interval between two reads.
	patience = 2 * time.Minute
	polling  = 10 * time.Millisecond
)

// figure is what is measured of a pair of programs.
type figure int

const (
	supervisorBinary figure = iota
	registryBinary
	supervisorRSS
	supervisorPrivate
	registryRSS
	succeeded
	figures
)

// values are figures: bytes, and nanoseconds for succeeded.
type values [figures]int64

// measureAll measures both folders of programs in each round.
func measureAll(ctx context.Context, bins [2]string, catalog string, rounds int, settle time.Duration) (all [2][]values, err error) {
	log.SetLogger(logr.Discard())
	for round := range rounds {
		for i, bin := range bins {
			found, err := measure(ctx, bin, catalog, settle)
			if err != nil {
				return all, fmt.Errorf("round %d of %s: %w", round+1, filepath.Base(bin), err)
			}
			all[i] = append(all[i], found)
			fmt.Fprintf(os.Stderr, "round %d of %s: %v\n", round+1, filepath.Base(bin), found)
		}
	}
	return all, nil
}

// run is a supervisor and a registry with their control plane.
type run struct {
	client               client.Client
	supervisor, registry *process.Process
}

// measure runs the programs of a folder once.
func measure(ctx context.Context, bin, catalog string, settle time.Duration) (found values, err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	r := &run{}
	defer func() {
		for _, p := range []*process.Process{r.supervisor, r.registry} {
			if p != nil {
				err = errors.Join(err, p.Stop(patience))
			}
		}
	}()
	if err := r.begin(ctx, plane, bin, catalog); err != nil {
		return found, err
	}
	took, err := r.install(ctx)
	if err != nil {
		return found, err
	}
	if !pause.For(ctx, settle) {
		return found, context.Cause(ctx)
	}
	found[succeeded] = took.Nanoseconds()
	for name, into := range map[string]figure{"supervisor": supervisorBinary, "registry": registryBinary} {
		info, err := os.Stat(filepath.Join(bin, name))
		if err != nil {
			return found, fmt.Errorf("reading the size of a program: %w", err)
		}
		found[into] = info.Size()
	}
	if found[supervisorRSS], err = memory(r.supervisor, "VmRSS:"); err == nil {
		found[supervisorPrivate], err = memory(r.supervisor, "RssAnon:")
	}
	if err == nil {
		found[registryRSS], err = memory(r.registry, "VmRSS:")
	}
	return found, err
}

// begin starts the programs, and waits until the supervisor has read the catalog.
func (r *run) begin(ctx context.Context, plane *controlplane.ControlPlane, bin, catalog string) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	if r.client, err = client.New(plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := programs.InstallCRDs(ctx, filepath.Join(bin, "supervisor"), plane.Kubeconfig()); err != nil {
		return err
	}
	address, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	contents := filepath.Join(bin, "contents")
	if err := os.RemoveAll(contents); err != nil {
		return fmt.Errorf("removing contents of catalogs: %w", err)
	}
	start := func(name string, args ...string) (*process.Process, error) {
		return process.Start(ctx, process.Spec{
			Name: name, Path: filepath.Join(bin, name), Args: args, Log: filepath.Join(bin, name+".log"),
			// An earlier supervisor may not know the flag.
			Env: append(os.Environ(), "SUPERVISOR_CATALOG_CACHE_DIR="+contents),
		})
	}
	if r.registry, err = start("registry", "serve", catalog, "--host=127.0.0.1", "--port="+strconv.Itoa(address.Number),
		"--metrics-address=0", "--pprof-addr=0", "--termination-log="); err != nil {
		return err
	}
	if r.supervisor, err = start("supervisor", "run", "--kubeconfig="+plane.Kubeconfig(), "--leader-election-namespace=default",
		"--metrics-address=0", "--health-address=0"); err != nil {
		return err
	}
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "catalog"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address.Address()},
	}
	if err := r.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, source); err != nil {
		return err
	}
	return r.await(ctx, "the catalog to be READY", func() string {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
			return err.Error()
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" {
			return fmt.Sprintf("%+v, %s", state, source.Status.Message)
		}
		return ""
	})
}

// install installs an operator, and returns how long it took until its version had succeeded.
func (r *run) install(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	if err := r.create(ctx,
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
		},
		&operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lantern"},
			Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "lantern", Channel: "stable", CatalogSource: "catalog", CatalogSourceNamespace: namespace},
		}); err != nil {
		return 0, err
	}
	err := r.await(ctx, "the version to succeed", func() string {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "lantern.v1.2.0"}, csv); err != nil {
			return err.Error()
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s: %s", csv.Status.Phase, csv.Status.Message)
		}
		return ""
	})
	return time.Since(begun), err
}

func (r *run) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := r.client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// await waits until left returns an empty text.
func (r *run) await(ctx context.Context, what string, left func() string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := pause.Until(ctx, polling, left); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, errors.Join(err, r.supervisor.Unexpected()))
	}
	return nil
}

// memory returns a number of /proc/PID/status in bytes.
func memory(p *process.Process, field string) (bytes int64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a program: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), field); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of a program: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("reading the memory of a program: no %s", field)
}

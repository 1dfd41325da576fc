package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// swaps is how often the content is replaced. Every brokenEvery-th content cannot be served.
	swaps       = 50
	brokenEvery = 10
	// restarts is how often a replica is restarted, in turn.
	restarts = 6
	// callers is the number of concurrent callers. They use as many connections as there are clients.
	callers = 8
	clients = 3
	// shortest is the duration without SOAK.
	shortest = "20s"
)

// serviceConfig configures balancing and retries according to gRPC's documentation.
const serviceConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{"service": "api.Registry"}],
    "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]}
  }]
}`

// bin is the folder with the program.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return m.Run()
	}, "./cmd/registry"))
}

func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), shortest))
	if err != nil {
		t.Fatalf("SOAK: %v", err)
	}
	dir := t.TempDir()
	write(t, dir, 1)
	replicas := []*replica{newReplica(t, "first", dir), newReplica(t, "second", dir)}

	load := startLoad(t, replicas)
	restarted := make(chan error, 1)
	go func() { restarted <- restart(t.Context(), replicas, length/2) }()
	exchange(t, dir, length/2, 1, nil)
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	// The resources at the end are compared with the current ones.
	load.pause(t)
	var before []usage
	for _, r := range replicas {
		before = append(before, r.usage(t))
	}
	load.resume()
	generation := exchange(t, dir, length/2, 1+swaps/2, replicas)
	load.pause(t)
	for i, r := range replicas {
		got, err := r.generation(t.Context())
		if err != nil || got != generation {
			t.Errorf("%s serves content %d (%v), want %d", r.name, got, err, generation)
		}
		// Connections close after a moment.
		after := r.usage(t)
		wait(t, fmt.Sprintf("%s to let go of everything: before %v, then %v", r.name, before[i], after), func(context.Context) bool {
			after = r.usage(t) //nolint:contextcheck // it ends with the test
			return !after.exceeds(before[i])
		})
		t.Logf("%s: before %v, after %d swaps %v", r.name, before[i], swaps/2, after)
	}
	load.report(t)
}

// exchange replaces the content half of the times, evenly over a duration, and returns the last
// generation. The replicas must serve each content before it is replaced.
func exchange(t *testing.T, dir string, length time.Duration, generation int, replicas []*replica) int {
	t.Helper()
	tick := time.NewTicker(length / (swaps / 2))
	defer tick.Stop()
	for range swaps / 2 {
		<-tick.C
		generation++
		// A program that starts with broken content exits, so broken content is only used while no
		// replica is restarted.
		if generation%brokenEvery == 0 && replicas != nil {
			replace(t, dir, `{"schema":"olm.package"`)
			<-tick.C
		}
		write(t, dir, generation)
		for _, r := range replicas {
			wait(t, fmt.Sprintf("%s to serve content %d", r.name, generation), func(ctx context.Context) bool {
				got, err := r.generation(ctx)
				return err == nil && got == generation
			})
		}
	}
	return generation
}

// restart restarts the replicas in turn, evenly over a duration.
func restart(ctx context.Context, replicas []*replica, length time.Duration) error {
	tick := time.NewTicker(length / (restarts + 1))
	defer tick.Stop()
	for i := range restarts {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := replicas[i%len(replicas)].restart(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load is the load of the clients.
type load struct {
	replicas []*replica
	calls    atomic.Int64
	streams  atomic.Int64
	slowest  atomic.Int64

	mu       sync.Mutex
	failures []string
	stop     context.CancelFunc
	group    sync.WaitGroup
	conns    []*grpc.ClientConn
	parent   context.Context
}

func startLoad(t *testing.T, replicas []*replica) *load {
	t.Helper()
	l := &load{replicas: replicas, parent: t.Context()}
	l.resume()
	t.Cleanup(func() { l.pause(t) })
	return l
}

// resume starts the calls.
func (l *load) resume() {
	var ctx context.Context
	ctx, l.stop = context.WithCancel(l.parent)
	for range clients {
		balanced := manual.NewBuilderWithScheme("soak")
		var addresses []resolver.Address
		for _, r := range l.replicas {
			addresses = append(addresses, resolver.Address{Addr: r.address})
		}
		balanced.InitialState(resolver.State{Addresses: addresses})
		conn, err := grpc.NewClient("soak:///registry", grpc.WithResolvers(balanced),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(serviceConfig))
		if err != nil {
			l.failf("connecting: %v", err)
			return
		}
		l.conns = append(l.conns, conn)
	}
	for i := range callers {
		client := api.NewRegistryClient(l.conns[i%clients])
		l.group.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.ask(ctx, client, n)
			}
		})
	}
}

// pause ends all calls and closes all connections.
func (l *load) pause(t *testing.T) {
	t.Helper()
	l.stop()
	l.group.Wait()
	for _, conn := range l.conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	l.conns = nil
}

func (l *load) failf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

// ask makes a call. Most request one bundle, some all bundles.
func (l *load) ask(ctx context.Context, client api.RegistryClient, n int) {
	begin := time.Now()
	var err error
	if n%20 == 0 {
		err = l.list(ctx, client)
		l.streams.Add(1)
	} else {
		var got *api.Bundle
		if got, err = client.GetBundle(ctx, request(n%numPackages)); err == nil {
			_, err = generationOf(got)
		}
		l.calls.Add(1)
	}
	// Calls that were canceled at the end of the test do not count.
	if err != nil && ctx.Err() == nil && status.Code(err) != codes.Canceled {
		l.failf("after %s: %v", time.Since(begin), err)
	}
	for took := int64(time.Since(begin)); ; {
		slowest := l.slowest.Load()
		if took <= slowest || l.slowest.CompareAndSwap(slowest, took) {
			return
		}
	}
}

var errMixture = errors.New("a stream is of two contents")

// list requests all bundles. They must be complete and belong to one content.
func (*load) list(ctx context.Context, client api.RegistryClient) error {
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return err
	}
	first := 0
	for n := 0; ; n++ {
		got, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if n != numPackages {
				return fmt.Errorf("%w: %d bundles, want %d", errMixture, n, numPackages)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("at bundle %d: %w", n, err)
		}
		generation, err := generationOf(got)
		if err != nil {
			return err
		}
		if first = cmp.Or(first, generation); first != generation {
			return fmt.Errorf("%w: %d and %d", errMixture, first, generation)
		}
	}
}

func (l *load) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d calls and %d streams, the slowest took %s; %d swaps, %d restarts", l.calls.Load(), l.streams.Load(),
		time.Duration(l.slowest.Load()), swaps, restarts)
	if l.calls.Load() == 0 || l.streams.Load() == 0 {
		t.Error("nothing was asked")
	}
	for _, failure := range l.failures[:min(len(l.failures), 20)] {
		t.Error(failure)
	}
	if len(l.failures) > 20 {
		t.Errorf("and %d more", len(l.failures)-20)
	}
}

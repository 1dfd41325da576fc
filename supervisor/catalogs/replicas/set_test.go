package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/test/forwarder"
)

const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(serverOnly) != "" {
		os.Exit(serveHealth(context.Background()))
	}
	goleak.VerifyTestMain(m)
}

// quick returns a probe for tests: fast, but with tolerance for a busy machine.
func quick() replicas.Probe {
	return replicas.Probe{Interval: 40 * time.Millisecond, Timeout: 500 * time.Millisecond, Threshold: 2}
}

// catalog is a replica under test.
type catalog struct {
	api.UnimplementedRegistryServer

	name     string
	address  string
	health   *health.Server
	server   *grpc.Server
	fail     atomic.Pointer[error]
	hang     atomic.Bool
	asked    atomic.Int64
	stopping func()
}

// serve starts a replica; without a health service if bare.
func serve(tb testing.TB, name string, bare bool) *catalog {
	tb.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &catalog{name: name, address: listener.Addr().String(), health: health.NewServer(), server: grpc.NewServer()}
	api.RegisterRegistryServer(c.server, c)
	if !bare {
		healthpb.RegisterHealthServer(c.server, c.health)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			tb.Errorf("serving: %v", err)
		}
	}()
	c.stopping = sync.OnceFunc(func() {
		c.server.Stop()
		<-ended
	})
	tb.Cleanup(c.stopping)
	return c
}

func (c *catalog) endpoint() replicas.Endpoint {
	return replicas.Endpoint{
		Address: c.address, Pod: types.NamespacedName{Namespace: "olm", Name: "shop-1-" + c.name}, UID: types.UID(c.name),
		Node: "node-" + c.name, Ready: true,
	}
}

// GetPackage returns the name of the replica.
func (c *catalog) GetPackage(ctx context.Context, _ *api.GetPackageRequest) (*api.Package, error) {
	c.asked.Add(1)
	if c.hang.Load() {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if err := c.fail.Load(); err != nil {
		return nil, *err
	}
	return &api.Package{Name: c.name}, nil
}

// bench is a Set under test.
type bench struct {
	*gomega.WithT

	set *replicas.Set
}

func newBench(t *testing.T, options replicas.Options, endpoints ...replicas.Endpoint) *bench {
	t.Helper()
	options.Clock = clock.RealClock{}
	set := replicas.NewSet(t.Context(), options)
	t.Cleanup(set.Close)
	set.Update(endpoints)
	return &bench{WithT: gomega.NewWithT(t), set: set}
}

func newNetwork(tb testing.TB) *replicas.Network {
	tb.Helper()
	network, err := replicas.NewNetwork()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := network.Close(); err != nil {
			tb.Error(err)
		}
	})
	return network
}

func probed(t *testing.T, endpoints ...replicas.Endpoint) *bench {
	t.Helper()
	return newBench(t, replicas.Options{Probe: quick(), Network: newNetwork(t)}, endpoints...)
}

// healths returns the health of each replica by node name.
func (b *bench) healths() map[string]replicas.Health {
	found := map[string]replicas.Health{}
	for _, s := range b.set.States() {
		found[s.Node] = s.Health
	}
	return found
}

func (b *bench) become(want map[string]replicas.Health) {
	b.Eventually(b.healths).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.Equal(want))
}

// ask makes a call and returns the name of the replica that answered.
func (b *bench) ask(ctx context.Context) (string, error) {
	var name string
	err := b.set.Do(ctx, func(ctx context.Context, conn replicas.Conn) error {
		reply, err := api.NewRegistryClient(conn).GetPackage(ctx, &api.GetPackageRequest{})
		name = reply.GetName()
		return err
	})
	return name, err
}

func TestSetKnowsWhatReplicasAnswer(t *testing.T) {
	good, bare, bad, dead := serve(t, "good", false), serve(t, "bare", true), serve(t, "bad", false), serve(t, "dead", false)
	bad.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	dead.stopping()
	b := probed(t, good.endpoint(), bare.endpoint(), bad.endpoint(), dead.endpoint())
	b.become(map[string]replicas.Health{
		"node-good": replicas.Serving, "node-bare": replicas.Serving, "node-bad": replicas.NotServing, "node-dead": replicas.Unreachable,
	})
	if got := b.set.Summary(); got.Connectivity != connectivity.Ready || got.Err != nil || got.Epoch != 2 {
		t.Errorf("summary %+v", got)
	}
	b.set.Update([]replicas.Endpoint{bad.endpoint(), dead.endpoint()})
	if got := b.set.Summary(); got.Connectivity != connectivity.TransientFailure || got.Err == nil || got.Epoch != 4 {
		t.Errorf("summary %+v", got)
	}
	bad.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	b.become(map[string]replicas.Health{"node-bad": replicas.Serving, "node-dead": replicas.Unreachable})
}

func TestSetTakesTurns(t *testing.T) {
	one, two := serve(t, "one", false), serve(t, "two", false)
	b := probed(t, one.endpoint(), two.endpoint())
	b.become(map[string]replicas.Health{"node-one": replicas.Serving, "node-two": replicas.Serving})
	for range 10 {
		if _, err := b.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if one.asked.Load() != 5 || two.asked.Load() != 5 {
		t.Errorf("asked %d and %d times", one.asked.Load(), two.asked.Load())
	}
}

func TestSetAsksTheNewestRevision(t *testing.T) {
	old, next := serve(t, "old", false), serve(t, "next", false)
	// All replicas join at once, in an order without meaning.
	born := time.Now()
	first, joined := old.endpoint(), next.endpoint()
	first.Revision, first.Created = "1", born
	joined.Revision, joined.Created, joined.Ready = "2", born.Add(time.Minute), false
	// A replaced pod of the old revision does not make that revision the newest.
	replaced := replicas.Endpoint{Address: "127.0.0.1:1", UID: "replaced", Node: "replaced", Revision: "1", Created: born.Add(time.Hour)}
	b := probed(t, joined, first, replaced)
	b.become(map[string]replicas.Health{"node-old": replicas.Serving, "node-next": replicas.Serving, "replaced": replicas.Unreachable})
	all := func(want string) {
		t.Helper()
		for range 4 {
			if got, err := b.ask(t.Context()); err != nil || got != want {
				t.Fatalf("%s answered (%v), want %s", got, err, want)
			}
		}
	}
	all("old")
	joined.Ready = true
	b.set.Update([]replicas.Endpoint{first, joined, replaced})
	all("next")
	joined.Terminating = true
	b.set.Update([]replicas.Endpoint{first, joined, replaced})
	all("old")
}

func TestDoGoesOnElsewhere(t *testing.T) {
	good, bad := serve(t, "good", false), serve(t, "bad", false)
	b := probed(t, good.endpoint(), bad.endpoint())
	b.become(map[string]replicas.Health{"node-good": replicas.Serving, "node-bad": replicas.Serving})
	fail := func(err error) { bad.fail.Store(&err) }
	everytime := func() error {
		for range 4 {
			if name, err := b.ask(t.Context()); err != nil || name != "good" {
				return fmt.Errorf("%s answered: %w", name, err)
			}
		}
		return nil
	}
	fail(status.Error(codes.Unavailable, "stopping"))
	if err := everytime(); err != nil {
		t.Error(err)
	}
	fail(status.Error(codes.NotFound, "no such package"))
	if err := everytime(); status.Code(err) != codes.NotFound {
		t.Errorf("error %v, want the server's own", err)
	}
	bad.stopping()
	if err := everytime(); err != nil {
		t.Error(err)
	}
	good.stopping()
	if _, err := b.ask(t.Context()); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want that none is there", err)
	}
	b.set.Update(nil)
	if _, err := b.ask(t.Context()); !errors.Is(err, replicas.ErrNone) {
		t.Errorf("error %v, want that there is none", err)
	}
	if got := b.set.Summary().Connectivity; got != connectivity.Connecting {
		t.Errorf("without endpoints: %s", got)
	}
}

func TestDoLeavesTheCallersDeadlineAlone(t *testing.T) {
	one, two := serve(t, "one", false), serve(t, "two", false)
	b := probed(t, one.endpoint(), two.endpoint())
	b.become(map[string]replicas.Health{"node-one": replicas.Serving, "node-two": replicas.Serving})
	one.hang.Store(true)
	two.hang.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.ask(ctx); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("error %v", err)
	}
	if n := one.asked.Load() + two.asked.Load(); n != 1 {
		t.Errorf("%d replicas were asked, want one", n)
	}
}

func TestDoCutsOffCallsToALostReplica(t *testing.T) {
	good, lost := serve(t, "good", false), serve(t, "lost", false)
	lost.hang.Store(true)
	w := forwarder.Start(t, lost.address)
	behind := lost.endpoint()
	behind.Address = w.Address
	b := probed(t, behind)
	b.become(map[string]replicas.Health{"node-lost": replicas.Serving})
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		name, err := b.ask(t.Context())
		answers <- answer{name: name, err: err}
	}()
	b.Eventually(lost.asked.Load).WithTimeout(patience).Should(gomega.BeEquivalentTo(1))
	b.set.Update([]replicas.Endpoint{behind, good.endpoint()})
	b.become(map[string]replicas.Health{"node-lost": replicas.Serving, "node-good": replicas.Serving})

	w.Stop()
	got := <-answers
	if got.err != nil || got.name != "good" {
		t.Errorf("%q answered, error %v", got.name, got.err)
	}
	b.become(map[string]replicas.Health{"node-lost": replicas.Unreachable, "node-good": replicas.Serving})
	// New calls go to a replica that answers.
	for range 4 {
		if name, err := b.ask(t.Context()); err != nil || name != "good" {
			t.Errorf("%q answered, error %v", name, err)
		}
	}
	w.Resume()
	b.become(map[string]replicas.Health{"node-lost": replicas.Serving, "node-good": replicas.Serving})
}

func TestALostReplicaIsGivenUpSoon(t *testing.T) {
	good, lost := serve(t, "good", false), serve(t, "lost", false)
	w := forwarder.Start(t, lost.address)
	behind := lost.endpoint()
	behind.Address = w.Address
	b := newBench(t, replicas.Options{Probe: replicas.DefaultProbe(), Network: newNetwork(t)}, good.endpoint(), behind)
	b.become(map[string]replicas.Health{"node-lost": replicas.Serving, "node-good": replicas.Serving})
	w.Stop()
	defer w.Resume()
	begin := time.Now()
	// Every second call goes to the unreachable replica first and waits until it is given up.
	for range 2 {
		if name, err := b.ask(t.Context()); err != nil || name != "good" {
			t.Errorf("%q answered, error %v", name, err)
		}
	}
	took := time.Since(begin)
	t.Logf("given up after %s", took.Round(10*time.Millisecond))
	// A pause, two timeouts and a short pause, with tolerance for a busy machine.
	if took > 8*time.Second {
		t.Errorf("that took %s", took)
	}
}

func TestDoCutsOffCallsToARemovedReplica(t *testing.T) {
	lost := serve(t, "lost", false)
	lost.hang.Store(true)
	b := probed(t, lost.endpoint())
	b.become(map[string]replicas.Health{"node-lost": replicas.Serving})
	failures := make(chan error, 1)
	go func() {
		_, err := b.ask(t.Context())
		failures <- err
	}()
	b.Eventually(lost.asked.Load).WithTimeout(patience).Should(gomega.BeEquivalentTo(1))
	b.set.Update(nil)
	if err := <-failures; !errors.Is(err, replicas.ErrNoAnswer) {
		t.Errorf("error %v", err)
	}
}

func TestSetGivesUpWhoTakesConnectionsAndAnswersNothing(t *testing.T) {
	var lc net.ListenConfig
	hole, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	good := serve(t, "good", false)
	b := probed(t, replicas.Endpoint{Address: hole.Addr().String(), Node: "hole", Ready: true}, good.endpoint())
	for range 4 {
		if name, err := b.ask(t.Context()); err != nil || name != "good" {
			t.Errorf("%q answered, error %v", name, err)
		}
	}
	b.become(map[string]replicas.Health{"hole": replicas.Unreachable, "node-good": replicas.Serving})
}

func TestAnAddressIsNotProbed(t *testing.T) {
	server := serve(t, "one", false)
	server.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	b := newBench(t, replicas.Options{}, replicas.Endpoint{Address: server.address, Ready: true})
	connected := func() connectivity.State { return b.set.Summary().Connectivity }
	b.Eventually(connected).WithTimeout(patience).Should(gomega.Equal(connectivity.Ready))
	if name, err := b.ask(t.Context()); err != nil || name != "one" {
		t.Errorf("%q answered, error %v", name, err)
	}
	server.stopping()
	b.Eventually(connected).WithTimeout(patience).Should(gomega.Equal(connectivity.TransientFailure))
	b.Eventually(func() error { return b.set.Summary().Err }).WithTimeout(patience).Should(gomega.MatchError(gomega.ContainSubstring("connection refused")))
}

func TestAnAddressThatIsNone(t *testing.T) {
	b := newBench(t, replicas.Options{}, replicas.Endpoint{Address: "dns://%zz/"})
	if got := b.set.Summary(); got.Connectivity != connectivity.TransientFailure || got.Err == nil {
		t.Errorf("summary %+v", got)
	}
	if _, err := b.ask(t.Context()); !errors.Is(err, replicas.ErrNone) {
		t.Errorf("error %v", err)
	}
}

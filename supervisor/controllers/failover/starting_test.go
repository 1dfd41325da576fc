package failover

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// startServer serves health at an address until stop is called. An empty address means any free
// one.
func startServer(t *testing.T, address string) (at string, stop func()) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serving: %v", err)
		}
	}()
	stop = func() { server.Stop(); <-ended }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// startingBed is a catalog with two probed replicas, good and late.
type startingBed struct {
	t    *testing.T
	set  *replicas.Set
	late replicas.Endpoint
	good replicas.Endpoint
	pods map[string]*corev1.Pod
}

// Replicas implements replicaReader.
func (b *startingBed) Replicas(types.NamespacedName) []replicas.State { return b.set.States() }

func (b *startingBed) state() replicas.State { return b.set.States()[1] }

// ready sets the Ready condition of the late replica's pod, as its kubelet does.
func (b *startingBed) ready(status corev1.ConditionStatus) {
	b.pods["late"].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

// slice sets the readiness in the EndpointSlice, as its controller does a moment later.
func (b *startingBed) slice(ready bool) {
	b.late.Ready = ready
	b.set.Update([]replicas.Endpoint{b.good, b.late})
}

// decides returns the actions for the current state of the catalog.
func (b *startingBed) decides() []string {
	o := &observer{replicas: b}
	c := o.catalog(types.NamespacedName{Namespace: "olm", Name: "x"}, []*corev1.Pod{b.pods["good"], b.pods["late"]})
	return Decide(Input{
		Now: time.Now(), Role: Leader, Catalogs: []Catalog{c},
		Nodes: map[string]Node{"good": ready(), "late": ready()}, Limits: Limits{Rate: 1, Burst: 10},
	}).done()
}

// until waits for a state of the late replica. It fails on any action before that.
func (b *startingBed) until(what string, within time.Duration, holds func(replicas.State) bool) {
	b.t.Helper()
	begun, tick := time.Now(), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds(b.state()) {
		if done := b.decides(); len(done) > 0 {
			b.t.Fatalf("%s: decided %v after %s", what, done, time.Since(begun).Round(time.Millisecond))
		}
		if took := time.Since(begun); took > within {
			b.t.Fatalf("%s: not after %s: %+v", what, took.Round(time.Millisecond), b.state())
		}
		<-tick.C
	}
	b.t.Logf("%s after %s", what, time.Since(begun).Round(time.Millisecond))
}

// TestAReplicaThatStartsIsNoticedAndNeverMarked probes a replica for a long time before its server
// starts. It then restarts the server like a container.
func TestAReplicaThatStartsIsNoticedAndNeverMarked(t *testing.T) {
	network, err := replicas.NewNetwork()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := &startingBed{t: t, pods: map[string]*corev1.Pod{}}
	b.set = replicas.NewSet(ctx, replicas.Options{Network: network, Probe: replicas.DefaultProbe(), Clock: clock.RealClock{}})
	defer func() {
		b.set.Close()
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	}()
	goodAddress, _ := startServer(t, "")
	lateAddress, stop := startServer(t, "")
	stop()
	for _, name := range []string{"good", "late"} {
		b.pods[name] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: name},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
	}
	b.good = replicas.Endpoint{Address: goodAddress, UID: "good", Node: "good", Ready: true}
	b.late = replicas.Endpoint{Address: lateAddress, UID: "late", Node: "late"}
	b.ready(corev1.ConditionFalse)
	b.slice(false)

	const patience, notice = 30 * time.Second, 2 * time.Second
	serving := func(s replicas.State) bool { return s.Health == replicas.Serving }
	away := func(s replicas.State) bool { return s.Health == replicas.Unreachable && s.Failures >= 5 }
	b.until("the replica that is not there is given up", patience, away)
	if s := b.set.States()[0]; s.Health != replicas.Serving {
		t.Fatalf("the other replica: %+v", s)
	}
	_, stop = startServer(t, lateAddress)
	b.ready(corev1.ConditionTrue)
	b.until("the replica that starts is noticed, though its EndpointSlice is late", notice, serving)
	b.slice(true)

	b.ready(corev1.ConditionFalse)
	b.slice(false)
	stop()
	b.until("the replica that is restarted is given up", patience, away)
	startServer(t, lateAddress)
	b.ready(corev1.ConditionTrue)
	if done := b.decides(); len(done) > 0 {
		t.Fatalf("decided %v before the EndpointSlice shows that it is ready", done)
	}
	b.slice(true)
	b.until("the replica that is restarted is noticed", notice, serving)
}

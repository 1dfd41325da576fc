package replicas_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// serverOnly is an environment variable that makes the test binary only serve health. A measurement
// then covers the cost of the clients alone.
const serverOnly = "CHANDLERY_TEST_SERVE_HEALTH"

// serveHealth prints its address and serves until standard input ends.
func serveHealth(ctx context.Context) int {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(listener.Addr())
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// elsewhere starts a server in a separate process.
func elsewhere(tb testing.TB) string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), os.Args[0])
	command.Env = append(os.Environ(), serverOnly+"=1")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// held returns the memory of live objects and stacks, in bytes.
func held() float64 {
	// The second collection frees what finalizers and pools held.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkSources measures the cost of following many catalogs with two replicas each: memory per
// catalog and processor time per second.
func BenchmarkSources(b *testing.B) {
	const sources, window = 200, 5 * time.Second
	address := elsewhere(b)
	network := newNetwork(b)
	for b.Loop() {
		before, goroutines := held(), runtime.NumGoroutine()
		sets := make([]*replicas.Set, 0, sources)
		for i := range sources {
			set := replicas.NewSet(b.Context(), replicas.Options{Probe: replicas.DefaultProbe(), Network: network, Clock: clock.RealClock{}})
			set.Update([]replicas.Endpoint{
				{Address: address, UID: types.UID(fmt.Sprintf("%d-1", i)), Ready: true},
				{Address: address, UID: types.UID(fmt.Sprintf("%d-2", i)), Ready: true},
			})
			sets = append(sets, set)
		}
		for _, set := range sets {
			for serving(set) < 2 {
				<-set.Changes()
			}
		}
		begin := processorTime(b)
		<-time.After(window)
		b.ReportMetric((processorTime(b)-begin).Seconds()/window.Seconds()*1000, "cpu-ms/s")
		b.ReportMetric((held()-before)/sources, "B/source")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/sources, "goroutines/source")
		for _, set := range sets {
			set.Close()
		}
	}
}

func serving(set *replicas.Set) int {
	n := 0
	for _, s := range set.States() {
		if s.Health == replicas.Serving {
			n++
		}
	}
	return n
}

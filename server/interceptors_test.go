package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
)

// around returns the interceptor of a server and the context of a call.
func around(tb testing.TB, limits Limits, logger *slog.Logger) (*calls, context.Context) {
	tb.Helper()
	m := newMetrics("", "")
	c := newCalls(logger, m, newAccessLog(logger, 1000), &fileWatch{})
	c.registerMethods(map[string]grpc.ServiceInfo{"api.Registry": {Methods: []grpc.MethodInfo{{Name: "GetPackage"}, {Name: "ListPackages"}}}})
	end, other := net.Pipe()
	tb.Cleanup(func() { end.Close(); other.Close() })
	from := &fakeListener{conns: make(chan net.Conn, 1)}
	from.conns <- end
	conn, err := newConnections(from, limits, m, logger).Accept()
	if err != nil {
		tb.Fatal(err)
	}
	return c, peer.NewContext(tb.Context(), &peer.Peer{Addr: conn.RemoteAddr()})
}

var (
	unaryInfo = &grpc.UnaryServerInfo{FullMethod: api.Registry_GetPackage_FullMethodName}
	answered  = any(encoded("onetwo"))
)

// encoded stands for an encoded message.
type encoded string

func (e encoded) Len() int { return len(e) }

func answer(context.Context, any) (any, error) { return answered, nil }

// TestCallAllocations bounds the allocations of the interceptor.
func TestCallAllocations(t *testing.T) {
	c, ctx := around(t, DefaultLimits(), slog.New(slog.NewTextHandler(&logBuffer{}, nil)))
	// No call of the measurement is logged as part of the sample.
	c.log.sample = 1 << 40
	got := testing.AllocsPerRun(1000, func() {
		if _, err := c.unary(ctx, nil, unaryInfo, answer); err != nil {
			t.Fatal(err)
		}
	})
	// Outside a server, SetSendCompressor returns an error, which allocates.
	got -= testing.AllocsPerRun(1000, func() { _ = grpc.SetSendCompressor(ctx, encoding.Identity) })
	// One allocation tracks the answer until the client has taken it.
	if got != 1 {
		t.Errorf("the interceptor makes %v allocations for each call, want one", got)
	}
	if sent := value(t, c.methods[unaryInfo.FullMethod].sent); sent != 6*1001 {
		t.Errorf("%v bytes were counted as sent by 1001 calls of 6", sent)
	}
}

func BenchmarkCall(b *testing.B) {
	c, ctx := around(b, DefaultLimits(), slog.New(slog.NewTextHandler(&logBuffer{}, nil)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.unary(ctx, nil, unaryInfo, answer); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCallRate(t *testing.T) {
	limits := DefaultLimits()
	limits.CallRate, limits.CallBurst = 0.001, 3
	c, ctx := around(t, limits, slog.New(slog.DiscardHandler))
	for range 3 {
		if _, err := c.unary(ctx, nil, unaryInfo, answer); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.unary(ctx, nil, unaryInfo, answer)
	failed := status.Convert(err)
	if failed.Code() != codes.ResourceExhausted || len(failed.Details()) != 1 {
		t.Errorf("got %v, %v, want ResourceExhausted that says when to try again", err, failed.Details())
	}
	if got := value(t, c.metrics.limited); got != 1 {
		t.Errorf("%v calls were counted as limited", got)
	}
}

func TestClip(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		same   bool
	}{
		"Short":   {reason: "texts stay what they are", text: `package "p" not found`, same: true},
		"Longest": {reason: "the limit is inclusive", text: strings.Repeat("x", maxMessage), same: true},
		"Long":    {reason: "what is too long is cut", text: strings.Repeat("x", maxMessage+1)},
		"Rune":    {reason: "between characters", text: "x" + strings.Repeat("é", maxMessage)},
		"Broken":  {reason: "bytes that are no text end in text", text: strings.Repeat("\x80", 2*maxMessage)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := status.Error(codes.NotFound, tc.text)
			got := clip(err)
			text := status.Convert(got).Message()
			if status.Code(got) != codes.NotFound || len(text) > maxMessage+20 || errors.Is(got, err) != tc.same {
				t.Errorf("%s: got %d bytes, %v", tc.reason, len(text), got)
			}
			if !tc.same && (!utf8.ValidString(text) || !strings.HasSuffix(text, "(shortened)")) {
				t.Errorf("%s: got %q", tc.reason, text)
			}
		})
	}
}

func TestAccessLog(t *testing.T) {
	logs := &logBuffer{}
	log := newAccessLog(slog.New(slog.NewTextHandler(logs, nil)), 10)
	package1 := call{method: &method{service: "api.Registry", name: "GetPackage"}, start: time.Now()}
	health := call{method: &method{service: "grpc.health.v1.Health", name: "Check"}, start: time.Now()}
	for range 100 {
		log.record(t.Context(), package1, time.Millisecond, codes.OK, nil)
		log.record(t.Context(), health, time.Millisecond, codes.OK, nil)
	}
	if got := strings.Count(logs.String(), "Finished call"); got != 10 {
		t.Errorf("of 100 calls %d were logged, want 10:\n%s", got, logs)
	}
	for range 5 * failuresBurst {
		log.record(t.Context(), package1, time.Millisecond, codes.Internal, status.Error(codes.Internal, "oh"))
	}
	warnings := strings.Count(logs.String(), "level=WARN")
	if warnings < failuresBurst || warnings > failuresBurst+50 {
		t.Errorf("%d failures were logged, want some %d", warnings, failuresBurst)
	}
	log.failures.SetBurst(10 * failuresBurst)
	wait(t, "the next failure to be logged with the number of the omitted", func() bool {
		log.record(t.Context(), package1, time.Millisecond, codes.NotFound, status.Error(codes.NotFound, "no"))
		return strings.Contains(logs.String(), "omitted=")
	})
}

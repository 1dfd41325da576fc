package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

// rawClient reads and writes the frames of HTTP/2 directly.
type rawClient struct {
	*http2.Framer

	t    *testing.T
	conn net.Conn
	next uint32
}

// greet begins HTTP/2 on a connection and grants a window to each stream.
func greet(t *testing.T, conn net.Conn, window uint32) *rawClient {
	t.Helper()
	c := &rawClient{Framer: http2.NewFramer(conn, conn), t: t, conn: conn, next: 1}
	_, err := conn.Write([]byte(http2.ClientPreface))
	c.must(err, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}), c.WriteSettingsAck())
	return c
}

func (c *rawClient) must(errs ...error) {
	c.t.Helper()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

// call begins a call and returns its stream. Without a request the stream stays open.
func (c *rawClient) call(path string, request proto.Message, extra ...hpack.HeaderField) uint32 {
	c.t.Helper()
	stream := c.next
	c.next += 2
	c.must(writeCall(c.Framer, stream, path, extra...))
	if request == nil {
		return stream
	}
	body, err := proto.Marshal(request)
	c.must(err, c.WriteData(stream, true, append([]byte{0, 0, 0, byte(len(body) >> 8), byte(len(body))}, body...)))
	return stream
}

// writeCall writes the headers of a call.
func writeCall(framer *http2.Framer, stream uint32, path string, extra ...hpack.HeaderField) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	}, extra...) {
		if err := encoder.WriteField(field); err != nil {
			return err
		}
	}
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// until reads frames until one of a kind arrives.
func (c *rawClient) until(kind http2.FrameType, flags http2.Flags) http2.FrameHeader {
	c.t.Helper()
	c.must(c.conn.SetReadDeadline(time.Now().Add(20 * time.Second)))
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			c.t.Fatalf("waiting for %v: %v", kind, err)
		}
		if head := frame.Header(); head.Type == kind && head.Flags.Has(flags) {
			return head
		}
	}
}

// alive fails the test unless the connection is open.
func (c *rawClient) alive() {
	c.t.Helper()
	c.must(c.WritePing(false, [8]byte{1}))
	c.until(http2.FramePing, http2.FlagPingAck)
}

var (
	askPackage = &api.GetPackageRequest{Name: "p"}
	askBundle  = &api.GetBundleRequest{PkgName: "p", ChannelName: "a", CsvName: "b"}
	askGzip    = hpack.HeaderField{Name: "grpc-encoding", Value: "gzip"}
)

// stallSoon returns limits with a short stall timeout.
func stallSoon() Limits {
	limits := DefaultLimits()
	limits.StallTimeout = 500 * time.Millisecond
	limits.PingInterval = time.Nanosecond
	return limits
}

// noise returns a text that compression does not shorten.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(data)
}

// TestUnreadAnswers has clients that never take an answer, or take only a part, after the handler has returned.
func TestUnreadAnswers(t *testing.T) {
	f, address := startSmall(t, stallSoon(), noise(100<<10))
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.1", address)
	for name, tc := range map[string]struct {
		reason string
		window uint32
		ask    func(c *rawClient)
	}{
		"Window": {"small answers wait where no handler does", 0, func(c *rawClient) {
			for range 100 {
				c.call(api.Registry_GetPackage_FullMethodName, askPackage)
			}
		}},
		"Gzip": {"and so do compressed ones, which are private memory", 0, func(c *rawClient) {
			for range 10 {
				c.call(api.Registry_GetBundle_FullMethodName, askBundle, askGzip)
			}
		}},
		"Stream": {"a short stream fits what gRPC sends ahead", 0, func(c *rawClient) {
			c.call(api.Registry_ListPackages_FullMethodName, &api.ListPackageRequest{})
		}},
		"Rest": {"who has begun to read has to go on", 60 << 10, func(c *rawClient) {
			c.call(api.Registry_GetBundle_FullMethodName, askBundle)
		}},
		"Hidden": {"calls that ask for nothing hide none that got an answer", 0, func(c *rawClient) {
			for range 50 {
				c.call(api.Registry_ListPackages_FullMethodName, nil)
				c.call(api.Registry_GetPackage_FullMethodName, askPackage)
			}
		}},
		"Watch": {"nor do streams that have nothing to say, as they are counted on both sides", 0, func(c *rawClient) {
			c.call(healthpb.Health_Watch_FullMethodName, &healthpb.HealthCheckRequest{})
			c.call(api.Registry_GetPackage_FullMethodName, askPackage)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, address)
			before := value(t, f.metrics.stalled)
			tc.ask(greet(t, conn, tc.window))
			closed(t, conn)
			if got := value(t, f.metrics.stalled); got != before+1 {
				t.Errorf("%s: %v connections stalled, want 1", tc.reason, got-before)
			}
			served(t, client)
		})
	}
}

// TestUnreadAnswersTLS has such a client on an encrypted connection.
func TestUnreadAnswersTLS(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.sign(t)
	s := &secret{dir: t.TempDir()}
	s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p"))
	f, address := startSocket(t, Config{
		Source: source.Dir{Path: dir}, Limits: stallSoon(),
		TLS: TLS{Certificate: filepath.Join(s.dir, "tls.crt"), Key: filepath.Join(s.dir, "tls.key")},
	})
	f.waitLoaded(t)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: ca.pool(), NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	greet(t, conn, 0).call(api.Registry_GetPackage_FullMethodName, askPackage)
	wait(t, "the connection to be closed", func() bool { return value(t, f.metrics.stalled) == 1 })
}

// stallOne starts a client that stalls and returns when the server has closed its connection. Any
// other connection that already waits has then been checked for as long.
func stallOne(t *testing.T, address string) {
	t.Helper()
	conn := connect(t, address)
	greet(t, conn, 0).call(api.Registry_GetPackage_FullMethodName, askPackage)
	closed(t, conn)
}

// TestResets has a client that resets its streams and takes no answer.
func TestResets(t *testing.T) {
	f, address := startSmall(t, stallSoon(), noise(100<<10))
	f.waitLoaded(t)
	c := greet(t, connect(t, address), 0)
	for range 10 {
		// Reset at once, when the answer may not have begun, ...
		c.must(c.WriteRSTStream(c.call(api.Registry_GetBundle_FullMethodName, askBundle), http2.ErrCodeCancel))
		c.must(c.WriteRSTStream(c.call(api.Registry_ListPackages_FullMethodName, nil), http2.ErrCodeCancel))
		// ... and after it has begun.
		stream := c.call(api.Registry_GetBundle_FullMethodName, askBundle, askGzip)
		for c.until(http2.FrameHeaders, 0).StreamID != stream {
		}
		c.must(c.WriteRSTStream(stream, http2.ErrCodeCancel))
	}
	stallOne(t, address)
	stallOne(t, address)
	c.alive()
	if got := value(t, f.metrics.stalled); got != 2 {
		t.Errorf("%v connections stalled, want 2", got)
	}
}

// TestQuietStreams has clients of streams without messages.
func TestQuietStreams(t *testing.T) {
	f, address := startSmall(t, stallSoon(), "x")
	f.waitLoaded(t)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var watches []grpc.ServerStreamingClient[healthpb.HealthCheckResponse]
	for range 20 {
		watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		watches = append(watches, watch)
	}
	silent := greet(t, connect(t, address), 1<<16)
	silent.call(api.Registry_ListPackages_FullMethodName, nil)
	stallOne(t, address)
	served(t, api.NewRegistryClient(conn))
	stallOne(t, address)
	silent.alive()
	if got := value(t, f.metrics.stalled); got != 2 {
		t.Errorf("%v connections stalled, want 2", got)
	}
	f.stop()
	for _, watch := range watches {
		if got, err := watch.Recv(); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Fatalf("a watch that was quiet for long gets %v, %v", got, err)
		}
	}
}

// TestSlowReader has clients that take an answer bit by bit: one is fast enough, and one takes a
// little within each timeout.
func TestSlowReader(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		step    uint32
		stalled float64
	}{
		"Steady":  {"twice the least rate is enough, for many times the timeout", 2 * leastRate / 10, 0},
		"Trickle": {"a KiB within each timeout is not", 1 << 10 / 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, address := startSmall(t, stallSoon(), noise(50<<10))
			f.waitLoaded(t)
			c := greet(t, connect(t, address), 0)
			c.must(c.WriteWindowUpdate(0, 1<<20))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream := c.call(api.Registry_GetBundle_FullMethodName, askBundle)
			granting := make(chan struct{})
			go func() {
				defer close(granting)
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for ctx.Err() == nil {
					<-tick.C
					// It fails once the server has closed the connection.
					if c.WriteWindowUpdate(stream, tc.step) != nil {
						return
					}
				}
			}()
			began := time.Now()
			if tc.stalled > 0 {
				closed(t, c.conn)
			} else {
				c.until(http2.FrameHeaders, http2.FlagHeadersEndStream)
			}
			cancel()
			<-granting
			if took := time.Since(began); took < 3*stallSoon().StallTimeout {
				t.Errorf("%s: it took %v, too short for this test", tc.reason, took)
			}
			if got := value(t, f.metrics.stalled); got != tc.stalled {
				t.Errorf("%s: %v connections stalled, want %v", tc.reason, got, tc.stalled)
			}
		})
	}
}

// TestUncompressedAnswers has a client request compressed answers, which would take memory for each client.
func TestUncompressedAnswers(t *testing.T) {
	f, address := startSmall(t, DefaultLimits(), strings.Repeat("x", 100<<10))
	f.waitLoaded(t)
	for name, request := range map[string]proto.Message{
		api.Registry_GetBundle_FullMethodName:   askBundle,
		api.Registry_ListBundles_FullMethodName: &api.ListBundlesRequest{},
	} {
		c := greet(t, connect(t, address), 1<<20)
		c.must(c.WriteWindowUpdate(0, 1<<20))
		stream, got := c.call(name, request, askGzip), 0
		for got < 100<<10 {
			if head := c.until(http2.FrameData, 0); head.StreamID == stream {
				got += int(head.Length)
			}
		}
	}
}

// accepted returns a connection of a server with limits.
func accepted(t *testing.T, limits Limits) *connection {
	t.Helper()
	from := &fakeListener{conns: make(chan net.Conn, 1)}
	from.conns <- &fakeConn{from: "::1"}
	conn, err := newConnections(from, limits, newMetrics("", ""), slog.New(slog.DiscardHandler)).Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, ok := conn.(*connection)
	if !ok {
		t.Fatalf("accepted a %T", conn)
	}
	return c
}

// TestDropped has gRPC queue one answer after its call was cancelled, and one whose call continues.
func TestDropped(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		reason  string
		ctx     context.Context
		waiting bool
	}{
		"Canceled": {"gRPC may never release it", canceled, false},
		"Going":    {"gRPC releases it", t.Context(), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := accepted(t, DefaultLimits())
			answer, ok := outgoing("text", 4, c).(*delivery)
			if !ok {
				t.Fatal("the answer is not followed")
			}
			answer.Queued()
			cancelledCalls{}.HandleRPC(tc.ctx, &stats.OutPayload{Payload: answer})
			if waiting, _ := c.unread.state(0); waiting != tc.waiting {
				t.Errorf("%s: waiting is %v", tc.reason, waiting)
			}
			answer.Gone()
			answer.Gone()
			if waiting, _ := c.unread.state(0); waiting {
				t.Errorf("%s: it waits although it is gone", tc.reason)
			}
		})
	}
}

// TestStalled checks one connection at different times.
func TestStalled(t *testing.T) {
	const timeout = time.Minute
	type state struct {
		c      *connection
		answer *delivery
	}
	cases := map[string]struct {
		reason string
		before func(s state)
		after  func(s state)
		later  time.Duration
		want   bool
	}{
		"Idle":      {"nothing waits", func(state) {}, func(state) {}, time.Hour, false},
		"Unread":    {"nothing is written while an answer waits", func(s state) { s.answer.Queued() }, func(state) {}, timeout, true},
		"Early":     {"it has the whole timeout", func(s state) { s.answer.Queued() }, func(state) {}, timeout - time.Second, false},
		"Progress":  {"something is written", func(s state) { s.answer.Queued() }, func(s state) { s.c.written.Add(1) }, timeout, false},
		"Overdue":   {"an answer has its time, whatever else is written", func(s state) { s.answer.Queued() }, func(s state) { s.c.written.Add(1) }, timeout + 3*time.Second, true},
		"Gone":      {"the answer was taken", func(s state) { s.answer.Queued() }, func(s state) { s.answer.Gone() }, time.Hour, false},
		"Socket":    {"the socket takes nothing", func(s state) { s.c.writes.begin() }, func(state) {}, timeout, true},
		"SocketOn":  {"the socket took what there was", func(s state) { s.c.writes.begin() }, func(s state) { s.c.writes.end() }, timeout, false},
		"SocketAll": {"and is at the next", func(s state) { s.c.writes.begin() }, func(s state) { s.c.writes.end(); s.c.writes.begin() }, timeout, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.StallTimeout = timeout
			c := accepted(t, limits)
			answer, ok := outgoing("text", 2*leastRate, c).(*delivery)
			if !ok {
				t.Fatal("the answer is not followed")
			}
			s := state{c, answer}
			tc.before(s)
			now := c.set.now()
			if c.stalled(now, timeout) {
				t.Fatalf("%s: stalled at once", tc.reason)
			}
			tc.after(s)
			if got := c.stalled(now+tc.later, timeout); got != tc.want {
				t.Errorf("%s: stalled is %v after %v", tc.reason, got, tc.later)
			}
		})
	}
}

// TestConnectionStreams has a client make more calls on a connection than it may.
func TestConnectionStreams(t *testing.T) {
	limits := DefaultLimits()
	limits.ConnectionStreams = 2
	f, address := startSmall(t, limits, "x")
	f.waitLoaded(t)
	c := greet(t, connect(t, address), 1<<16)
	for range limits.ConnectionStreams {
		c.call(api.Registry_ListPackages_FullMethodName, nil)
	}
	beyond := c.call(api.Registry_ListPackages_FullMethodName, nil)
	if head := c.until(http2.FrameRSTStream, 0); head.StreamID != beyond {
		t.Errorf("stream %d is refused, want %d", head.StreamID, beyond)
	}
	c.alive()
}

package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

// startSocket runs a server on a socket and returns its address.
func startSocket(t *testing.T, config Config) (f *fixture, address string) {
	t.Helper()
	f = &fixture{logs: &logBuffer{}, done: make(chan error, 1)}
	config.Address, config.Logger = "127.0.0.1:0", slog.New(slog.NewTextHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	if f.Server, err = New(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { f.done <- f.Run(ctx) }()
	t.Cleanup(func() {
		f.stop()
		<-f.done
	})
	return f, f.Address().String()
}

// startSmall runs a server with two packages whose bundles have a property.
func startSmall(t *testing.T, limits Limits, property string) (f *fixture, address string) {
	t.Helper()
	dir := t.TempDir()
	writeCatalog(t, dir, strings.ReplaceAll(catalogOf("p")+catalogOf("q"), `1.0.0"}}]`, `1.0.0"}},{"type":"big","value":"`+property+`"}]`))
	return startSocket(t, Config{Source: source.Dir{Path: dir}, Limits: limits, ShutdownTimeout: 100 * time.Millisecond})
}

// dialFrom returns a client whose connections come from an address.
func dialFrom(t *testing.T, from, address string, options ...grpc.DialOption) api.RegistryClient {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := grpc.NewClient("passthrough:///"+address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewRegistryClient(conn)
}

// served fails the test unless a well-behaved client gets its answer at once.
func served(t *testing.T, client api.RegistryClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: "p"}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("somebody else is not served: %v", err)
	}
}

// waitLoaded waits until content is loaded.
func (f *fixture) waitLoaded(t *testing.T) {
	t.Helper()
	wait(t, "content", func() bool { return f.content.current.Load() != nil })
}

// connect opens a connection and sends nothing.
func connect(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// closed waits until the server closes a connection, and returns what it sent.
func closed(t *testing.T, conn net.Conn) []byte {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	if err != nil {
		t.Fatalf("the server does not close the connection: %v", err)
	}
	return got
}

func TestBurst(t *testing.T) {
	f, address := startSmall(t, DefaultLimits(), strings.Repeat("x", 10<<10))
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.1", address)
	const calls = 1200
	failures := make(chan error, calls)
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			_, err := client.GetBundleForChannel(t.Context(), &api.GetBundleInChannelRequest{PkgName: "p", ChannelName: "a"}) //nolint:staticcheck // what OLM calls
			failures <- err
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Fatalf("one of %d calls at once: %v", calls, err)
		}
	}
}

func TestBadRequests(t *testing.T) {
	f, address := startSmall(t, DefaultLimits(), "")
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.1", address)
	long := strings.Repeat("n", 8<<10)
	cases := map[string]struct {
		reason string
		name   string
		header string
		code   codes.Code
		text   string
	}{
		"Unknown":    {reason: "the name is in the message", name: "nope", code: codes.NotFound, text: `package "nope" not found`},
		"Long":       {reason: "a long one only in part", name: long, code: codes.NotFound, text: `package "nnnn`},
		"Enormous":   {reason: "a request has a size", name: strings.Repeat("n", 1<<20), code: codes.ResourceExhausted, text: "larger than max"},
		"Binary":     {reason: "names are text", name: "\x00\n\"", code: codes.NotFound, text: "not found"},
		"BigHeaders": {reason: "headers have a size", name: "p", header: strings.Repeat("h", 64<<10), code: codes.Internal, text: "header list size"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.header != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "x-big", tc.header)
			}
			_, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: tc.name})
			got := status.Convert(err)
			if got.Code() != tc.code || !strings.Contains(got.Message(), tc.text) || len(got.Message()) > 2<<10 {
				t.Errorf("%s: got %v and %d bytes of message: %.200s", tc.reason, got.Code(), len(got.Message()), got.Message())
			}
			served(t, client)
		})
	}
}

func TestBadGreetings(t *testing.T) {
	limits := DefaultLimits()
	limits.HandshakeTimeout = 300 * time.Millisecond
	f, address := startSmall(t, limits, "")
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.1", address)
	cases := map[string]struct {
		reason string
		send   string
		want   string
	}{
		"Silence": {reason: "who says nothing is disconnected"},
		"Garbage": {reason: "so is who talks nonsense", send: strings.Repeat("\xff\x00garbage", 1000)},
		"Partial": {reason: "and who does not finish", send: "PRI * HT"},
		"Preface": {reason: "an opening without settings is not finished", send: http2.ClientPreface},
		"NoFrame": {reason: "and after it there must be a frame", send: http2.ClientPreface + strings.Repeat("\xff", 100)},
		"HTTP1":   {reason: "a web client is told what this is", send: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", want: "gRPC"},
		"HTTP1.0": {reason: "even a short request", send: "GET / HTTP/1.0\r\n\r\n", want: "gRPC"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, address)
			if _, err := io.WriteString(conn, tc.send); err != nil {
				t.Fatal(err)
			}
			served(t, client)
			got := closed(t, conn)
			if tc.want == "" {
				return
			}
			response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
			if err != nil {
				t.Fatalf("%s: got %q: %v", tc.reason, got, err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusHTTPVersionNotSupported || !strings.Contains(string(body), tc.want) {
				t.Errorf("%s: got %s, %q, %v", tc.reason, response.Status, body, err)
			}
		})
	}
	wait(t, "all those connections to be forgotten", func() bool { return value(t, f.metrics.connections) == 1 })
}

// TestSlowHeaders sends the headers of a call byte by byte.
func TestSlowHeaders(t *testing.T) {
	limits := DefaultLimits()
	limits.KeepaliveInterval, limits.KeepaliveTimeout = time.Second, 500*time.Millisecond
	f, address := startSmall(t, limits, "")
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.1", address)
	conn := connect(t, address)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for name, text := range map[string]string{":method": "POST", ":scheme": "http", ":path": "/api.Registry/GetPackage", "content-type": "application/grpc"} {
		if err := encoder.WriteField(hpack.HeaderField{Name: name, Value: text}); err != nil {
			t.Fatal(err)
		}
	}
	var opening bytes.Buffer
	opening.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&opening, nil)
	if err := errors.Join(framer.WriteSettings(),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes()[:2]})); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(opening.Bytes()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		closed(t, conn)
	}()
	// Send a header frame that never ends, one byte at a time.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	trickle := append([]byte{0, 0x3f, 0xff, 9 /* CONTINUATION */, 0, 0, 0, 0, 1}, make([]byte, 1<<14)...)
	deadline := time.After(20 * time.Second)
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			// This fails after the server has closed the connection.
			_, _ = conn.Write(trickle[i : i+1])
		case <-done:
			served(t, client)
			return
		case <-deadline:
			t.Fatal("somebody who never finishes is never disconnected")
		}
	}
}

// TestPings has a client that sends pings at once, on a connection without calls.
func TestPings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		interval time.Duration
		closes   bool
	}{
		"Flood":   {"each ping costs the server an answer", DefaultLimits().PingInterval, true},
		"Allowed": {"the interval permits it", time.Nanosecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.PingInterval = tc.interval
			f, address := startSmall(t, limits, "")
			f.waitLoaded(t)
			conn := connect(t, address)
			c := greet(t, conn, 1<<16)
			for range 10 {
				// It fails once the server has closed the connection.
				_ = c.WritePing(false, [8]byte{1})
			}
			if tc.closes {
				closed(t, conn)
			} else {
				c.alive()
			}
		})
	}
}

func TestNeverReads(t *testing.T) {
	limits := DefaultLimits()
	limits.StallTimeout = 500 * time.Millisecond
	f, address := startSmall(t, limits, strings.Repeat("x", 1<<20))
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.1", address)
	// Use four streams of two messages of a megabyte. The window is smaller and does not grow; a
	// client with a high latency would widen it.
	const window = 64 << 10
	lazy := dialFrom(t, "127.0.0.1", address, grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
	var streams []grpc.ServerStreamingClient[api.Bundle]
	for range 4 {
		stream, err := lazy.ListBundles(t.Context(), &api.ListBundlesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	// Another client does not even read from its socket.
	deaf := connect(t, address)
	if err := deaf.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	askDeaf(t, deaf, 100)
	wait(t, "both to be disconnected", func() bool {
		served(t, client)
		return value(t, f.metrics.stalled) >= 2 && value(t, f.metrics.connections) == 1
	})
	for _, stream := range streams {
		var err error
		for err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF) {
			t.Errorf("the client that did not read gets %v", err)
		}
	}
	if logs := f.logs.String(); !strings.Contains(logs, "does not read") {
		t.Errorf("nothing is logged:\n%s", logs)
	}
}

// askDeaf calls ListBundles so many times with windows of the largest size.
func askDeaf(t *testing.T, conn net.Conn, calls int) {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, nil)
	if err := errors.Join(framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}),
		framer.WriteWindowUpdate(0, 1<<30)); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		id := uint32(2*i + 1)
		if err := errors.Join(
			writeCall(framer, id, api.Registry_ListBundles_FullMethodName),
			framer.WriteData(id, true, make([]byte, 5))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// TestIdleConnections opens 10,000 connections, or as many as this process may have, while another
// client makes calls.
func TestIdleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("opens thousands of connections")
	}
	want := 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	// The server closes its ends of all but the allowed connections.
	if most := int(min(files.Cur, 1<<20)) - 2*DefaultLimits().Connections - 500; most < want {
		t.Logf("this process may have %d open files: %d connections instead of %d", files.Cur, most, want)
		want = most
	}
	f, address := startSmall(t, DefaultLimits(), "")
	f.waitLoaded(t)
	client := dialFrom(t, "127.0.0.2", address)
	served(t, client)
	before := heap()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	greeting := append([]byte(http2.ClientPreface), 0, 0, 0, 4, 0, 0, 0, 0, 0)
	for i := range want {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { conn.Close() })
		// The server may have closed it already.
		_, _ = conn.Write(greeting)
		if i%500 == 0 {
			served(t, client)
		}
	}
	wait(t, "the server to have looked at all", func() bool {
		m := f.metrics
		return int(value(t, m.connectionsRefused)+value(t, m.connectionsDisplaced)+value(t, m.connections)) >= want
	})
	most := DefaultLimits().Connections + DefaultLimits().Connections/16
	if got := int(value(t, f.metrics.connections)); got > most {
		t.Errorf("%d connections are open, want %d at most", got, most)
	}
	served(t, client)
	// A new client gets a connection at the expense of the client that has the most.
	served(t, dialFrom(t, "127.0.0.4", address))
	if got := value(t, f.metrics.connectionsDisplaced); got < 1 {
		t.Error("no connection made room for the newcomer")
	}
	// Goroutines of refused connections end, and stacks shrink, a moment later.
	var grown int64
	wait(t, "memory to have grown by 32 MiB at most", func() bool {
		grown = int64(heap()) - int64(before)
		return grown <= 32<<20
	})
	t.Logf("%d connections: %d refused, heap and stacks grew by %d KiB", want, int(value(t, f.metrics.connectionsRefused)), grown>>10)
}

// heap returns the number of bytes in use, stacks included.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn

	from string
}

func (c *fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }

func (*fakeConn) Close() error { return nil }

// fakeListener accepts the connections that it is given.
type fakeListener struct {
	net.Listener

	conns chan net.Conn
}

func (l *fakeListener) Accept() (net.Conn, error) { return <-l.conns, nil }

func TestClientsAreForgotten(t *testing.T) {
	limits := DefaultLimits()
	limits.CallRate = 1
	from := &fakeListener{conns: make(chan net.Conn, 1)}
	s := newConnections(from, limits, newMetrics("", ""), slog.New(slog.DiscardHandler))
	accept := func(host string) *connection {
		from.conns <- &fakeConn{from: host}
		accepted, err := s.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c, ok := accepted.(*connection)
		if !ok {
			t.Fatalf("accepted a %T", accepted)
		}
		return c
	}
	stays := accept("10.1.0.0")
	for i := range 3 * maxClients {
		c := accept(fmt.Sprintf("10.0.%d.%d", i/256, i%256))
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.rates) > maxClients+2 || len(s.open) != 1 {
		t.Errorf("%d clients and %d connections are remembered", len(s.rates), len(s.open))
	}
	if again := accept("10.1.0.0"); again.calls != stays.calls {
		t.Error("a client that is connected has another allowance for its second connection")
	}
}

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

// rawClient writes the frames of HTTP/2 itself.
type rawClient struct {
	*http2.Framer

	t    *testing.T
	conn net.Conn
	next uint32
}

// greet begins with HTTP/2 on a connection and grants that window to each
// stream.
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

// call makes a call and returns its stream; without a request it leaves that
// open.
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

// until reads frames until one of a kind comes.
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

// alive ends the test unless the connection is open.
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

// stallSoon are limits of a server that does not wait long for its clients.
func stallSoon() Limits {
	limits := DefaultLimits()
	limits.StallTimeout = 500 * time.Millisecond
	limits.PingInterval = time.Nanosecond
	return limits
}

// noise is a text that does not get smaller by compression.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(data)
}

// TestUnreadAnswers has clients that take an answer never, or not all of it,
// after the handler has ended.
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

// TestUnreadAnswersTLS has one of them on an encrypted connection.
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

// stallOne has a client stall from now on, and returns when it has been found.
// So whatever else waits by now has been looked at for as long.
func stallOne(t *testing.T, address string) {
	t.Helper()
	conn := connect(t, address)
	greet(t, conn, 0).call(api.Registry_GetPackage_FullMethodName, askPackage)
	closed(t, conn)
}

// TestResets has a client that takes no answer but says so.
func TestResets(t *testing.T) {
	f, address := startSmall(t, stallSoon(), noise(100<<10))
	f.waitLoaded(t)
	c := greet(t, connect(t, address), 0)
	for range 10 {
		// At once, when the answer may not have begun, ...
		c.must(c.WriteRSTStream(c.call(api.Registry_GetBundle_FullMethodName, askBundle), http2.ErrCodeCancel))
		c.must(c.WriteRSTStream(c.call(api.Registry_ListPackages_FullMethodName, nil), http2.ErrCodeCancel))
		// ... and when it has.
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

// TestQuietStreams has clients of streams on which there is nothing to say.
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

// TestSlowReader has a client that takes an answer bit by bit, for many times
// the timeout.
func TestSlowReader(t *testing.T) {
	f, address := startSmall(t, stallSoon(), noise(20<<10))
	f.waitLoaded(t)
	c := greet(t, connect(t, address), 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := c.call(api.Registry_GetBundle_FullMethodName, askBundle)
	granted := make(chan error, 1)
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				granted <- nil
				return
			case <-tick.C:
			}
			if err := c.WriteWindowUpdate(stream, leastTaken); err != nil {
				granted <- err
				return
			}
		}
	}()
	began := time.Now()
	c.until(http2.FrameHeaders, http2.FlagHeadersEndStream)
	cancel()
	if err := <-granted; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 4*stallSoon().StallTimeout {
		t.Errorf("the answer took %v, too short for this test", took)
	}
	if got := value(t, f.metrics.stalled); got != 0 {
		t.Errorf("%v connections stalled, want none", got)
	}
}

// TestCompressedAnswers has more calls under way than may have compressed
// answers.
func TestCompressedAnswers(t *testing.T) {
	limits := DefaultLimits()
	limits.ConnectionStreams = 2 * maxCompressed
	f, address := startSmall(t, limits, strings.Repeat("x", 100<<10))
	f.waitLoaded(t)
	askedFor := func(c *rawClient, path string, request proto.Message) int {
		stream, got := c.call(path, request, askGzip), 0
		for {
			head := c.until(http2.FrameData, 0)
			if got += int(head.Length); head.StreamID == stream {
				return got
			}
		}
	}
	asked := func(c *rawClient) int { return askedFor(c, api.Registry_GetBundle_FullMethodName, askBundle) }
	many := greet(t, connect(t, address), 1<<16)
	if got := asked(many); got > 2<<10 {
		t.Errorf("the answer to one call has %d bytes or more, it is not compressed", got)
	}
	for range maxCompressed {
		many.call(api.Registry_ListPackages_FullMethodName, nil)
	}
	if got := asked(many); got < 16<<10 {
		t.Errorf("an answer among many has %d bytes, it is compressed", got)
	}
	other := greet(t, connect(t, address), 1<<16)
	if got := asked(other); got < 16<<10 {
		t.Errorf("somebody else's answer has %d bytes, it is compressed", got)
	}
	third := greet(t, connect(t, address), 1<<16)
	if got := askedFor(third, api.Registry_ListBundles_FullMethodName, &api.ListBundlesRequest{}); got < 16<<10 {
		t.Errorf("a list has %d bytes, it is compressed", got)
	}
	many.must(many.conn.Close())
	third.must(third.conn.Close())
	wait(t, "the calls to be gone", func() bool { return f.listener.streams.Load() <= 1 })
	again := greet(t, connect(t, address), 1<<16)
	if got := asked(again); got > 2<<10 {
		t.Errorf("the answer has %d bytes or more when the others are gone, it is not compressed", got)
	}
}

// TestFrames cuts frames into pieces at all places.
func TestFrames(t *testing.T) {
	var out bytes.Buffer
	framer := http2.NewFramer(&out, nil)
	if err := errors.Join(framer.WriteSettings(), framer.WriteData(1, false, []byte(strings.Repeat("x", 300))),
		framer.WriteData(3, true, nil), writeCall(framer, 5, "/x"), framer.WriteRSTStream(7, http2.ErrCodeCancel)); err != nil {
		t.Fatal(err)
	}
	want := "SETTINGS 0 0 false, DATA 1 300 false, DATA 3 0 true, HEADERS 5 33 false, RST_STREAM 7 4 true"
	for size := 1; size <= out.Len(); size++ {
		var f frames
		var got []string
		for p := out.Bytes(); len(p) > 0; {
			piece := p[:min(size, len(p))]
			p = p[len(piece):]
			for {
				head, rest, ok := f.next(piece)
				if !ok {
					break
				}
				piece = rest
				got = append(got, fmt.Sprint(head.kind, " ", head.stream, " ", head.length, " ", head.last()))
			}
		}
		if joined := strings.Join(got, ", "); joined != want {
			t.Fatalf("pieces of %d bytes: got %s, want %s", size, joined, want)
		}
	}
}

// TestTrackedStreams makes sure that a client cannot have more streams
// remembered than there is a use for.
func TestTrackedStreams(t *testing.T) {
	a := answers{all: new(atomic.Int64)}
	a.received([]byte(http2.ClientPreface))
	var out bytes.Buffer
	framer := http2.NewFramer(&out, nil)
	for i := range uint32(2 * maxTracked) {
		if err := writeCall(framer, 2*i+1, "/x"); err != nil {
			t.Fatal(err)
		}
	}
	a.received(out.Bytes())
	if got := a.all.Load(); got != maxTracked || len(a.streams) != maxTracked {
		t.Errorf("%d streams are tracked and %d counted, want %d", len(a.streams), got, maxTracked)
	}
	a.end()
	a.received(out.Bytes())
	if got := a.all.Load(); got != 0 {
		t.Errorf("a connection that has ended counts for %d streams", got)
	}
}

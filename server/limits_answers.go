package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
)

const (
	// leastTaken is how much of an answer a client must take within the stall
	// timeout, or else its end.
	leastTaken = 1 << 10
	// maxTracked is how many streams of a connection are kept track of: more
	// than gRPC lets a client have, with those that it is still refusing.
	maxTracked = 4096
	// maxCompressed is how many streams the server may have for one more to get
	// its answer compressed. A compressed answer is memory of its own as long as
	// it waits for the client; others are mostly the index.
	maxCompressed = 128
)

// answers follows the answers on a connection until their last frame is out.
// gRPC ends a call for its handler as soon as the answer waits in a queue, and
// tells nobody how long it waits there for a client to make room for it. The
// frames on the connection do tell.
type answers struct {
	mu sync.Mutex
	// greeted is set once the preface is being skipped, which is no frame.
	greeted bool
	in, out frames
	streams map[uint32]outgoing
	// all is how many streams all connections have; done is set when this one
	// has no more of them.
	all  *atomic.Int64
	done bool
}

// outgoing is what one stream got.
type outgoing struct {
	// begun is set once the headers are out, since is when they were or when
	// leastTaken bytes had followed, and taken what followed since.
	begun bool
	since time.Duration
	taken int
}

// received looks at what the client sent.
func (a *answers) received(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.greeted {
		a.greeted, a.in.skip = true, len(http2.ClientPreface)
	}
	for {
		head, rest, ok := a.in.next(p)
		if !ok {
			return
		}
		p = rest
		switch head.kind {
		case http2.FrameHeaders:
			a.open(head.stream)
		case http2.FrameRSTStream:
			a.close(head.stream)
		default:
		}
	}
}

// open begins with a stream.
func (a *answers) open(stream uint32) {
	if _, ok := a.streams[stream]; ok || a.done || len(a.streams) >= maxTracked {
		return
	}
	a.all.Add(1)
	if a.streams == nil {
		a.streams = map[uint32]outgoing{}
	}
	a.streams[stream] = outgoing{}
}

// close ends a stream, if it is there.
func (a *answers) close(stream uint32) {
	if _, ok := a.streams[stream]; ok {
		delete(a.streams, stream)
		a.all.Add(-1)
	}
}

// end ends all streams: the connection does.
func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all.Add(-int64(len(a.streams)))
	a.streams, a.done = nil, true
}

// sent looks at what the client got.
func (a *answers) sent(p []byte, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Frames of one stream often follow each other.
	var current uint32
	taken := 0
	for {
		head, rest, ok := a.out.next(p)
		if !ok {
			a.take(current, taken, now)
			return
		}
		p = rest
		if head.stream != current {
			a.take(current, taken, now)
			current, taken = head.stream, 0
		}
		switch head.kind {
		case http2.FrameHeaders:
			if _, known := a.streams[head.stream]; known {
				a.streams[head.stream] = outgoing{begun: true, since: now}
			}
		case http2.FrameData:
			taken += head.length
		default:
		}
		if head.last() {
			a.close(head.stream)
		}
	}
}

// take records that a stream got on.
func (a *answers) take(stream uint32, taken int, now time.Duration) {
	if taken == 0 {
		return
	}
	s, ok := a.streams[stream]
	if !ok {
		return
	}
	if s.taken += taken; s.taken >= leastTaken {
		s.since, s.taken = now, 0
	}
	a.streams[stream] = s
}

// waiting returns how many answers have begun and neither ended nor got on for
// the timeout.
func (a *answers) waiting(now, timeout time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, s := range a.streams {
		if s.begun && now-s.since >= timeout {
			n++
		}
	}
	return n
}

// compress keeps the answer to a call from being compressed when there are many
// others.
func (s *connections) compress(ctx context.Context) {
	if s.streams.Load() > maxCompressed {
		// It fails only for what is no call.
		_ = grpc.SetSendCompressor(ctx, encoding.Identity)
	}
}

// frameHeadSize is the size of what each frame of HTTP/2 begins with.
const frameHeadSize = 9

// frames finds the frames in one direction of a connection, whatever pieces it
// comes in.
type frames struct {
	// skip bytes to the next head, of which there are so many bytes already.
	skip int
	head [frameHeadSize]byte
	have int
}

// frameHead is what a frame begins with.
type frameHead struct {
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
	length int
}

// last tells whether a stream ends with the frame for who sends it.
func (h frameHead) last() bool {
	switch h.kind {
	case http2.FrameRSTStream:
		return true
	case http2.FrameHeaders:
		return h.flags.Has(http2.FlagHeadersEndStream)
	case http2.FrameData:
		return h.flags.Has(http2.FlagDataEndStream)
	default:
		return false
	}
}

// next returns the next head in a piece and what comes after it, or false when
// the piece ends before that.
func (f *frames) next(p []byte) (head frameHead, rest []byte, ok bool) {
	n := min(f.skip, len(p))
	f.skip -= n
	p = p[n:]
	n = copy(f.head[f.have:], p)
	f.have += n
	if f.have < frameHeadSize {
		return frameHead{}, nil, false
	}
	length := int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.have, f.skip = 0, length
	return frameHead{
		kind: http2.FrameType(f.head[3]), flags: http2.Flags(f.head[4]), length: length,
		stream: binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31),
	}, p[n:], true
}

// errForeign is no mistake of a client's.
var errForeign = errors.New("a connection that was not accepted by the server")

// observed are credentials of a server that follow the answers on encrypted
// connections, where the connection itself does not see frames.
type observed struct {
	credentials.TransportCredentials
}

// ServerHandshake implements [credentials.TransportCredentials].
func (o observed) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := o.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	c, ok := raw.(*connection)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %T", errForeign, raw)
	}
	return &observedConn{Conn: conn, connection: c}, info, nil
}

// Clone implements [credentials.TransportCredentials].
func (o observed) Clone() credentials.TransportCredentials {
	return observed{o.TransportCredentials.Clone()}
}

// observedConn is the inside of an encrypted connection.
type observedConn struct {
	net.Conn

	connection *connection
}

// Read implements [net.Conn].
func (c *observedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.connection.answers.received(p[:n])
	return n, err
}

// Write implements [net.Conn].
func (c *observedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.connection.answers.sent(p[:n], c.connection.set.now())
	return n, err
}

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// dialTimeout and dialKeepAlive are the values of client-go.
	dialTimeout   = 30 * time.Second
	dialKeepAlive = 30 * time.Second
	// maxFencedWrite is the maximum number of bytes that are written between two checks of the fence.
	maxFencedWrite = 16 << 10
)

// fenceWrites returns a configuration whose clients write only while the fence is open. Writes that only a
// leader may make use separate connections, which check the fence before each system call. A request in the
// buffers of HTTP/2 or TLS of a frozen process is thus not sent afterwards. Reads, and writes that a standby
// may make, use other connections.
//
// unacknowledged bounds how long the kernel may retransmit bytes that it received in time.
func fenceWrites(cfg *rest.Config, f *fence, unacknowledged time.Duration) (*rest.Config, error) {
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialKeepAlive}).DialContext
	}
	leading := rest.CopyConfig(cfg)
	leading.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err //nolint:wrapcheck // it stands for the other
		}
		if err := limitUnacknowledged(conn, unacknowledged); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing a connection to %s: %w", address, err), conn.Close())
		}
		return &fencedConn{Conn: conn, fence: f}, nil
	}
	writes, err := rest.TransportFor(leading)
	if err != nil {
		return nil, fmt.Errorf("preparing the connections for what the leader writes: %w", err)
	}
	guarded := rest.CopyConfig(cfg)
	guarded.Wrap(func(next http.RoundTripper) http.RoundTripper { return f.wrap(next, writes) })
	return guarded, nil
}

// fencedConn is a connection that accepts bytes only while the fence is open, and is closed once it is not.
type fencedConn struct {
	net.Conn

	fence *fence
}

// Write writes while the fence is open. A write that the peer delays ends when the fence closes.
func (c *fencedConn) Write(p []byte) (int, error) {
	written := 0
	for {
		piece := p[written:min(len(p), written+maxFencedWrite)]
		left := c.fence.remaining()
		if left <= 0 {
			return written, errors.Join(fmt.Errorf("writing to %s: %w", c.RemoteAddr(), ErrNotLeading), c.Close())
		}
		if err := c.SetWriteDeadline(time.Now().Add(left)); err != nil {
			return written, err //nolint:wrapcheck // it stands for the other
		}
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil || written == len(p) {
			return written, err //nolint:wrapcheck // it stands for the other
		}
	}
}

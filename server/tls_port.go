package server

import (
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// twoPorts accepts the connections of two listeners, so that both share the limits. Its address is that of the first one.
type twoPorts struct {
	plain, secured net.Listener
	accepted       chan acceptResult
	closed         chan struct{}
	close          func() error
}

// acceptResult is a result of Accept.
type acceptResult struct {
	conn net.Conn
	err  error
}

func newTwoPorts(plain, secured net.Listener) *twoPorts {
	l := &twoPorts{plain: plain, secured: secured, accepted: make(chan acceptResult), closed: make(chan struct{})}
	var accepting sync.WaitGroup
	for _, one := range []net.Listener{plain, secured} {
		accepting.Go(func() { l.accept(one) })
	}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		err := errors.Join(plain.Close(), secured.Close())
		accepting.Wait()
		return err
	})
	return l
}

// accept passes on the connections of one listener until it is closed.
func (l *twoPorts) accept(from net.Listener) {
	for {
		conn, err := from.Accept()
		select {
		case l.accepted <- acceptResult{conn, err}:
		case <-l.closed:
			if conn != nil {
				_ = conn.Close() // no call uses it
			}
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept implements [net.Listener].
func (l *twoPorts) Accept() (net.Conn, error) {
	select {
	case next := <-l.accepted:
		return next.conn, next.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *twoPorts) Close() error { return l.close() }

// Addr implements [net.Listener].
func (l *twoPorts) Addr() net.Addr { return l.plain.Addr() }

// securedPort encrypts the connections to one port, and no others.
type securedPort struct {
	credentials.TransportCredentials

	port int
}

// ServerHandshake implements [credentials.TransportCredentials].
func (s securedPort) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if address, is := conn.LocalAddr().(*net.TCPAddr); is && address.Port == s.port {
		return s.TransportCredentials.ServerHandshake(conn) //nolint:wrapcheck // gRPC logs it
	}
	return insecure.NewCredentials().ServerHandshake(conn) //nolint:wrapcheck // gRPC logs it
}

// Clone implements [credentials.TransportCredentials].
func (s securedPort) Clone() credentials.TransportCredentials {
	return securedPort{s.TransportCredentials.Clone(), s.port}
}

package connlimit

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Limits of the servers that [NewHTTPServer] returns.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
)

// NewHTTPServer returns a server for small answers, such as metrics and probes, on a listener. Each
// request and each answer has a time limit. Call Serve with the same listener.
func NewHTTPServer(l *Listener, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ConnState: l.ConnState,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
}

// ConnState records which connections have a request. It is the hook ConnState
// of an [http.Server]. With TLS, the hook gets the connection above.
func (l *Listener) ConnState(conn net.Conn, state http.ConnState) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c, ok := conn.(*Conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.Begin()
	case http.StateIdle:
		c.End()
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

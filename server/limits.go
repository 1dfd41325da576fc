package server

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits bound what clients may take from the server. [DefaultLimits] are meant
// for a server with 50 MiB of memory that everybody in a cluster can reach.
type Limits struct {
	// RequestBytes is the size of the largest request.
	RequestBytes int
	// HeaderBytes is the size of the largest list of request headers.
	HeaderBytes uint32
	// ConnectionStreams is how many calls one connection may have under way.
	// Well-behaved clients wait for their turn.
	ConnectionStreams uint32
	// Connections is how many there may be at a time; 0 for any number. Beyond
	// it a connection of the client with the most connections makes room for a
	// new one, or the new one is kept for a few seconds only.
	Connections int
	// CallRate is how many calls a second each client address may make on the
	// average, and CallBurst how many at once; a CallRate of 0 for any number.
	CallRate  float64
	CallBurst int
	// HandshakeTimeout is how long a client may take to become one, TLS
	// included.
	HandshakeTimeout time.Duration
	// IdleTimeout ends connections that have had no call for this long; 0 for
	// never.
	IdleTimeout time.Duration
	// StallTimeout ends the connection of a client that reads nothing for this
	// long although there are messages for it, or that has not taken a message
	// after this long and a second for each 16 KiB of it; 0 for never.
	StallTimeout time.Duration
	// KeepaliveInterval is how long nothing may be heard of a client before it
	// is asked whether it is there, and KeepaliveTimeout how long the answer
	// may take.
	KeepaliveInterval time.Duration
	KeepaliveTimeout  time.Duration
	// PingInterval is how often a client may ask whether the server is there.
	PingInterval time.Duration
}

// DefaultLimits leave room for what real clients do: thousands of calls at
// once on one connection, which stays open for days.
func DefaultLimits() Limits {
	return Limits{
		RequestBytes:      64 << 10,
		HeaderBytes:       16 << 10,
		ConnectionStreams: 100,
		Connections:       250,
		CallBurst:         2000,
		HandshakeTimeout:  10 * time.Second,
		IdleTimeout:       6 * time.Hour,
		StallTimeout:      2 * time.Minute,
		KeepaliveInterval: time.Minute,
		KeepaliveTimeout:  20 * time.Second,
		PingInterval:      5 * time.Second,
	}
}

var (
	errLimitPositive = errors.New("must be greater than 0")
	errLimitNegative = errors.New("must not be negative")
)

// Validate names the first limit that makes no sense, by the names of the
// flags that set them.
func (l Limits) Validate() error {
	for _, limit := range []struct {
		name  string
		value float64
	}{
		{"max-request-size", float64(l.RequestBytes)},
		{"max-header-size", float64(l.HeaderBytes)},
		{"max-connection-streams", float64(l.ConnectionStreams)},
		{"max-call-burst", float64(l.CallBurst)},
		{"handshake-timeout", float64(l.HandshakeTimeout)},
		{"keepalive-interval", float64(l.KeepaliveInterval)},
		{"keepalive-timeout", float64(l.KeepaliveTimeout)},
		{"min-ping-interval", float64(l.PingInterval)},
	} {
		if limit.value <= 0 {
			return fmt.Errorf("%s %w", limit.name, errLimitPositive)
		}
	}
	for _, limit := range []struct {
		name  string
		value float64
	}{
		{"max-connections", float64(l.Connections)},
		{"max-call-rate", l.CallRate},
		{"idle-timeout", float64(l.IdleTimeout)},
		{"stall-timeout", float64(l.StallTimeout)},
	} {
		if limit.value < 0 {
			return fmt.Errorf("%s %w", limit.name, errLimitNegative)
		}
	}
	return nil
}

const (
	// readBuffer is for each connection and therefore small: requests are, too.
	readBuffer = 4 << 10
	// writeBuffer is taken from a pool while there is something to write.
	writeBuffer = 32 << 10
	// streamWorkers answer calls one after the other on stacks that have grown
	// already. Calls beyond that number have a goroutine of their own.
	streamWorkers = 64
)

// options are those limits that gRPC keeps by itself.
func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(l.RequestBytes),
		grpc.MaxHeaderListSize(l.HeaderBytes),
		grpc.MaxConcurrentStreams(l.ConnectionStreams),
		grpc.ConnectionTimeout(l.HandshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: l.IdleTimeout, Time: l.KeepaliveInterval, Timeout: l.KeepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: l.PingInterval, PermitWithoutStream: true}),
	}
}

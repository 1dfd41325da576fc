package server

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits bound what clients may use. [DefaultLimits] suit a server with 50 MiB of memory that
// everything in a cluster can reach.
type Limits struct {
	// RequestBytes is the size of the largest request.
	RequestBytes int
	// HeaderBytes is the size of the largest list of request headers.
	HeaderBytes uint32
	// ConnectionStreams is how many calls one connection may have in progress. gRPC clients queue further calls.
	ConnectionStreams uint32
	// Connections is the largest number of connections; 0 for any number. Beyond it, the server
	// closes a connection of the client that has the most, or keeps the new one for a few seconds
	// only.
	Connections int
	// CallRate is the number of calls per second that each client address may make on average.
	// CallBurst is how many it may make at once. A CallRate of 0 allows any number.
	CallRate  float64
	CallBurst int
	// HandshakeTimeout is how long the handshake of a new connection may take, TLS included.
	HandshakeTimeout time.Duration
	// IdleTimeout is the time after which connections without a call are closed; 0 for never.
	IdleTimeout time.Duration
	// StallTimeout is the time after which a connection is closed if messages wait and the client
	// reads nothing. For each message, the client has this time and one second for each 16 KiB; 0
	// for never.
	StallTimeout time.Duration
	// KeepaliveInterval is the time without data from a client after which the server pings it.
	// KeepaliveTimeout is how long the answer may take.
	KeepaliveInterval time.Duration
	KeepaliveTimeout  time.Duration
	// PingInterval is the shortest time between two pings of a client.
	PingInterval time.Duration
}

// DefaultLimits returns limits with room for real clients: thousands of concurrent calls on one
// connection that stays open for days.
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

// Validate returns an error for the first invalid limit. It names the limit by its flag.
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
	// readBuffer is small because each connection has one and requests are small.
	readBuffer = 4 << 10
	// writeBuffer comes from a pool while there is something to write.
	writeBuffer = 32 << 10
	// streamWorkers is the number of goroutines that are reused for calls, whose stacks have
	// already grown. Calls beyond that number run on new goroutines.
	streamWorkers = 64
)

// options returns the limits that gRPC enforces.
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

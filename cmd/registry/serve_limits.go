package main

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/pulling"
	"github.com/chandlery/chandlery/server"
)

// limitFlags are the flags that bound what clients may use.
type limitFlags struct {
	values  server.Limits
	request pulling.ByteSize
	headers pulling.ByteSize
}

// AddFlags adds the flags with their defaults.
func (o *limitFlags) AddFlags(flags *pflag.FlagSet) {
	o.values = server.DefaultLimits()
	o.request, o.headers = pulling.ByteSize(o.values.RequestBytes), pulling.ByteSize(o.values.HeaderBytes)
	flags.Var(&o.request, "max-request-size", "largest request, in bytes or with a unit, such as 64Ki")
	flags.Var(&o.headers, "max-header-size", "largest total size of request headers, in bytes or with a unit, such as 16Ki")
	flags.Uint32Var(&o.values.ConnectionStreams, "max-connection-streams", o.values.ConnectionStreams,
		"largest number of concurrent calls on one connection; further calls wait")
	flags.IntVar(&o.values.Connections, "max-connections", o.values.Connections,
		"largest number of connections; at the limit, the server closes a connection of the client with the most connections, or else the new one after 5s; 0: no limit")
	flags.Float64Var(&o.values.CallRate, "max-call-rate", o.values.CallRate,
		"largest average number of calls per second from each client address; 0: no limit")
	flags.IntVar(&o.values.CallBurst, "max-call-burst", o.values.CallBurst,
		"largest burst of calls from each client address, if --max-call-rate sets a limit")
	flags.DurationVar(&o.values.HandshakeTimeout, "handshake-timeout", o.values.HandshakeTimeout,
		"time limit for a new connection to become ready for calls")
	flags.DurationVar(&o.values.IdleTimeout, "idle-timeout", o.values.IdleTimeout,
		"time after which a connection without calls is closed; 0: never")
	flags.DurationVar(&o.values.StallTimeout, "stall-timeout", o.values.StallTimeout,
		"time limit for a client to read a message, plus 1s for each 16Ki of the message; then the server closes the connection; 0: no limit")
	flags.DurationVar(&o.values.KeepaliveInterval, "keepalive-interval", o.values.KeepaliveInterval,
		"idle time of a client after which the server sends a keepalive ping")
	flags.DurationVar(&o.values.KeepaliveTimeout, "keepalive-timeout", o.values.KeepaliveTimeout,
		"time limit for the answer to a keepalive ping, before the server closes the connection")
	flags.DurationVar(&o.values.PingInterval, "min-ping-interval", o.values.PingInterval,
		"shortest time between two pings of a client; a client that pings more often is disconnected")
}

// limits returns the limits that the flags set.
func (o *limitFlags) limits() server.Limits {
	l := o.values
	l.RequestBytes = int(min(o.request, math.MaxInt32))
	l.HeaderBytes = uint32(min(max(o.headers, 0), math.MaxInt32))
	return l
}

package main

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/cmd/internal/pulling"
	"github.com/chandlery/chandlery/server"
)

// limitFlags are the flags that bound what clients may take.
type limitFlags struct {
	values  server.Limits
	request pulling.ByteSize
	headers pulling.ByteSize
}

// AddFlags adds the flags with their defaults.
func (o *limitFlags) AddFlags(flags *pflag.FlagSet) {
	o.values = server.DefaultLimits()
	o.request, o.headers = pulling.ByteSize(o.values.RequestBytes), pulling.ByteSize(o.values.HeaderBytes)
	flags.Var(&o.request, "max-request-size", "size of the largest request, in bytes or as 64Ki")
	flags.Var(&o.headers, "max-header-size", "size of the largest list of request headers, in bytes or as 16Ki")
	flags.Uint32Var(&o.values.ConnectionStreams, "max-connection-streams", o.values.ConnectionStreams,
		"number of calls that one connection may have under way; further ones wait")
	flags.IntVar(&o.values.Connections, "max-connections", o.values.Connections,
		"number of connections; beyond it one of the client with the most makes room, or the new one is kept for 5s; 0 for any number")
	flags.Float64Var(&o.values.CallRate, "max-call-rate", o.values.CallRate,
		"number of calls per second that each client address may make on the average; 0 for any number")
	flags.IntVar(&o.values.CallBurst, "max-call-burst", o.values.CallBurst,
		"number of calls that each client address may make at once where --max-call-rate bounds them")
	flags.DurationVar(&o.values.HandshakeTimeout, "handshake-timeout", o.values.HandshakeTimeout,
		"time that a new connection may take until it can carry calls")
	flags.DurationVar(&o.values.IdleTimeout, "idle-timeout", o.values.IdleTimeout,
		"time after which a connection without calls is ended; 0 for never")
	flags.DurationVar(&o.values.StallTimeout, "stall-timeout", o.values.StallTimeout,
		"time after which the connection of a client that does not read is closed; each message has a second more for each 16Ki; 0 for never")
	flags.DurationVar(&o.values.KeepaliveInterval, "keepalive-interval", o.values.KeepaliveInterval,
		"time without a sign of a client after which it is asked whether it is there")
	flags.DurationVar(&o.values.KeepaliveTimeout, "keepalive-timeout", o.values.KeepaliveTimeout,
		"time that a client has to answer that")
	flags.DurationVar(&o.values.PingInterval, "min-ping-interval", o.values.PingInterval,
		"least time between two such questions of a client; one that asks more often is disconnected")
}

// limits returns what the flags say.
func (o *limitFlags) limits() server.Limits {
	l := o.values
	l.RequestBytes = int(min(o.request, math.MaxInt32))
	l.HeaderBytes = uint32(min(max(o.headers, 0), math.MaxInt32))
	return l
}

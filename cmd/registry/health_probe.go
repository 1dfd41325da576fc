package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// probeName is the name under which the program is grpc_health_probe. OLM up to v0.46 probes catalog pods with
// "grpc_health_probe -addr=:50051", so that the image needs this program
// (github.com/grpc-ecosystem/grpc-health-probe).
const probeName = "grpc_health_probe"

// Exit codes of grpc_health_probe.
const (
	probeServing = iota
	probeInvalidFlags
	probeNotConnected
	probeCallFailed
	probeNotServing
)

// probeOptions are the flags of grpc_health_probe. Those for TLS are not supported.
type probeOptions struct {
	address, service            string
	connectTimeout, callTimeout time.Duration
}

// probe asks a server for its health, and returns the exit code. It writes the result or the problem to out.
func probe(ctx context.Context, args []string, out io.Writer) int {
	o := probeOptions{}
	flags := flag.NewFlagSet(probeName, flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.address, "addr", "", "host:port of the gRPC server")
	flags.StringVar(&o.service, "service", "", "service to ask for; empty for the server")
	flags.DurationVar(&o.connectTimeout, "connect-timeout", time.Second, "time limit for the connection")
	flags.DurationVar(&o.callTimeout, "rpc-timeout", time.Second, "time limit for the call")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return probeServing
	case err != nil:
		return probeInvalidFlags
	case o.address == "" || flags.NArg() > 0:
		fmt.Fprintf(out, "%s: name the server with -addr=HOST:PORT, and nothing else\n", probeName)
		return probeInvalidFlags
	}
	code, result := o.ask(ctx)
	fmt.Fprintln(out, result)
	return code
}

// ask connects to the server and asks it. result is the status or the problem.
func (o *probeOptions) ask(ctx context.Context) (code int, result string) {
	conn, err := grpc.NewClient("passthrough:///"+o.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent(probeName))
	if err != nil {
		return probeInvalidFlags, fmt.Sprintf("%s: -addr=%s: %v", probeName, o.address, err)
	}
	defer conn.Close() //nolint:errcheck // the process ends
	if !connected(ctx, conn, o.connectTimeout) {
		return probeNotConnected, fmt.Sprintf("%s: no connection to %s within %s", probeName, o.address, o.connectTimeout)
	}
	calling, cancel := context.WithTimeout(ctx, o.callTimeout)
	defer cancel()
	reply, err := healthpb.NewHealthClient(conn).Check(calling, &healthpb.HealthCheckRequest{Service: o.service})
	if err != nil {
		return probeCallFailed, fmt.Sprintf("%s: asking %s for its health: %v", probeName, o.address, err)
	}
	if reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		code = probeNotServing
	}
	return code, "status: " + reply.GetStatus().String()
}

// connected reports whether a connection is established within a time.
func connected(ctx context.Context, conn *grpc.ClientConn, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return false
		}
	}
	return true
}

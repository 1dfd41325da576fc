// Command healthprobe checks the health of a gRPC server, like the program grpc_health_probe in opm's own images. The
// exit code is 0 if the server answers SERVING.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	address := flag.String("addr", "", "the address of the server")
	limit := flag.Duration("rpc-timeout", time.Second, "the limit for the answer")
	flag.Parse()
	if err := probe(*address, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "healthprobe:", err)
		os.Exit(1)
	}
}

func probe(address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	defer connection.Close() //nolint:errcheck // nothing was written
	answer, err := health.NewHealthClient(connection).Check(ctx, &health.HealthCheckRequest{})
	if err != nil {
		return fmt.Errorf("asking %s: %w", address, err)
	}
	if answer.GetStatus() != health.HealthCheckResponse_SERVING {
		return fmt.Errorf("the server at %s is %s", address, answer.GetStatus())
	}
	return nil
}

// Command bed keeps one test bed of real nodes (package nodes) running for a person to
// work with, as root:
//
//	go run ./test/nodes/bed up|down|status|build
//	go run ./test/nodes/bed lost N|back N
//	go run ./test/nodes/bed push PATH REPOSITORY:TAG
//
// up builds what is missing, starts a bed that goes on running, waits until its nodes are
// Ready and prints how to use it; with one running it only prints. down stops it and
// removes what it made. lost takes a node away as a power cut does, back returns it and
// waits until it is Ready. push puts images into the registry of the bed: PATH is an OCI
// layout or an archive of `docker save`. build only builds, which needs no root.
//
// Its state is kept below $CHANDLERY_CACHE (by default the user's cache folder).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

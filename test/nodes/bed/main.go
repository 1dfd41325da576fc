// Command bed runs one test bed of real nodes (package nodes) for interactive use, as root:
//
//	go run ./test/nodes/bed up|down|status|build
//	go run ./test/nodes/bed lost N|back N
//	go run ./test/nodes/bed push PATH REPOSITORY:TAG
//
// up builds what is missing, starts a bed that remains running, waits until its nodes are Ready and
// prints how to use it. If one runs, up only prints. down stops it and removes what it created.
// lost stops a node like a power cut; back starts it again and waits until it is Ready. push pushes
// images to the registry of the bed: PATH is an OCI layout or an archive of `docker save`. build
// only builds, which needs no root.
//
// Its state is below $CHANDLERY_CACHE (by default the user's cache folder).
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

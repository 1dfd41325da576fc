package caller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
)

// Pace is the pace of a client's calls.
type Pace struct {
	// Every is the time between the starts of two calls of a style.
	Every time.Duration
	// Timeout is the deadline of each call.
	Timeout time.Duration
}

// DefaultPace calls twenty times a second and gives up after a second.
var DefaultPace = Pace{Every: 50 * time.Millisecond, Timeout: time.Second}

// The keepalive parameters of the long-lived connection: the shortest interval that a registry
// allows by default, and the time without an answer after which the connection is closed.
const (
	keepaliveInterval = 10 * time.Second // the shortest interval that gRPC clients support
	// keepaliveTimeout is also TCP's user timeout, which grpc-go sets with keepalive.
	keepaliveTimeout = 2 * time.Second
	// connectTimeout bounds an attempt to connect. With gRPC's default of 20 s, a client would hang
	// that long on a pod of a lost node.
	connectTimeout = time.Second
)

// Run calls address in every style until ctx ends. It reports each finished call, one at a time,
// and returns after the last one.
func Run(ctx context.Context, address string, pace Pace, report func(Call)) (err error) {
	retry := backoff.DefaultConfig
	retry.MaxDelay = connectTimeout
	long, err := grpc.NewClient(address,
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout, PermitWithoutStream: true}))
	if err != nil {
		return fmt.Errorf("preparing a connection to %s: %w", address, err)
	}
	defer func() { err = errors.Join(err, long.Close()) }()

	var (
		styles sync.WaitGroup
		mu     sync.Mutex
	)
	tell := func(c Call) {
		mu.Lock()
		defer mu.Unlock()
		report(c)
	}
	styles.Go(func() {
		steadily(ctx, NewConnection, pace, tell, func(ctx context.Context) error { return askAnew(ctx, address) })
	})
	styles.Go(func() {
		steadily(ctx, LongLived, pace, tell, func(ctx context.Context) error { return ask(ctx, long) })
	})
	styles.Wait()
	return nil
}

// steadily starts a call at each tick, whether or not earlier ones have finished.
func steadily(ctx context.Context, style Style, pace Pace, report func(Call), ask func(context.Context) error) {
	var calls sync.WaitGroup
	defer calls.Wait()
	ticker := time.NewTicker(pace.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		calls.Go(func() {
			// A call in progress at the end may still succeed.
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pace.Timeout)
			defer cancel()
			c := Call{Style: style, Begun: time.Now()}
			if err := ask(limited); err != nil {
				c.Err = status.Code(err).String()
			}
			c.Ended = time.Now()
			report(c)
		})
	}
}

func askAnew(ctx context.Context, address string) (err error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("preparing a connection to %s: %w", address, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return ask(ctx, conn)
}

// ask lists the packages, which every catalog answers quickly.
func ask(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := api.NewRegistryClient(conn).ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

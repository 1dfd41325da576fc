package caller

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
)

// moody answers until it is set not to.
type moody struct {
	api.UnimplementedRegistryServer

	silent atomic.Bool
}

func (m *moody) ListPackages(_ *api.ListPackageRequest, stream api.Registry_ListPackagesServer) error {
	if m.silent.Load() {
		return status.Error(codes.Unavailable, "in no mood")
	}
	return stream.Send(&api.PackageName{Name: "lantern"})
}

// TestRun calls a server that answers, then fails, and then answers again.
func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := &moody{}
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, service)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var calls []Call
	from := time.Now()
	well := map[Style]int{}
	// Wait for enough calls of each kind: successful, then failed, then successful.
	wanted := func(style Style) int { return well[style] }
	err = Run(ctx, listener.Addr().String(), Pace{Every: 25 * time.Millisecond, Timeout: 10 * time.Second}, func(c Call) {
		calls = append(calls, c)
		if (c.Err == "") == !service.silent.Load() {
			well[c.Style]++
		}
		const each = 20
		if wanted(NewConnection) < each || wanted(LongLived) < each {
			return
		}
		clear(well)
		if service.silent.Load() {
			cancel()
		}
		service.silent.Store(true)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, style := range []Style{NewConnection, LongLived} {
		s := Summarise(calls, style, from, time.Now())
		if s.Failed < 10 || s.Calls-s.Failed < 10 || s.Failing <= 0 || s.Errors[codes.Unavailable.String()] != s.Failed {
			t.Errorf("%s: %+v", style, s)
		}
	}
}

package extension

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bundles"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// watch opens a watch and returns its stream.
func (f *fixture) watch(t *testing.T, ctx context.Context) grpc.ServerStreamingClient[registryv1.WatchResponse] {
	t.Helper()
	stream, err := f.Watch(ctx, &registryv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func next(t *testing.T, stream grpc.ServerStreamingClient[registryv1.WatchResponse]) *registryv1.WatchResponse {
	t.Helper()
	state, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestWatch(t *testing.T) {
	t.Parallel()
	f := start(t)
	stream := f.watch(t, deadline(t))
	if state := next(t, stream); state.GetContent() != nil || state.GetFailure() != nil {
		t.Errorf("before anything was loaded: %v", state)
	}
	old := build(t, sample)
	f.serve(old)
	if state := next(t, stream); state.GetContent().GetDigest() != old.Digest() || state.GetFailure() != nil {
		t.Errorf("with content: %v", state)
	}
	failedAt := loadedAt.Add(time.Hour)
	problem := bundles.Problem{File: "a.yaml:3", Package: "p", Channel: "c", Bundle: "b", Message: "is wrong", Remedy: "fix it"}
	f.Failed(fmt.Errorf("loading: %w", bundles.Problems{problem}), failedAt)
	state := next(t, stream)
	if state.GetContent().GetDigest() != old.Digest() || !state.GetFailure().GetFailedAt().AsTime().Equal(failedAt) ||
		state.GetFailure().GetTotalProblems() != 1 {
		t.Errorf("after a failure: %v", state)
	}
	got := state.GetFailure().GetProblems()[0]
	if back := (bundles.Problem{
		File: got.GetFile(), Package: got.GetPackage(), Channel: got.GetChannel(), Bundle: got.GetBundle(),
		Message: got.GetMessage(), Remedy: got.GetRemedy(),
	}); back != problem {
		t.Errorf("the problem is sent as %v", got)
	}
	if info, err := f.GetInfo(t.Context(), &registryv1.GetInfoRequest{}); err != nil || info.GetFailure() == nil {
		t.Errorf("GetInfo after a failure: %v, %v", info, err)
	}
	changed := build(t, catalogOf(1, 1))
	f.serve(changed)
	if state := next(t, stream); state.GetContent().GetDigest() != changed.Digest() || state.GetFailure() != nil {
		t.Errorf("with other content: %v", state)
	}
	late := next(t, f.watch(t, deadline(t)))
	if late.GetContent().GetDigest() != changed.Digest() {
		t.Errorf("a watch that begins later starts with %v", late)
	}
}

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	problems := make(bundles.Problems, maxListed+1)
	for i := range problems {
		problems[i].Message = strconv.Itoa(i)
	}
	got := State{Failure: problems}.failure()
	if len(got.GetProblems()) != maxListed || got.GetTotalProblems() != maxListed+1 {
		t.Errorf("got %d of %d problems", len(got.GetProblems()), got.GetTotalProblems())
	}
	plain := State{Failure: errors.New("boom")}.failure()
	if len(plain.GetProblems()) != 1 || plain.GetProblems()[0].GetMessage() != "boom" {
		t.Errorf("an error of another kind: %v", plain)
	}
}

// Watches end when the server stops and do not delay the stop.
func TestWatchEndsWithTheServer(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	streams := make([]grpc.ServerStreamingClient[registryv1.WatchResponse], 3)
	for i := range streams {
		streams[i] = f.watch(t, deadline(t))
		next(t, streams[i])
	}
	f.service.Shutdown()
	f.service.Shutdown()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		f.server.GracefulStop()
	}()
	for _, stream := range streams {
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want %s", err, codes.Unavailable)
		}
	}
	select {
	case <-stopped:
	case <-deadline(t).Done():
		t.Error("the server does not stop")
	}
}

// A watch ends when its client disconnects. goleak checks for leaked goroutines.
func TestWatchEndsWithTheClient(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	ctx, cancel := context.WithCancel(deadline(t))
	stream := f.watch(t, ctx)
	next(t, stream)
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want %s", err, codes.Canceled)
	}
}

// A client that does not read gets only the latest state.
func TestWatchSkipsWhatIsOver(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	stream := f.watch(t, deadline(t))
	next(t, stream)
	for i := range 1000 {
		f.Failed(fmt.Errorf("failure %d", i), loadedAt)
	}
	x := build(t, catalogOf(1, 1))
	f.serve(x)
	for read := 1; ; read++ {
		state := next(t, stream)
		if state.GetContent().GetDigest() == x.Digest() {
			t.Logf("read %d of 1001 states", read)
			return
		}
	}
}

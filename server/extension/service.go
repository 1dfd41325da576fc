package extension

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// ServiceName is the full name of the service in health checks.
const ServiceName = "chandlery.registry.v1.RegistryService"

// Config configures a [Service].
type Config struct {
	// Current returns the index to answer from, or nil if there is none yet. Each call reads it once.
	Current func() *index.Index
	// Damaged is called with an index that turns out to be damaged; nil for nothing.
	Damaged func(*index.Index, error)
	// Content provides the state of the served content.
	Content Content
	// Version and Commit of the program.
	Version, Commit string
}

// Service answers the RPCs of chandlery.registry.v1.
type Service struct {
	registryv1.UnimplementedRegistryServiceServer

	current  func() *index.Index
	damaged  func(*index.Index, error)
	content  Content
	build    *registryv1.Build
	stopping chan struct{}
	stop     func()
}

// New returns a service. While there is no index, all RPCs but Watch fail with Unavailable.
func New(config Config) *Service {
	stopping := make(chan struct{})
	if config.Damaged == nil {
		config.Damaged = func(*index.Index, error) {}
	}
	return &Service{
		current: config.Current, damaged: config.Damaged, content: config.Content,
		build: &registryv1.Build{
			Version: config.Version, Commit: config.Commit,
			GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		},
		stopping: stopping, stop: sync.OnceFunc(func() { close(stopping) }),
	}
}

// Register adds the service to a server.
func Register(server grpc.ServiceRegistrar, s *Service) {
	registryv1.RegisterRegistryServiceServer(server, s)
}

// Shutdown ends all watches. A watch does not end otherwise, and one watching client would delay
// the stop of the server. Call it before the server's GracefulStop.
func (s *Service) Shutdown() { s.stop() }

var (
	errLoading  = status.Error(codes.Unavailable, "the catalog is not loaded yet")
	errStopping = status.Error(codes.Unavailable, "the server is stopping")
)

// index returns the index to answer a call from.
func (s *Service) index() (*index.Index, error) {
	x := s.current()
	if x == nil {
		return nil, errLoading
	}
	return x, nil
}

// statusError returns the client's status for an error of the index.
func (s *Service) statusError(x *index.Index, err error) error {
	missing, isMissing := errors.AsType[*index.NotFoundError](err)
	switch {
	case isMissing:
		return status.Error(codes.NotFound, missing.Message)
	case errors.Is(err, index.ErrTruncated):
		s.damaged(x, err)
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, index.ErrDamaged):
		s.damaged(x, err)
		return status.Error(codes.DataLoss, err.Error())
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// GetInfo implements [registryv1.RegistryServiceServer].
func (s *Service) GetInfo(context.Context, *registryv1.GetInfoRequest) (*registryv1.GetInfoResponse, error) {
	state := s.content.State()
	content := state.content()
	if content == nil {
		return nil, errLoading
	}
	return &registryv1.GetInfoResponse{Content: content, Build: s.build, Failure: state.failure()}, nil
}

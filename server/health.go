package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/server/extension"
	"github.com/chandlery/chandlery/server/registry"
)

// healthNames are the names that clients ask the health service for: kubelet
// and load balancers the empty one, the usual catalog client "Registry", and
// whoever follows the convention the service's own.
var healthNames = []string{"", "Registry", registry.ServiceName, registry.ExperimentalServiceName, extension.ServiceName}

// healthService is the health service of gRPC, which begins as NOT_SERVING and
// ends its watches when the server stops: a watch has no end of its own, and
// one client with a watch would keep the server from stopping in good time.
type healthService struct {
	*health.Server

	stopping context.Context
	stop     context.CancelFunc
}

func newHealthService() *healthService {
	h := &healthService{Server: health.NewServer()}
	h.stopping, h.stop = context.WithCancel(context.Background()) //nolint:forbidigo // no call is this one's parent
	for _, name := range healthNames {
		h.SetServingStatus(name, healthpb.HealthCheckResponse_NOT_SERVING)
	}
	return h
}

// serving announces that there is content.
func (h *healthService) serving() {
	for _, name := range healthNames {
		h.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
}

// shutdown announces that the server stops, and ends all watches.
func (h *healthService) shutdown() {
	h.Shutdown()
	h.stop()
}

// Watch implements [healthpb.HealthServer].
func (h *healthService) Watch(
	request *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse],
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(h.stopping, cancel)()
	err := h.Server.Watch(request, &boundedStream{ServerStreamingServer: stream, ctx: ctx})
	if h.stopping.Err() == nil || stream.Context().Err() != nil {
		return err
	}
	// The end may have come before the last change was sent.
	last := &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}
	if err := stream.Send(last); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "the server is stopping")
}

// boundedStream is a stream with another context.
type boundedStream struct {
	grpc.ServerStreamingServer[healthpb.HealthCheckResponse]

	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s *boundedStream) Context() context.Context { return s.ctx }

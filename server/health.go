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

// healthNames are the names for which clients request health. The kubelet and load balancers use
// the empty name, and the usual catalog client uses "Registry". Other clients use the name of the
// service, as gRPC's convention requires.
var healthNames = []string{"", "Registry", registry.ServiceName, registry.ExperimentalServiceName, extension.ServiceName}

// healthService is the health service of gRPC. It begins as NOT_SERVING and ends its watches when
// the server stops. A watch does not end otherwise, and one watching client would delay the stop of
// the server.
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

// serving sets the status of all services to SERVING.
func (h *healthService) serving() {
	for _, name := range healthNames {
		h.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
}

// shutdown sets the status of all services to NOT_SERVING and ends all watches.
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
	// The stream may have ended before it sent the last change.
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

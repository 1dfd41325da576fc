package extension

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// Watch implements [registryv1.RegistryServiceServer]. If a client reads slowly it gets the latest
// state and misses earlier ones.
func (s *Service) Watch(_ *registryv1.WatchRequest, stream grpc.ServerStreamingServer[registryv1.WatchResponse]) error {
	var sent *registryv1.WatchResponse
	for {
		changed := s.content.Changed()
		state := s.content.State()
		answer := &registryv1.WatchResponse{Content: state.content(), Failure: state.failure()}
		if sent == nil || !proto.Equal(sent, answer) {
			if err := stream.Send(answer); err != nil {
				return err
			}
			sent = answer
		}
		select {
		case <-changed:
		case <-s.stopping:
			return errStopping
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

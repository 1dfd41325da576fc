package extension

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// GetUpgradeGraph implements [registryv1.RegistryServiceServer].
func (s *Service) GetUpgradeGraph(
	_ context.Context, r *registryv1.GetUpgradeGraphRequest,
) (*registryv1.GetUpgradeGraphResponse, error) {
	if r.GetPackage() == "" {
		return nil, invalid("package", "must not be empty: give the name of a package")
	}
	if err := checkName("package", r.GetPackage()); err != nil {
		return nil, err
	}
	if err := checkNames("channels", r.GetChannels()); err != nil {
		return nil, err
	}
	x, err := s.index()
	if err != nil {
		return nil, err
	}
	graph, err := x.Graph(r.GetPackage())
	if err != nil {
		return nil, s.statusError(x, err)
	}
	if channel, missing := missingChannel(graph, r.GetChannels()); missing {
		return nil, status.Errorf(codes.NotFound, "package %q, channel %q not found", r.GetPackage(), channel)
	}
	out := &registryv1.GetUpgradeGraphResponse{Graph: upgradeGraph(graph, r.GetChannels()), ContentDigest: x.Info().ContentDigest}
	if size := proto.Size(out); size > maxGraphBytes && len(out.GetGraph().GetChannels()) > 1 {
		return nil, status.Errorf(codes.ResourceExhausted,
			"the graph of package %q has %d bytes, more than %d: ask for its channels one by one", r.GetPackage(), size, maxGraphBytes)
	}
	return out, nil
}

package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// serverTimeout bounds the reading of a whole catalog.
const serverTimeout = 2 * time.Minute

// fromServer reads all of a catalog by the contract that every server has.
func fromServer(ctx context.Context, conn grpc.ClientConnInterface) (*content.Catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	client := api.NewRegistryClient(conn)
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, fmt.Errorf("failed to list bundles: %w", err)
	}
	b := content.NewBuilder(maxContent)
	packages := map[string]bool{}
	for {
		bundle, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			packages[bundle.GetPackageName()] = true
			err = b.Add(listed(bundle))
		}
		if err != nil {
			return nil, fmt.Errorf("failed to list bundles: %w", err)
		}
	}
	for name := range packages {
		p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: name})
		if err != nil {
			return nil, fmt.Errorf("failed to get package %s: %w", name, err)
		}
		b.Describe(name, p.GetDefaultChannelName(), p.GetDeprecation().GetMessage())
		for _, ch := range p.GetChannels() {
			if message := ch.GetDeprecation().GetMessage(); message != "" {
				b.DeprecateChannel(name, ch.GetName(), message)
			}
		}
	}
	return b.Build(), nil
}

func listed(b *api.Bundle) content.Listed {
	l := content.Listed{
		Package: b.GetPackageName(), Channel: b.GetChannelName(), Bundle: b.GetCsvName(), Image: b.GetBundlePath(),
		Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(), Deprecation: b.GetDeprecation().GetMessage(),
	}
	for _, p := range b.GetProperties() {
		l.Properties = append(l.Properties, constraint.Property{Type: p.GetType(), Value: p.GetValue()})
	}
	return l
}

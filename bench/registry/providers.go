package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/proto/api"
)

const (
	// providersTarget is in seconds.
	providersTarget = 1e-3
	// maxAPIs is the number of APIs in calls to the registry.
	maxAPIs = 200
	// maxPeerAPIs is the number of APIs in calls to opm, which is slow.
	maxPeerAPIs = 4
)

// providerCalls returns the RPCs that find providers of an API.
func providerCalls() map[string]func(context.Context, api.RegistryClient, *api.GroupVersionKind) error {
	drain := func(s grpc.ServerStreamingClient[api.ChannelEntry], err error) error {
		return each(s, err, func(*api.ChannelEntry) {})
	}
	return map[string]func(context.Context, api.RegistryClient, *api.GroupVersionKind) error{
		"GetChannelEntriesThatProvide": func(ctx context.Context, c api.RegistryClient, g *api.GroupVersionKind) error {
			return drain(c.GetChannelEntriesThatProvide(ctx,
				&api.GetAllProvidersRequest{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()}))
		},
		"GetLatestChannelEntriesThatProvide": func(ctx context.Context, c api.RegistryClient, g *api.GroupVersionKind) error {
			return drain(c.GetLatestChannelEntriesThatProvide(ctx,
				&api.GetLatestProvidersRequest{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()}))
		},
		"GetDefaultBundleThatProvides": func(ctx context.Context, c api.RegistryClient, g *api.GroupVersionKind) error {
			_, err := c.GetDefaultBundleThatProvides(ctx,
				&api.GetDefaultProviderRequest{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()})
			return err
		},
	}
}

// providerSection measures calls for the providers of APIs.
type providerSection struct{ *bench }

// run measures the queries by provided API.
func (b providerSection) run(ctx context.Context) (err error) {
	t, err := b.startTrio(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	apis := b.recorded.apis()
	if len(apis) == 0 {
		b.sayf("nothing provides an API")
		return nil
	}
	table := b.report.add("Queries by provided API", "One caller, which decodes the replies.",
		"RPC", "registry: p50", "p99", "opm: p50", "times as fast")
	calls := providerCalls()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		b.sayf("%s", name)
		ours, err := timeProviders(ctx, t.registry, apis[:min(len(apis), maxAPIs)], calls[name])
		if err != nil {
			return err
		}
		theirs, err := timeProviders(ctx, t.opm, apis[:min(len(apis), maxPeerAPIs)], calls[name])
		if err != nil {
			return err
		}
		p50, peer := percentile(ours, 0.5), percentile(theirs, 0.5)
		table.row(name, seconds(p50), seconds(percentile(ours, 0.99)), seconds(peer), times(peer/p50))
		b.report.atMost(name+": p50", p50, providersTarget, seconds)
	}
	return nil
}

// apis returns APIs from all parts of the catalog, whether heads of default channels provide them or not.
func (r *recorded) apis() []*api.GroupVersionKind {
	var all []*api.GroupVersionKind
	seen := map[string]bool{}
	for _, e := range spread(r.entries) {
		for _, g := range e.apis {
			if key := g.GetGroup() + "/" + g.GetVersion() + "/" + g.GetKind(); !seen[key] {
				seen[key] = true
				all = append(all, g)
			}
		}
	}
	return all
}

// timeProviders makes a call for each API, after one call that does not count.
func timeProviders(
	ctx context.Context, s *server, apis []*api.GroupVersionKind,
	call func(context.Context, api.RegistryClient, *api.GroupVersionKind) error,
) ([]time.Duration, error) {
	if s == nil {
		return nil, nil
	}
	conn, err := dial(s.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	client := api.NewRegistryClient(conn)
	var took []time.Duration
	for i := -1; i < len(apis); i++ {
		began := time.Now()
		if err := call(ctx, client, apis[max(i, 0)]); err != nil && !isNotFound(err) {
			return nil, fmt.Errorf("asking %s: %w", s.Name(), err)
		}
		if i >= 0 {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took, nil
}

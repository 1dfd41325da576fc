package conformance

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/proto/api"
)

// gvk is an API.
type gvk struct{ group, version, kind string }

func (a gvk) compare(b gvk) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.version, b.version), cmp.Compare(a.kind, b.kind))
}

// edge is a channel entry: a bundle and a bundle that it replaces or skips.
type edge struct{ pkg, channel, bundle, replaces string }

func (a edge) compare(b edge) int {
	return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.channel, b.channel),
		cmp.Compare(a.bundle, b.bundle), cmp.Compare(a.replaces, b.replaces))
}

// provision holds the expected answers about an API.
type provision struct {
	packages    map[string]bool
	all, latest []edge
	// standard has the heads of default channels. The first is the answer.
	standard []edge
}

// expectProviders computes the expected answers about each API from bundles and packages, because
// asking the peer about all would take too long.
func expectProviders(bundles []*api.Bundle, packages []*api.Package) map[gvk]*provision {
	type channel struct{ pkg, name string }
	heads, defaults := map[channel]string{}, map[string]string{}
	for _, p := range packages {
		defaults[p.GetName()] = p.GetDefaultChannelName()
		for _, ch := range p.GetChannels() {
			heads[channel{p.GetName(), ch.GetName()}] = ch.GetCsvName()
		}
	}
	present := map[edge]bool{}
	for _, b := range bundles {
		present[edge{pkg: b.GetPackageName(), channel: b.GetChannelName(), bundle: b.GetCsvName()}] = true
	}
	found := map[gvk]*provision{}
	for _, b := range bundles {
		at := edge{pkg: b.GetPackageName(), channel: b.GetChannelName(), bundle: b.GetCsvName(), replaces: b.GetReplaces()}
		all, latest := []edge{at}, []edge{at}
		for _, skipped := range b.GetSkips() {
			if skipped == at.replaces {
				continue
			}
			all = append(all, edge{at.pkg, at.channel, at.bundle, skipped})
			if present[edge{pkg: at.pkg, channel: at.channel, bundle: skipped}] {
				latest = append(latest, edge{at.pkg, at.channel, at.bundle, skipped})
			}
		}
		isHead := heads[channel{at.pkg, at.channel}] == at.bundle
		seen := map[gvk]bool{}
		for _, provided := range b.GetProvidedApis() {
			a := gvk{provided.GetGroup(), provided.GetVersion(), provided.GetKind()}
			if seen[a] {
				continue
			}
			seen[a] = true
			if found[a] == nil {
				found[a] = &provision{packages: map[string]bool{}}
			}
			found[a].add(at, all, latest, isHead, defaults[at.pkg] == at.channel)
		}
	}
	return found
}

func (p *provision) add(at edge, all, latest []edge, isHead, isDefault bool) {
	p.packages[at.pkg] = true
	p.all = append(p.all, all...)
	if !isHead {
		return
	}
	p.latest = append(p.latest, latest...)
	if isDefault {
		p.standard = append(p.standard, at)
	}
}

// checkProviders compares our answers about an API with the expected ones.
func (c *comparer) checkProviders(t *testing.T, a gvk, want *provision) {
	t.Helper()
	ctx := t.Context()
	all, err := c.ours.GetChannelEntriesThatProvide(ctx, &api.GetAllProvidersRequest{Group: a.group, Version: a.version, Kind: a.kind})
	checkEdges(t, a, all, err, want.all)
	latest, err := c.ours.GetLatestChannelEntriesThatProvide(ctx, &api.GetLatestProvidersRequest{Group: a.group, Version: a.version, Kind: a.kind})
	checkEdges(t, a, latest, err, want.latest)
	standard := ""
	if len(want.standard) > 0 {
		first := slices.MinFunc(want.standard, edge.compare)
		standard = first.pkg + "/" + first.channel + "/" + first.bundle
	}
	got, err := c.ours.GetDefaultBundleThatProvides(ctx, &api.GetDefaultProviderRequest{Group: a.group, Version: a.version, Kind: a.kind})
	answer := ""
	if err == nil {
		answer = got.GetPackageName() + "/" + got.GetChannelName() + "/" + got.GetCsvName()
	}
	if answer != standard {
		t.Errorf("%v: the default provider is %q (%v), want %q", a, answer, err, standard)
	}
}

// checkEdges compares a list of entries. If none is expected, there must be an error.
func checkEdges(t *testing.T, a gvk, stream grpc.ServerStreamingClient[api.ChannelEntry], err error, want []edge) {
	t.Helper()
	list, err := receive(stream, err)
	if (err == nil) != (len(want) > 0) {
		t.Errorf("%v: got error %v, want %d entries", a, err, len(want))
	}
	var got []edge
	for _, e := range list {
		got = append(got, edge{e.GetPackageName(), e.GetChannelName(), e.GetBundleName(), e.GetReplaces()})
	}
	slices.SortFunc(got, edge.compare)
	slices.SortFunc(want, edge.compare)
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(edge{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%v: -want +got:\n%s", a, diff)
	}
}

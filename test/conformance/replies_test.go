package conformance

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

func TestRepliesOnMetadataCatalog(t *testing.T) {
	dir, packages := realcatalogs.Sample(t, realcatalogs.Metadata)
	ours, theirs := startPeers(t, dir)
	// The peer decodes the whole catalog for each call about an API.
	compareReplies(t, ours, theirs, extent{packages: packages, entries: 8 * packages, apis: 3, shared: 3})
}

func TestRepliesOnObjectsCatalog(t *testing.T) {
	dir, packages := realcatalogs.Sample(t, realcatalogs.Objects)
	ours, theirs := startPeers(t, dir)
	compareReplies(t, ours, theirs, extent{packages: packages, entries: 3 * packages, apis: 3, shared: 20})
}

func TestRepliesOnOddCatalog(t *testing.T) {
	ours, theirs := startPeers(t, writeFiles(t, oddCatalog))
	compareReplies(t, ours, theirs, extent{packages: 3, entries: 7, apis: 1000, shared: 1000})
}

// extent holds the expected size of a catalog, to detect comparisons of nothing, and the number of
// calls to the peer.
type extent struct {
	packages int
	// entries is the smallest length of ListBundles.
	entries int
	// apis is the number of APIs in calls to the peer, besides APIs of several packages. shared is
	// the largest number of those.
	apis, shared int
}

// compareReplies makes every call about their catalog to both servers.
func compareReplies(t *testing.T, ours, theirs peer, e extent) {
	t.Helper()
	bundles := compareBundleLists(t, ours, theirs)
	packages := comparePackages(t, ours, theirs)
	if len(packages) != e.packages || len(bundles) < e.entries {
		t.Fatalf("got %d packages and %d entries, want %d and at least %d", len(packages), len(bundles), e.packages, e.entries)
	}
	comparer := &comparer{ours: ours, theirs: theirs}
	comparer.bundles(t, bundles)
	comparer.replacements(t, bundles)
	comparer.providers(t, bundles, packages, e)
	t.Logf("compared %d pairs of replies", comparer.count)
	if comparer.count < 2*len(bundles) {
		t.Errorf("compared only %d pairs of replies", comparer.count)
	}
}

func compareBundleLists(t *testing.T, ours, theirs peer) []*api.Bundle {
	t.Helper()
	list := func(p peer) []*api.Bundle {
		stream, err := p.ListBundles(t.Context(), &api.ListBundlesRequest{})
		return collect(t, stream, err)
	}
	got, want := list(ours), list(theirs)
	if len(got) != len(want) {
		t.Fatalf("ListBundles: got %d bundles, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := difference(want[i], got[i]); diff != "" {
			t.Fatalf("ListBundles, element %d: -want +got:\n%s", i, diff)
		}
	}
	return got
}

func comparePackages(t *testing.T, ours, theirs peer) []*api.Package {
	t.Helper()
	list := func(p peer) []string {
		stream, err := p.ListPackages(t.Context(), &api.ListPackageRequest{})
		var names []string
		for _, name := range collect(t, stream, err) {
			names = append(names, name.GetName())
		}
		return names
	}
	got, want := list(ours), list(theirs)
	// The peer's order is random.
	slices.Sort(want)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("ListPackages: -want +got:\n%s", diff)
	}
	var packages []*api.Package
	for _, name := range append(got, "", "no-such-package") {
		request := &api.GetPackageRequest{Name: name}
		got, gotErr := ours.GetPackage(t.Context(), request)
		want, wantErr := theirs.GetPackage(t.Context(), request)
		compareErrors(t, gotErr, wantErr)
		if diff := difference(want, got); diff != "" {
			t.Errorf("GetPackage(%q): -want +got:\n%s", name, diff)
		}
		if gotErr == nil {
			packages = append(packages, got)
		}
	}
	return packages
}

// comparer compares the answers to the same calls.
type comparer struct {
	ours, theirs peer
	count        int
}

func (c *comparer) unary(t *testing.T, ask func(peer) (*api.Bundle, error)) {
	t.Helper()
	got, gotErr := ask(c.ours)
	want, wantErr := ask(c.theirs)
	compareErrors(t, gotErr, wantErr)
	if diff := difference(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	c.count++
}

func (c *comparer) entries(t *testing.T, ask func(peer) (grpc.ServerStreamingClient[api.ChannelEntry], error)) {
	t.Helper()
	list := func(p peer) ([]*api.ChannelEntry, error) {
		stream, err := ask(p)
		return receive(stream, err)
	}
	got, gotErr := list(c.ours)
	want, wantErr := list(c.theirs)
	compareErrors(t, gotErr, wantErr)
	if !slices.IsSortedFunc(got, compareEntries) {
		t.Error("our entries are not in order")
	}
	// The peer's order is random.
	full := func(a, b *api.ChannelEntry) int {
		return cmp.Or(compareEntries(a, b), cmp.Compare(a.GetReplaces(), b.GetReplaces()))
	}
	slices.SortFunc(got, full)
	slices.SortFunc(want, full)
	if diff := gocmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	c.count++
}

func compareEntries(a, b *api.ChannelEntry) int {
	return cmp.Or(cmp.Compare(a.GetPackageName(), b.GetPackageName()),
		cmp.Compare(a.GetChannelName(), b.GetChannelName()), cmp.Compare(a.GetBundleName(), b.GetBundleName()))
}

func (c *comparer) bundles(t *testing.T, bundles []*api.Bundle) {
	t.Helper()
	ctx := t.Context()
	type channel struct{ pkg, name string }
	channels := map[channel]bool{{"no-such-package", "x"}: true}
	for _, b := range bundles {
		channels[channel{b.GetPackageName(), b.GetChannelName()}] = true
		channels[channel{b.GetPackageName(), "no-such-channel"}] = true
		for _, name := range []string{b.GetCsvName(), "no-such-bundle"} {
			c.unary(t, func(p peer) (*api.Bundle, error) {
				return p.GetBundle(ctx, &api.GetBundleRequest{
					PkgName: b.GetPackageName(), ChannelName: b.GetChannelName(), CsvName: name,
				})
			})
		}
	}
	for ch := range channels {
		c.unary(t, func(p peer) (*api.Bundle, error) {
			//nolint:staticcheck // deprecated, and used by clients in the field
			return p.GetBundleForChannel(ctx, &api.GetBundleInChannelRequest{PkgName: ch.pkg, ChannelName: ch.name})
		})
	}
}

// replacements requests the replacement of each bundle, and of each bundle that another names. If
// several bundles replace one, the peer returns any of them.
func (c *comparer) replacements(t *testing.T, bundles []*api.Bundle) {
	t.Helper()
	ctx := t.Context()
	type question struct{ pkg, channel, name string }
	answers := map[question][]string{{"no-such-package", "x", "x"}: nil}
	names := map[string]bool{"no-such-bundle": true, "": true}
	for _, b := range bundles {
		at := question{pkg: b.GetPackageName(), channel: b.GetChannelName()}
		answers[question{at.pkg, "no-such-channel", "x"}] = nil
		own := question{at.pkg, at.channel, b.GetCsvName()}
		answers[own] = append(answers[own], []string{}...) // requested, though it may have no replacement
		names[b.GetCsvName()] = true
		for _, left := range slices.Compact(slices.Sorted(slices.Values(append(b.GetSkips(), b.GetReplaces())))) {
			gone := question{at.pkg, at.channel, left}
			answers[gone] = append(answers[gone], b.GetCsvName())
			names[left] = true
		}
	}
	for q, candidates := range answers {
		ask := func(p peer) (*api.Bundle, error) {
			return p.GetBundleThatReplaces(ctx, &api.GetReplacementRequest{PkgName: q.pkg, ChannelName: q.channel, CsvName: q.name})
		}
		if len(candidates) < 2 {
			c.unary(t, ask)
			continue
		}
		c.ambiguous(t, ask, candidates)
	}
	for name := range names {
		c.entries(t, func(p peer) (grpc.ServerStreamingClient[api.ChannelEntry], error) {
			return p.GetChannelEntriesThatReplace(ctx, &api.GetAllReplacementsRequest{CsvName: name})
		})
	}
}

// ambiguous makes a call to which every candidate is a valid answer. Ours is the first in byte
// order, and the peer's is any.
func (c *comparer) ambiguous(t *testing.T, ask func(peer) (*api.Bundle, error), candidates []string) {
	t.Helper()
	got, err := ask(c.ours)
	if err != nil || got.GetCsvName() != slices.Min(candidates) {
		t.Fatalf("got %s, %v; want the first of %v", got.GetCsvName(), err, candidates)
	}
	want, err := ask(c.theirs)
	if err != nil || !slices.Contains(candidates, want.GetCsvName()) {
		t.Fatalf("the peer answers %s, %v; want one of %v", want.GetCsvName(), err, candidates)
	}
	if want.GetCsvName() == got.GetCsvName() {
		if diff := difference(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	c.count++
}

// providers requests the providers of APIs. It asks the peer only about some, because the peer
// decodes much of the catalog for each call.
func (c *comparer) providers(t *testing.T, bundles []*api.Bundle, packages []*api.Package, e extent) {
	t.Helper()
	ctx := t.Context()
	expected := expectProviders(bundles, packages)
	apis := slices.SortedFunc(maps.Keys(expected), gvk.compare)
	asked := []gvk{{"no.such.group", "v1", "Nothing"}}
	for _, a := range apis {
		if len(expected[a].packages) > 1 && len(asked) <= e.shared {
			asked = append(asked, a)
		}
	}
	step := max(1, len(apis)/e.apis)
	for i := step / 2; i < len(apis); i += step {
		asked = append(asked, apis[i])
	}
	t.Logf("asking the peer about %d of %d APIs", len(asked), len(apis))
	for _, a := range asked {
		c.entries(t, func(p peer) (grpc.ServerStreamingClient[api.ChannelEntry], error) {
			return p.GetChannelEntriesThatProvide(ctx, &api.GetAllProvidersRequest{Group: a.group, Version: a.version, Kind: a.kind})
		})
		c.entries(t, func(p peer) (grpc.ServerStreamingClient[api.ChannelEntry], error) {
			return p.GetLatestChannelEntriesThatProvide(ctx,
				&api.GetLatestProvidersRequest{Group: a.group, Version: a.version, Kind: a.kind, Plural: "ignored"})
		})
		c.unary(t, func(p peer) (*api.Bundle, error) {
			return p.GetDefaultBundleThatProvides(ctx, &api.GetDefaultProviderRequest{Group: a.group, Version: a.version, Kind: a.kind})
		})
	}
	for _, a := range apis {
		c.checkProviders(t, a, expected[a])
	}
}

// compareErrors checks that the texts are equal. For a missing object, the code must be the one of
// decision 2 instead of Unknown.
func compareErrors(t *testing.T, got, want error) {
	t.Helper()
	if status.Convert(got).Message() != status.Convert(want).Message() {
		t.Fatalf("got error %v, want %v", got, want)
	}
	wantCode := status.Code(want)
	if wantCode == codes.Unknown {
		wantCode = codes.NotFound
	}
	if status.Code(got) != wantCode {
		t.Fatalf("got code %v, want %v", status.Code(got), wantCode)
	}
}

// difference compares two messages and computes a diff only if they differ.
func difference(want, got proto.Message) string {
	if proto.Equal(want, got) {
		return ""
	}
	return gocmp.Diff(want, got, protocmp.Transform())
}

func receive[T any](stream grpc.ServerStreamingClient[T], err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	var out []*T
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, message)
	}
}

func collect[T any](t *testing.T, stream grpc.ServerStreamingClient[T], err error) []*T {
	t.Helper()
	out, err := receive(stream, err)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

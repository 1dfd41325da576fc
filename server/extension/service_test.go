package extension

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// call sends a request to its method.
func (f *fixture) call(t *testing.T, request proto.Message) error {
	t.Helper()
	var err error
	switch r := request.(type) {
	case *registryv1.GetInfoRequest:
		_, err = f.GetInfo(t.Context(), r)
	case *registryv1.ListBundlesRequest:
		_, err = f.ListBundles(t.Context(), r)
	case *registryv1.SearchPackagesRequest:
		_, err = f.SearchPackages(t.Context(), r)
	case *registryv1.GetUpgradeGraphRequest:
		_, err = f.GetUpgradeGraph(t.Context(), r)
	case *registryv1.ListDeprecationsRequest:
		_, err = f.ListDeprecations(t.Context(), r)
	default:
		t.Fatalf("there is no method for %T", request)
	}
	return err
}

func TestUnavailableUntilLoaded(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, request := range []proto.Message{
		&registryv1.GetInfoRequest{}, &registryv1.ListBundlesRequest{}, &registryv1.SearchPackagesRequest{},
		&registryv1.GetUpgradeGraphRequest{Package: "lamp"}, &registryv1.ListDeprecationsRequest{},
	} {
		if err := f.call(t, request); status.Code(err) != codes.Unavailable {
			t.Errorf("%T: got %v, want %s", request, err, codes.Unavailable)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	long, many := strings.Repeat("x", maxName+1), make([]string, maxListed+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for name, tc := range map[string]struct {
		request proto.Message
		code    codes.Code
		want    string
	}{
		"NegativeSize":    {&registryv1.ListBundlesRequest{PageSize: -1}, codes.InvalidArgument, "page_size must not be negative, found -1: give 1 to 1000"},
		"NegativeMatches": {&registryv1.SearchPackagesRequest{PageSize: -1}, codes.InvalidArgument, "page_size must not be negative"},
		"NegativeDeprecated": {
			&registryv1.ListDeprecationsRequest{PageSize: -1}, codes.InvalidArgument, "page_size must not be negative",
		},
		"LongName":        {&registryv1.ListBundlesRequest{Names: []string{"a", long}}, codes.InvalidArgument, "names[1] must have at most 1024 bytes, found 1025"},
		"EmptyName":       {&registryv1.ListBundlesRequest{Channels: []string{""}}, codes.InvalidArgument, "channels[0] must not be empty"},
		"ManyPackages":    {&registryv1.ListBundlesRequest{Packages: many}, codes.InvalidArgument, "packages must have at most 100 elements, found 101"},
		"UnknownPackage":  {&registryv1.ListBundlesRequest{Packages: []string{"lamp", "candle"}}, codes.NotFound, `package "candle" not found`},
		"BadRange":        {&registryv1.ListBundlesRequest{VersionRange: "newest"}, codes.InvalidArgument, `version_range cannot be read, found "newest"`},
		"LongRange":       {&registryv1.ListBundlesRequest{VersionRange: long}, codes.InvalidArgument, "version_range must have at most 256 bytes"},
		"HalfAnAPI":       {&registryv1.ListBundlesRequest{Provides: &registryv1.GroupVersionKind{Kind: "Lamp"}}, codes.InvalidArgument, `provides must have a version and a kind, found version ""`},
		"LongAPI":         {&registryv1.SearchPackagesRequest{Provides: &registryv1.GroupVersionKind{Group: long, Version: "v", Kind: "k"}}, codes.InvalidArgument, "provides.group must have at most"},
		"LongQuery":       {&registryv1.SearchPackagesRequest{Query: long}, codes.InvalidArgument, "query must have at most 256 bytes"},
		"ManyWords":       {&registryv1.SearchPackagesRequest{Query: strings.Repeat("a ", 17)}, codes.InvalidArgument, "query must have at most 16 words, found 17"},
		"ManyCategories":  {&registryv1.SearchPackagesRequest{Categories: many}, codes.InvalidArgument, "categories must have at most 100"},
		"BadSearchToken":  {&registryv1.SearchPackagesRequest{PageToken: "x"}, codes.InvalidArgument, "page_token is not one"},
		"NoPackage":       {&registryv1.GetUpgradeGraphRequest{}, codes.InvalidArgument, "package must not be empty: give the name of a package"},
		"LongPackage":     {&registryv1.GetUpgradeGraphRequest{Package: long}, codes.InvalidArgument, "package must have at most 1024 bytes"},
		"NoGraph":         {&registryv1.GetUpgradeGraphRequest{Package: "candle"}, codes.NotFound, `package "candle" not found`},
		"NoChannel":       {&registryv1.GetUpgradeGraphRequest{Package: "lamp", Channels: []string{"stable", "nightly"}}, codes.NotFound, `package "lamp", channel "nightly" not found`},
		"ManyChannels":    {&registryv1.GetUpgradeGraphRequest{Package: "lamp", Channels: many}, codes.InvalidArgument, "channels must have at most 100"},
		"NoDeprecations":  {&registryv1.ListDeprecationsRequest{Packages: []string{"candle"}}, codes.NotFound, `package "candle" not found`},
		"BadDeprecations": {&registryv1.ListDeprecationsRequest{PageToken: "x"}, codes.InvalidArgument, "page_token is not one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := status.Convert(f.call(t, tc.request))
			if got.Code() != tc.code || !strings.Contains(got.Message(), tc.want) {
				t.Errorf("got %s %q, want %s with %q", got.Code(), got.Message(), tc.code, tc.want)
			}
		})
	}
}

func TestGetInfo(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	got, err := f.GetInfo(t.Context(), &registryv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	x := f.current.Load().Info()
	want := &registryv1.GetInfoResponse{
		Content: &registryv1.Content{
			Digest: x.ContentDigest, SourceDigest: x.SourceDigest, LoadedAt: timestamppb.New(loadedAt), IndexFormat: int32(x.Format),
			IndexBytes: x.FileBytes, Packages: 2, Channels: 3, Bundles: 4, Entries: 5,
		},
		Build: &registryv1.Build{Version: "v1.2.3", Commit: "abc"},
	}
	ignore := protocmp.IgnoreFields(&registryv1.Build{}, "go_version", "platform")
	if diff := cmp.Diff(want, got, protocmp.Transform(), ignore); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(got.GetContent().GetDigest()) != 64 || !strings.HasPrefix(got.GetBuild().GetGoVersion(), "go") ||
		!strings.Contains(got.GetBuild().GetPlatform(), "/") {
		t.Errorf("got %v", got)
	}
}

func TestGetUpgradeGraph(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	stable := &registryv1.ChannelGraph{Name: "stable", Head: "lamp.v2.0.0", Entries: []*registryv1.GraphEntry{
		{Name: "lamp.v1.0.0", Version: "1.0.0", Deprecation: &registryv1.Deprecation{Message: "use lamp.v2.0.0"}},
		{
			Name: "lamp.v2.0.0", Version: "2.0.0", Replaces: "lamp.v1.0.0", Skips: []string{"lamp.v1.5.0"}, SkipRange: "<2.0.0",
			Image: "example.com/lamp:v2",
		},
	}}
	candidate := &registryv1.ChannelGraph{
		Name: "candidate", Head: "lamp.v3.0.0-rc1", Deprecation: &registryv1.Deprecation{Message: "use stable"},
		Entries: []*registryv1.GraphEntry{
			{Name: "lamp.v2.0.0", Version: "2.0.0", Image: "example.com/lamp:v2"},
			{Name: "lamp.v3.0.0-rc1", Version: "3.0.0-rc1", Replaces: "lamp.v2.0.0", Image: "example.com/lamp:v3"},
		},
	}
	for name, tc := range map[string]struct {
		reason   string
		channels []string
		want     []*registryv1.ChannelGraph
	}{
		"All": {"all channels, by name", nil, []*registryv1.ChannelGraph{candidate, stable}},
		"One": {"only those that are wanted", []string{"stable", "stable"}, []*registryv1.ChannelGraph{stable}},
	} {
		got, err := f.GetUpgradeGraph(t.Context(), &registryv1.GetUpgradeGraphRequest{Package: "lamp", Channels: tc.channels})
		if err != nil {
			t.Fatal(err)
		}
		want := &registryv1.GetUpgradeGraphResponse{
			Graph:         &registryv1.UpgradeGraph{Package: "lamp", DefaultChannel: "stable", Channels: tc.want},
			ContentDigest: f.current.Load().Digest(),
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
}

// A graph that clients could not receive is refused. Its channels are not.
func TestGetUpgradeGraphTooLarge(t *testing.T) {
	t.Parallel()
	skips := strings.Repeat("a", 2<<20)
	text := `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"p.v1","skips":["` + skips + `"]}]}
{"schema":"olm.channel","package":"p","name":"b","entries":[{"name":"p.v1","skips":["` + skips + `"]}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`
	f := startServing(t, text)
	err := f.call(t, &registryv1.GetUpgradeGraphRequest{Package: "p"})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "one by one") {
		t.Errorf("got %v", err)
	}
	if err := f.call(t, &registryv1.GetUpgradeGraphRequest{Package: "p", Channels: []string{"b"}}); err != nil {
		t.Error(err)
	}
}

func TestListDeprecations(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	for name, tc := range map[string]struct {
		reason   string
		size     int32
		packages []string
		want     []string
	}{
		"All": {"a package before its channels before its bundles", 0, nil, []string{
			"lamp CHANNEL candidate: use stable", "lamp BUNDLE lamp.v1.0.0: use lamp.v2.0.0", "torch PACKAGE : use a lamp",
		}},
		"Pages": {"pages together have each once", 1, nil, []string{
			"lamp CHANNEL candidate: use stable", "lamp BUNDLE lamp.v1.0.0: use lamp.v2.0.0", "torch PACKAGE : use a lamp",
		}},
		"Package": {"only of the packages that are wanted", 2, []string{"torch"}, []string{"torch PACKAGE : use a lamp"}},
	} {
		r := &registryv1.ListDeprecationsRequest{PageSize: tc.size, Packages: tc.packages}
		var got []string
		for {
			page, err := f.ListDeprecations(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range page.GetDeprecations() {
				kind := strings.TrimPrefix(d.GetKind().String(), "DEPRECATED_KIND_")
				got = append(got, fmt.Sprintf("%s %s %s: %s", d.GetPackage(), kind, d.GetName(), d.GetMessage()))
			}
			if tc.size > 0 && len(page.GetDeprecations()) > int(tc.size) {
				t.Errorf("%s: a page has %d", name, len(page.GetDeprecations()))
			}
			if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
				break
			}
		}
		if diff := cmp.Diff(lines(tc.want), lines(got)); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
}

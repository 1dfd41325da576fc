package extension

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// listed returns "package/channel/name" of bundles, with their other fields.
func listed(list []*registryv1.Bundle) []string {
	var out []string
	for _, b := range list {
		line := b.GetPackage() + "/" + b.GetChannel() + "/" + b.GetName()
		if b.GetIsChannelHead() {
			line += " head"
		}
		if b.GetInDefaultChannel() {
			line += " default"
		}
		out = append(out, line)
	}
	return out
}

func TestListBundles(t *testing.T) {
	t.Parallel()
	const (
		candidate2 = "lamp/candidate/lamp.v2.0.0"
		candidate3 = "lamp/candidate/lamp.v3.0.0-rc1 head"
		stable1    = "lamp/stable/lamp.v1.0.0 default"
		stable2    = "lamp/stable/lamp.v2.0.0 head default"
		torch      = "torch/main/torch.v0.1.0 head default"
	)
	lamp := &registryv1.GroupVersionKind{Group: "lamps.example.com", Version: "v1", Kind: "Lamp"}
	f := startServing(t, sample)
	for name, tc := range map[string]struct {
		reason  string
		request *registryv1.ListBundlesRequest
		want    []string
	}{
		"Everything": {
			"without a filter there is everything, in byte order of package, channel and name",
			&registryv1.ListBundlesRequest{},
			[]string{candidate2, candidate3, stable1, stable2, torch},
		},
		"Package": {
			"a package that is named twice is listed once",
			&registryv1.ListBundlesRequest{Packages: []string{"torch", "torch"}},
			[]string{torch},
		},
		"Packages": {
			"the order of the names changes nothing",
			&registryv1.ListBundlesRequest{Packages: []string{"torch", "lamp"}},
			[]string{candidate2, candidate3, stable1, stable2, torch},
		},
		"Channels": {
			"channels of several packages may be wanted",
			&registryv1.ListBundlesRequest{Channels: []string{"main", "stable"}},
			[]string{stable1, stable2, torch},
		},
		"NoSuchChannel": {
			"a channel that no package has matches nothing",
			&registryv1.ListBundlesRequest{Channels: []string{"nightly"}}, nil,
		},
		"Name": {
			"a bundle is listed once for each of its channels",
			&registryv1.ListBundlesRequest{Names: []string{"lamp.v2.0.0"}},
			[]string{candidate2, stable2},
		},
		"Heads": {
			"heads of all channels, not only of default channels",
			&registryv1.ListBundlesRequest{ChannelHeadsOnly: true},
			[]string{candidate3, stable2, torch},
		},
		"DefaultHeads": {
			"conditions add up", &registryv1.ListBundlesRequest{ChannelHeadsOnly: true, DefaultChannelsOnly: true},
			[]string{stable2, torch},
		},
		"NotDeprecated": {
			"a deprecated bundle, channel or package leaves the bundle out",
			&registryv1.ListBundlesRequest{ExcludeDeprecated: true},
			[]string{stable2},
		},
		"Provides": {
			"bundles that bring the API", &registryv1.ListBundlesRequest{Provides: lamp}, []string{candidate2, candidate3, stable2},
		},
		"ProvidesOtherVersion": {
			"another version is another API",
			&registryv1.ListBundlesRequest{Provides: &registryv1.GroupVersionKind{Group: lamp.GetGroup(), Version: "v2", Kind: "Lamp"}}, nil,
		},
		"Range": {
			"versions compare by their rules, not as texts",
			&registryv1.ListBundlesRequest{VersionRange: ">=1.0.0 <3.0.0-rc1"},
			[]string{candidate2, stable1, stable2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := f.ListBundles(t.Context(), tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, listed(got.GetBundles())); diff != "" || got.GetNextPageToken() != "" {
				t.Errorf("%s: -want +got, next page %q:\n%s", tc.reason, got.GetNextPageToken(), diff)
			}
			if got.GetContentDigest() != f.current.Load().Digest() {
				t.Errorf("the page belongs to the content %q", got.GetContentDigest())
			}
		})
	}
}

// A listing has the same fields of each bundle as the frozen contract, without the manifests.
func TestListBundlesAgreesWithTheFrozenContract(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	page, err := f.ListBundles(t.Context(), &registryv1.ListBundlesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]*registryv1.Bundle)
	for _, b := range page.GetBundles() {
		if unknown := b.ProtoReflect().GetUnknown(); len(unknown) > 0 {
			t.Errorf("bundle %s has %d bytes of fields that it must not have", b.GetName(), len(unknown))
		}
		b.IsChannelHead, b.InDefaultChannel = false, false
		got[b.GetChannel()+b.GetName()] = b
	}
	stream, err := f.frozen.ListBundles(t.Context(), &api.ListBundlesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for {
		bundle, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen++
		bundle.CsvJson, bundle.Object = "", nil
		encoded, err := proto.Marshal(bundle)
		if err != nil {
			t.Fatal(err)
		}
		var want registryv1.Bundle
		if err := proto.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got[want.GetChannel()+want.GetName()], protocmp.Transform()); diff != "" {
			t.Errorf("-frozen +ours:\n%s", diff)
		}
	}
	if seen != len(page.GetBundles()) {
		t.Errorf("the frozen contract lists %d bundles, ours %d", seen, len(page.GetBundles()))
	}
}

func TestListBundlesPages(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	for _, request := range []*registryv1.ListBundlesRequest{{}, {ChannelHeadsOnly: true}, {Packages: []string{"lamp"}}} {
		all, err := f.ListBundles(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		want := listed(all.GetBundles())
		for size := 1; size <= len(want)+1; size++ {
			r := proto.CloneOf(request)
			r.PageSize = int32(size)
			var got []string
			for pages := 1; ; pages++ {
				page, err := f.ListBundles(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, listed(page.GetBundles())...)
				if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
					if most := (len(want) + size - 1) / size; pages != most {
						t.Errorf("%d bundles came on %d pages of %d, want %d", len(want), pages, size, most)
					}
					break
				}
			}
			if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
				t.Errorf("pages of %d: -want +got:\n%s", size, diff)
			}
		}
	}
}

// catalogOf returns a catalog of n bundles with a property of size bytes each. It is JSON, which is
// parsed faster than YAML.
func catalogOf(n, size int) string {
	var b strings.Builder
	b.WriteString(`{"schema":"olm.package","name":"p","defaultChannel":"c"}{"schema":"olm.channel","package":"p","name":"c","entries":[`)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name":"p.v%d","skips":["p.v%d"]}`, i, i-1)
	}
	b.WriteString("]}\n")
	for i := range n {
		fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"p","name":"p.v%d","image":"i","properties":[`+
			`{"type":"olm.package","value":{"packageName":"p","version":"%d.0.0"}},{"type":"big","value":"%s"}]}`+"\n",
			i, i, strings.Repeat("x", size))
	}
	return b.String()
}

func TestListBundlesEndsPagesEarly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		bundles int
		size    int
		want    []int
	}{
		"ManyBytes":  {"a page ends rather than exceed 2 MiB", 5, 900 << 10, []int{2, 2, 1}},
		"OneTooMany": {"a bundle beyond the size of a page is there alone", 2, maxPageBytes + 1, []int{1, 1}},
		"ManySmall":  {"a page has 500 when the client does not say", 501, 1, []int{500, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startServing(t, catalogOf(tc.bundles, tc.size))
			var got []int
			var r registryv1.ListBundlesRequest
			for {
				page, err := f.ListBundles(t.Context(), &r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, len(page.GetBundles()))
				if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
					break
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: got pages of %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPageTokens(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	first, err := f.ListBundles(t.Context(), &registryv1.ListBundlesRequest{PageSize: 1, Packages: []string{"lamp"}})
	if err != nil {
		t.Fatal(err)
	}
	token := first.GetNextPageToken()
	ask := func(r *registryv1.ListBundlesRequest) codes.Code {
		_, err := f.ListBundles(t.Context(), r)
		return status.Code(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		request *registryv1.ListBundlesRequest
		want    codes.Code
	}{
		"OtherSize": {
			"the size may differ from page to page",
			&registryv1.ListBundlesRequest{PageToken: token, PageSize: 2, Packages: []string{"lamp"}}, codes.OK,
		},
		"OtherFilter": {
			"a place in one listing is none in another",
			&registryv1.ListBundlesRequest{PageToken: token}, codes.InvalidArgument,
		},
		"Garbage": {
			"what is no token is refused",
			&registryv1.ListBundlesRequest{PageToken: "next", Packages: []string{"lamp"}}, codes.InvalidArgument,
		},
		"CutOff": {
			"half a token would be another place",
			&registryv1.ListBundlesRequest{PageToken: token[:len(token)-4], Packages: []string{"lamp"}}, codes.InvalidArgument,
		},
		"Huge": {
			"a huge token is not even decoded",
			&registryv1.ListBundlesRequest{PageToken: strings.Repeat("A", maxToken+1), Packages: []string{"lamp"}}, codes.InvalidArgument,
		},
	} {
		if got := ask(tc.request); got != tc.want {
			t.Errorf("%s: %s: got %s, want %s", name, tc.reason, got, tc.want)
		}
	}
	f.serve(build(t, strings.Replace(sample, "use a lamp", "buy a lamp", 1)))
	if got := ask(&registryv1.ListBundlesRequest{PageToken: token, Packages: []string{"lamp"}}); got != codes.Aborted {
		t.Errorf("a token of a replaced content: got %s, want %s", got, codes.Aborted)
	}
	f.serve(build(t, sample))
	if got := ask(&registryv1.ListBundlesRequest{PageToken: token, Packages: []string{"lamp"}}); got != codes.OK {
		t.Errorf("a token of a content that is back, or on another replica: got %s", got)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("")
	f.Add(pageToken{after: "place"}.String())
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseToken(text)
		if !ok {
			return
		}
		if again, ok := parseToken(got.String()); !ok || again != got {
			t.Errorf("%q is %v, which reads back as %v", text, got, again)
		}
	})
}

func FuzzReadBundle(f *testing.F) {
	seed, err := proto.Marshal(&api.Bundle{
		CsvName: "n", PackageName: "p", ChannelName: "c", CsvJson: "{}", Object: []string{"{}"}, Version: "1.0.0",
		ProvidedApis: []*api.GroupVersionKind{{Group: "g", Version: "v", Kind: "k"}}, Deprecation: &api.Deprecation{},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readBundle(index.NewMessage(data))
		if err != nil {
			return
		}
		var want registryv1.Bundle
		if err := proto.Unmarshal(data, &want); err != nil {
			return
		}
		if got.name != want.GetName() || got.version != want.GetVersion() || len(got.provided) != len(want.GetProvidedApis()) {
			t.Errorf("read %+v from %v", got, &want)
		}
	})
}

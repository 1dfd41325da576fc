package extension

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	packages := []index.Summary{
		{Package: "cert-manager", DisplayName: "cert-manager", Keywords: []string{"tls"}, APIs: []bundles.GVK{
			{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
		}, Categories: []string{"Security"}},
		{Package: "concert", DisplayName: "Concert", Description: "Plays music."},
		{Package: "trust", DisplayName: "Trust", Description: "Hands out what cert-manager made.", Provider: "Certs Inc."},
		{Package: "ÖL", DisplayName: "Öl"},
		{Package: "zz-cert", DisplayName: "ZZ Cert", Deprecation: "gone"},
	}
	certificate := &registryv1.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	for name, tc := range map[string]struct {
		reason  string
		request *registryv1.SearchPackagesRequest
		want    []string
	}{
		"Name":      {"the whole name is worth most", &registryv1.SearchPackagesRequest{Query: "cert-manager"}, []string{"cert-manager", "trust"}},
		"Part":      {"the beginning of a word counts more than its inside", &registryv1.SearchPackagesRequest{Query: "CERT"}, []string{"cert-manager", "zz-cert", "concert", "trust"}},
		"AllWords":  {"each word must be found, each anywhere", &registryv1.SearchPackagesRequest{Query: "cert tls"}, []string{"cert-manager"}},
		"Nothing":   {"a word that is nowhere leaves nothing", &registryv1.SearchPackagesRequest{Query: "cert grpc"}, nil},
		"Kind":      {"the kind of an API", &registryv1.SearchPackagesRequest{Query: "certificate"}, []string{"cert-manager"}},
		"KindGroup": {"an API as kubectl names it", &registryv1.SearchPackagesRequest{Query: "certificate.cert-manager.io"}, []string{"cert-manager"}},
		"Text":      {"a word of a description", &registryv1.SearchPackagesRequest{Query: "music"}, []string{"concert"}},
		"Umlaut":    {"upper and lower case of any alphabet", &registryv1.SearchPackagesRequest{Query: "öl"}, []string{"ÖL"}},
		"Provider":  {"who offers it", &registryv1.SearchPackagesRequest{Query: "inc"}, []string{"trust"}},
		"Everything": {
			"without words every package matches, by name", &registryv1.SearchPackagesRequest{Query: " \t"},
			[]string{"cert-manager", "concert", "trust", "zz-cert", "ÖL"},
		},
		"NotDeprecated": {
			"deprecated packages can be left out", &registryv1.SearchPackagesRequest{Query: "cert", ExcludeDeprecated: true},
			[]string{"cert-manager", "concert", "trust"},
		},
		"Category": {
			"categories in upper or lower case", &registryv1.SearchPackagesRequest{Categories: []string{"security", "other"}},
			[]string{"cert-manager"},
		},
		"Provides": {"the API itself", &registryv1.SearchPackagesRequest{Provides: certificate}, []string{"cert-manager"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newSearch(tc.request)
			if err != nil {
				t.Fatal(err)
			}
			hits, err := s.all(t.Context(), func(yield func(index.Summary) bool) {
				// The order of the packages must not affect the result.
				for i := len(packages) - 1; i >= 0 && yield(packages[i]); i-- {
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, h.pkg)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%+v", tc.reason, diff, hits)
			}
		})
	}
}

func TestSearchPackages(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	got, err := f.SearchPackages(t.Context(), &registryv1.SearchPackagesRequest{Query: "LIGHT lamp"})
	if err != nil {
		t.Fatal(err)
	}
	want := &registryv1.SearchPackagesResponse{
		ContentDigest: f.current.Load().Digest(), TotalSize: 1,
		Matches: []*registryv1.PackageMatch{{
			Package: &registryv1.PackageSummary{
				Name: "lamp", DisplayName: "Bright Lamp", Provider: "Lamp Makers", Description: "Lights the *house*.",
				Keywords: []string{"light", "bulb"}, Categories: []string{"Home", "Lighting"}, DefaultChannel: "stable",
				Channels: []string{"candidate", "stable"}, Head: "lamp.v2.0.0", Version: "2.0.0", Bundles: 3,
				ProvidedApis: []*registryv1.GroupVersionKind{{Group: "lamps.example.com", Version: "v1", Kind: "Lamp"}},
			},
			Fields: []registryv1.SearchField{
				registryv1.SearchField_SEARCH_FIELD_NAME, registryv1.SearchField_SEARCH_FIELD_DISPLAY_NAME,
				registryv1.SearchField_SEARCH_FIELD_KEYWORD, registryv1.SearchField_SEARCH_FIELD_API,
				registryv1.SearchField_SEARCH_FIELD_CATEGORY, registryv1.SearchField_SEARCH_FIELD_PROVIDER,
				registryv1.SearchField_SEARCH_FIELD_DESCRIPTION,
			},
		}},
	}
	ignore := protocmp.IgnoreFields(&registryv1.PackageMatch{}, "score")
	if diff := cmp.Diff(want, got, protocmp.Transform(), ignore); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSearchPackagesPages(t *testing.T) {
	t.Parallel()
	f := startServing(t, sample)
	request := &registryv1.SearchPackagesRequest{Query: "light", PageSize: 1}
	var got []string
	for {
		page, err := f.SearchPackages(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.GetMatches() {
			got = append(got, fmt.Sprintf("%s of %d", m.GetPackage().GetName(), page.GetTotalSize()))
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"lamp of 2", "torch of 2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSummariesAreBounded(t *testing.T) {
	t.Parallel()
	in := index.Summary{
		Package: "p", Description: strings.Repeat("ä", maxDescription), DisplayName: "\xff",
		Keywords: make([]string, 2*maxListed), Channels: make([]string, 2*maxListed), APIs: make([]bundles.GVK, 2*maxListed),
	}
	got := packageSummary(&in)
	if n := len(got.GetDescription()); n > maxDescription || n < maxDescription-utf8.UTFMax || !utf8.ValidString(got.GetDescription()) {
		t.Errorf("a description of %d bytes was cut to %d", len(in.Description), n)
	}
	if !utf8.ValidString(got.GetDisplayName()) {
		t.Errorf("%q cannot be sent", got.GetDisplayName())
	}
	if len(got.GetKeywords()) != maxListed || len(got.GetChannels()) != maxListed || len(got.GetProvidedApis()) != maxListed {
		t.Errorf("lists have %d, %d and %d elements", len(got.GetKeywords()), len(got.GetChannels()), len(got.GetProvidedApis()))
	}
}

func FuzzIndexFold(f *testing.F) {
	f.Add("Cert-Manager", "manager")
	f.Add("über ÜBER", "Über")
	f.Add("\xff\xfea", "A")
	f.Fuzz(func(t *testing.T, text, word string) {
		if !utf8.ValidString(word) || strings.ContainsRune(word, utf8.RuneError) {
			return
		}
		word = strings.ToLower(word)
		at, size := indexFold(text, word)
		if want := strings.Contains(strings.ToLower(text), word); want != (at >= 0) {
			t.Fatalf("%q in %q: %v, want %v", word, text, at >= 0, want)
		}
		if at >= 0 && strings.ToLower(text[at:at+size]) != word {
			t.Errorf("%q in %q: found %q", word, text, text[at:at+size])
		}
	})
}

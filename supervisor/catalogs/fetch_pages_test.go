package catalogs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// pager is a server that returns the pages of a test case.
type pager struct {
	registryv1.RegistryServiceClient

	calls   int
	bundles func(call int, token string) (*registryv1.ListBundlesResponse, error)
	objects func(token string) *registryv1.ListDeprecationsResponse
}

func (p *pager) ListBundles(_ context.Context, r *registryv1.ListBundlesRequest, _ ...grpc.CallOption) (*registryv1.ListBundlesResponse, error) {
	p.calls++
	return p.bundles(p.calls, r.GetPageToken())
}

func (p *pager) ListDeprecations(
	_ context.Context, r *registryv1.ListDeprecationsRequest, _ ...grpc.CallOption,
) (*registryv1.ListDeprecationsResponse, error) {
	if p.objects != nil {
		return p.objects(r.GetPageToken()), nil
	}
	return &registryv1.ListDeprecationsResponse{ContentDigest: "a"}, nil
}

func TestPagesOfBadServers(t *testing.T) {
	one := func(name string) []*registryv1.Bundle {
		return []*registryv1.Bundle{{Name: name, Package: "lamp", Channel: "stable", Version: "1.0.0"}}
	}
	for _, tt := range []struct {
		reason   string
		bundles  func(call int, token string) (*registryv1.ListBundlesResponse, error)
		objects  func(token string) *registryv1.ListDeprecationsResponse
		unusable bool
		want     string
		calls    int
	}{
		{
			reason: "no digest",
			bundles: func(int, string) (*registryv1.ListBundlesResponse, error) {
				return &registryv1.ListBundlesResponse{Bundles: one("lamp.v1")}, nil
			},
			unusable: true, want: "does not say which content it is of", calls: 1,
		},
		{
			reason: "a page that is followed by itself",
			bundles: func(_ int, token string) (*registryv1.ListBundlesResponse, error) {
				return &registryv1.ListBundlesResponse{ContentDigest: "a", NextPageToken: "next"}, nil
			},
			unusable: true, want: "followed by itself", calls: 2,
		},
		{
			reason: "pages without end",
			bundles: func(call int, _ string) (*registryv1.ListBundlesResponse, error) {
				return &registryv1.ListBundlesResponse{ContentDigest: "a", NextPageToken: strconv.Itoa(call)}, nil
			},
			unusable: true, want: "more than 10000 pages", calls: maxPages,
		},
		{
			reason: "another content on each page",
			bundles: func(call int, _ string) (*registryv1.ListBundlesResponse, error) {
				return &registryv1.ListBundlesResponse{ContentDigest: strconv.Itoa(call), NextPageToken: strconv.Itoa(call)}, nil
			},
			want: "replaced while it was being read", calls: 2 * maxRestarts,
		},
		{
			reason: "deprecations of another content",
			bundles: func(int, string) (*registryv1.ListBundlesResponse, error) {
				return &registryv1.ListBundlesResponse{ContentDigest: "b", Bundles: one("lamp.v1")}, nil
			},
			want: "replaced while it was being read", calls: maxRestarts,
		},
		{
			reason: "too much to say of deprecations",
			bundles: func(int, string) (*registryv1.ListBundlesResponse, error) {
				return &registryv1.ListBundlesResponse{ContentDigest: "a", Bundles: one("lamp.v1")}, nil
			},
			objects: func(token string) *registryv1.ListDeprecationsResponse {
				return &registryv1.ListDeprecationsResponse{ContentDigest: "a", NextPageToken: token + "x", Deprecations: []*registryv1.DeprecatedObject{
					{Package: "lamp", Kind: registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE, Name: token, Message: strings.Repeat("no", 1<<10)},
				}}
			},
			unusable: true, want: "packages and deprecations", calls: 1,
		},
		{
			reason: "another error",
			bundles: func(int, string) (*registryv1.ListBundlesResponse, error) {
				return nil, status.Error(codes.DataLoss, "damaged")
			},
			want: "damaged", calls: 1,
		},
	} {
		server := &pager{bundles: tt.bundles, objects: tt.objects}
		_, err := fetchPages(t.Context(), server, 1<<20)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, errUnusable) != tt.unusable || server.calls != tt.calls {
			t.Errorf("%s: after %d calls: %v", tt.reason, server.calls, err)
		}
	}
}

func TestPagesBeginAgain(t *testing.T) {
	server := &pager{bundles: func(call int, token string) (*registryv1.ListBundlesResponse, error) {
		switch {
		case call == 2:
			return nil, status.Error(codes.Aborted, "replaced")
		case token == "":
			return &registryv1.ListBundlesResponse{ContentDigest: "a", NextPageToken: "1", Bundles: []*registryv1.Bundle{
				{Name: "lamp.v" + strconv.Itoa(call), Package: "lamp", Channel: "stable", Version: "1.0.0", InDefaultChannel: true},
			}}, nil
		default:
			return &registryv1.ListBundlesResponse{ContentDigest: "a"}, nil
		}
	}}
	s, err := fetchPages(t.Context(), server, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	// Pages of the old and the new content are not mixed.
	if p := s.Content.Package("lamp"); len(p.Bundles) != 1 || p.Bundle("lamp.v3") == nil || p.DefaultChannel != "stable" || s.announced != "a" {
		t.Errorf("package %+v of content %s", p, s.announced)
	}
}

func TestStaleContent(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := func(uid string, minutes int) server {
		return server{replica: replicas.Endpoint{UID: types.UID(uid), Created: now.Add(time.Duration(minutes) * time.Minute)}, epoch: 1}
	}
	again := pod("old", -60)
	again.epoch = 2
	a, b := identity{announced: "a", digest: "1"}, identity{announced: "b", digest: "2"}
	for _, tt := range []struct {
		reason string
		at     server
		what   identity
		last   announcement
		ago    time.Duration
		want   bool
	}{
		{reason: "another replica is late", at: pod("old", -60), what: a, last: announcement{pod("new", -5), b}, want: true},
		{reason: "the same replica said so all the time", at: pod("old", -60), what: a, last: announcement{pod("old", -60), a}, want: true},
		{reason: "it went back itself", at: pod("old", -60), what: a, last: announcement{pod("old", -60), b}},
		{reason: "it may be another process by now", at: again, what: a, last: announcement{pod("old", -60), b}, want: true},
		{reason: "it is younger", at: pod("newest", 0), what: a, last: announcement{pod("new", -5), b}},
		{reason: "it is long ago", at: pod("old", -60), what: a, last: announcement{pod("new", -5), b}, ago: time.Minute},
		{reason: "it is another content", at: pod("old", -60), what: identity{announced: "c"}, last: announcement{pod("new", -5), b}},
	} {
		h := serverHistory{last: tt.last, origin: pod("new", -5), previous: a, replacedAt: now.Add(-tt.ago)}
		if got := h.isStale(tt.at, tt.what, now, time.Minute); got != tt.want {
			t.Errorf("%s: %v", tt.reason, got)
		}
	}
	for _, tt := range []struct {
		a, b identity
		want bool
	}{
		{want: false},
		{a: a, b: identity{announced: "a"}, want: true},
		{a: identity{digest: "1"}, b: identity{digest: "1"}, want: true},
		{a: a, b: identity{digest: "1"}},
		{a: identity{}, b: identity{digest: "1"}},
	} {
		if got := tt.a.is(tt.b); got != tt.want {
			t.Errorf("%+v is %+v: %v", tt.a, tt.b, got)
		}
	}
}

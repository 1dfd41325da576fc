package image

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// challenge lets a registry require a token that a service issues.
func challenge(realm *string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, request *http.Request) bool {
		if request.Header.Get("Authorization") == "Bearer abc" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+*realm+`",service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// TestPrivateTokenService has a registry whose token service has another port of the same address.
func TestPrivateTokenService(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "team/catalog:v1", simple(t, "1"))
	var requests atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		requests.Add(1)
		user, word, _ := request.BasicAuth()
		query := request.URL.Query()
		if user != "user" || word != "word" || request.URL.Path != "/jwt/auth" || query.Get("a") != "b" || query.Get("service") != "s" ||
			query.Get("host") != request.Host {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"token":"abc"}`)
	}))
	defer service.Close()
	realm := service.URL + "/jwt/auth?a=b&host=" + service.Listener.Addr().String()
	r.answer(challenge(&realm))
	c := client(t, func(o *Options) { o.Keychain = PullSecrets(secret(t, r.host())) })
	to := newPulled(t)
	if _, err := c.Extract(t.Context(), reference, Catalog(), to.dir, to.scratch); err != nil || to.files(t)["c"] != "1" {
		t.Errorf("got %v, %v", to.files(t), err)
	}
	ref, err := c.Reference(reference)
	if err != nil {
		t.Fatal(err)
	}
	options, err := c.Remote(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(ref, options...); err != nil {
		t.Errorf("by package remote: %v", err)
	}
	_, err = client(t, nil).Resolve(t.Context(), reference)
	expect(t, "without credentials", err, reference, ReasonUnauthorized, "401")

	asked := requests.Load()
	for _, realm = range []string{"http://169.254.169.254", "http://[fe80::1]"} {
		_, err = c.Resolve(t.Context(), reference)
		expect(t, "cloud metadata", err, reference, ReasonUnauthorized, "wants tokens of "+realm)
		if remedy := Remedy(err); !strings.Contains(remedy, "configure the registry to name its token service "+realm) {
			t.Errorf("the remedy is %q", remedy)
		}
	}
	if requests.Load() != asked {
		t.Error("the token service was asked")
	}
}

func TestMayName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		registry, service string
		want              bool
	}{
		{"10.0.0.5:5050", "10.0.0.5", true},
		{"10.0.0.5:5050", "192.168.1.2", true},
		{"[fd00::1]:5050", "fd00::1", true},
		{"127.0.0.1:5000", "127.0.0.1", true},
		{"127.0.0.1:5000", "::1", true},
		{"localhost:5000", "127.0.0.1", true},
		{"[::ffff:10.0.0.5]", "10.0.0.5", true},
		{"localhost:5000", "10.0.0.5", false},
		{"10.0.0.5", "127.0.0.1", false},
		{"10.0.0.5", "::ffff:127.0.0.1", false},
		{"10.0.0.5", "169.254.169.254", false},
		{"10.0.0.5", "0.0.0.0", false},
		{"198.51.100.1", "10.0.0.5", false},
		{"registry.example.com", "10.0.0.5", false},
	} {
		if got := mayName(tc.registry, netip.MustParseAddr(tc.service)); got != tc.want {
			t.Errorf("%s may name %s: got %t", tc.registry, tc.service, got)
		}
	}
}

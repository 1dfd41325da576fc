package imagesources

import (
	"context"
	"encoding/base64"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/webproxy"
)

func TestProxySettings(t *testing.T) {
	for name, tt := range map[string]struct {
		proxy Proxy
		want  string // in the error; empty for none
	}{
		"none":                   {},
		"all":                    {proxy: Proxy{URL: "https://web.example:3128/", Exceptions: ".example", Credentials: "shared/proxy"}},
		"without a scheme":       {proxy: Proxy{URL: "web.example:3128"}},
		"address in the Secret":  {proxy: Proxy{Exceptions: ".example", Credentials: "shared/proxy"}},
		"another scheme":         {Proxy{URL: "ftp://web.example"}, `--image-proxy has the scheme "ftp"; use one of http, https, socks5 and socks5h`},
		"no host":                {Proxy{URL: "http://"}, "--image-proxy is no URL of a proxy; write it as http://proxy.example.com:3128"},
		"a path":                 {Proxy{URL: "http://web.example/a"}, "--image-proxy is no URL of a proxy"},
		"credentials in the URL": {Proxy{URL: "http://u:p@web.example"}, "--image-proxy has credentials; write them to the keys username and password of a Secret"},
		"no namespace":           {Proxy{URL: "http://web.example", Credentials: "proxy"}, `--image-proxy-credentials is "proxy", which names no Secret; write it as NAMESPACE/NAME`},
		"exceptions alone":       {Proxy{Exceptions: ".example"}, "--image-no-proxy has no effect without --image-proxy; set NO_PROXY"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.proxy.Validate()
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "u:p") {
				t.Errorf("the error shows the credentials: %v", err)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	data := func(address string) map[string][]byte {
		return map[string][]byte{keyAddress: []byte(address), keyUsername: []byte("u"), keyPassword: []byte("p/:@")}
	}
	web := Proxy{URL: "http://web.example:3128", Exceptions: "quay.example,192.0.2.0/24", Credentials: "shared/proxy"}
	for name, tt := range map[string]struct {
		proxy   Proxy
		data    map[string][]byte
		request string
		want    string // the proxy; empty for none
		fails   string
	}{
		"a registry":             {web, nil, "https://ghcr.example/v2/", "http://web.example:3128", ""},
		"plain HTTP":             {web, nil, "http://ghcr.example/v2/", "http://web.example:3128", ""},
		"with credentials":       {web, data(""), "https://ghcr.example/v2/", "http://u:p%2F%3A%40@web.example:3128", ""},
		"address in the Secret":  {web, data(" socks5h://guest.example:1080\n"), "https://ghcr.example/v2/", "socks5h://u:p%2F%3A%40@guest.example:1080", ""},
		"an exception":           {web, nil, "https://quay.example/v2/", "", ""},
		"a domain below it":      {web, nil, "https://cdn.quay.example/v2/", "", ""},
		"an address":             {web, nil, "https://192.0.2.7:5000/v2/", "", ""},
		"inside the cluster":     {web, nil, "https://registry.images.svc:5000/v2/", "", ""},
		"with the cluster's":     {web, nil, "https://registry.images.svc.cluster.local/v2/", "", ""},
		"no address":             {Proxy{Credentials: "shared/proxy"}, data(""), "", "", "the Secret shared/proxy of --image-proxy-credentials has no key address; add it, or set --image-proxy"},
		"an unusable address":    {web, data("ftp://a"), "", "", `key address of Secret shared/proxy has the scheme "ftp"`},
		"credentials in address": {web, data("http://u:secret@a"), "", "", "key address of Secret shared/proxy has credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			choose, err := tt.proxy.choose(tt.data)
			if tt.fails != "" {
				if _, ok := errors.AsType[*proxyError](err); !ok || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "secret@") {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(tt.request)
			if err != nil {
				t.Fatal(err)
			}
			got, err := choose(&http.Request{URL: u})
			if err != nil || (got == nil) != (tt.want == "") || got != nil && got.String() != tt.want {
				t.Errorf("got %v, %v, want %q", got, err, tt.want)
			}
		})
	}
	if choose, err := (&Proxy{}).choose(nil); choose != nil || err != nil {
		t.Errorf("without settings: %v, want the environment's proxies", err)
	}
}

// proxied is a registry source.test behind a proxy.
type proxied struct {
	*testing.T

	settings *Settings
	reader   client.Client
}

// resolve returns the error of a look-up of the image in the registry.
func (p *proxied) resolve() error {
	access, err := p.settings.Access(p.Context(), p.reader, &Catalog{NamespacedName: types.NamespacedName{Namespace: "olm", Name: "shop"}}, "source.test/shop:v1")
	if err != nil {
		return err
	}
	c, err := image.New(image.Options{Keychain: access.Keychain, Sources: access.Sources, Attempts: 1})
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	_, err = c.Resolve(ctx, "source.test/shop:v1")
	return err //nolint:wrapcheck // The test compares it.
}

// wants checks that a look-up fails for a reason, with a text in the error; without a reason, that it succeeds.
func (p *proxied) wants(what string, reason image.Reason, text string) {
	p.Helper()
	if err := p.resolve(); image.ReasonOf(err) != reason || err != nil && !strings.Contains(err.Error(), text) {
		p.Errorf("%s: got %q: %v, want %q: %q", what, image.ReasonOf(err), err, reason, text)
	}
}

// sourceTest runs a registry with an image and a certificate for source.test. It returns its address.
func sourceTest(t *testing.T, authority *certificates.Authority) string {
	t.Helper()
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(t.Output(), "", 0))))
	server.TLS = authority.Sign(t, certificates.Request{Hosts: []string{"source.test", "127.0.0.1"}}).Server(t)
	server.Config.ErrorLog = log.New(t.Output(), "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	ref, err := name.ParseReference(address + "/shop:v1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	transport := server.Client().Transport.(*http.Transport).Clone() //nolint:forcetypeassert // httptest has no other
	transport.TLSClientConfig.RootCAs = authority.Pool()
	defer transport.CloseIdleConnections()
	if err := remote.Write(ref, img, remote.WithTransport(transport)); err != nil {
		t.Fatal(err)
	}
	return address
}

// newProxied returns settings that trust an authority and use a proxy.
func newProxied(t *testing.T, trusted *certificates.Authority, proxy Proxy) *proxied {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, trusted.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(sources.Paths{CA: ca}, nil)
	s.UseProxy(proxy)
	return &proxied{t, s, fake.NewClientBuilder().Build()}
}

// TestProxyWithCredentials pulls through a proxy that requires credentials, and changes them. The name of the registry
// resolves only at the proxy.
func TestProxyWithCredentials(t *testing.T) {
	authority := certificates.NewAuthority(t, "ours")
	proxy := webproxy.New(t, webproxy.Options{
		Hosts: map[string]string{"source.test:443": sourceTest(t, authority)},
		Login: "Basic " + base64.StdEncoding.EncodeToString([]byte("u:new")),
	})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "proxy"},
		Data:       map[string][]byte{keyUsername: []byte("u"), keyPassword: []byte("old")},
	}
	p := newProxied(t, authority, Proxy{URL: "http://" + proxy.Address, Credentials: "shared/proxy"})
	p.wants("no Secret", image.ReasonConfiguration, "the Secret shared/proxy of --image-proxy-credentials does not exist; create it")
	if asked := proxy.Asked(); len(asked) > 0 {
		t.Errorf("without credentials, the proxy was asked for %q", asked)
	}
	if err := p.reader.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.wants("old credentials", image.ReasonUnreachable,
		"proxy http://"+proxy.Address+" denies the connection to source.test:443: 407 Proxy Authentication Required; check the credentials for the proxy")
	secret.Data[keyPassword] = []byte("new")
	if err := p.reader.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.wants("new credentials", "", "")
	if asked := proxy.Asked(); !slices.Equal(asked, []string{"CONNECT source.test:443"}) {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

// TestInterceptingProxy pulls through a proxy that intercepts TLS with an authority of its own (scenario 36).
func TestInterceptingProxy(t *testing.T) {
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "inspection.example")
	proxy := webproxy.New(t, webproxy.Options{Hosts: map[string]string{"source.test:443": sourceTest(t, ours)}, Authority: theirs})
	newProxied(t, ours, Proxy{URL: proxy.Address}).wants("an unknown authority", image.ReasonUntrusted, `its issuer is "CN=inspection.example"`)
	newProxied(t, theirs, Proxy{URL: proxy.Address}).wants("with its certificate", "", "")
	other := webproxy.New(t, webproxy.Options{})
	newProxied(t, theirs, Proxy{URL: other.Address}).wants("a host that the proxy lacks", image.ReasonUnreachable, "denies the connection to source.test:443: 502 Bad Gateway")
}

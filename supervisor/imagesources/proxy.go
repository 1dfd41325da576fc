package imagesources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
)

// Keys of the Secret with the credentials of a proxy.
const (
	keyAddress  = "address"
	keyUsername = "username"
	keyPassword = "password"
)

// Proxy is the proxy for connections to image registries. The zero value stands for the proxies of the environment.
type Proxy struct {
	// URL is its address.
	URL string
	// Exceptions are the hosts that are reached without it, in the form of NO_PROXY.
	Exceptions string
	// Credentials is the Secret with its credentials, as NAMESPACE/NAME; empty for none. An address in it
	// overrides URL.
	Credentials string
}

// proxyError is an error of the settings of a proxy, with the remedy.
type proxyError struct{ err error }

func (e *proxyError) Error() string { return e.err.Error() }

func (e *proxyError) Unwrap() error { return e.err }

// AddFlags adds a flag for each setting.
func (p *Proxy) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.URL, "image-proxy", "",
		"URL of the proxy for image registries, instead of HTTPS_PROXY")
	fs.StringVar(&p.Exceptions, "image-no-proxy", "",
		"hosts that bypass --image-proxy, in the format of NO_PROXY; .svc and .cluster.local always bypass it")
	fs.StringVar(&p.Credentials, "image-proxy-credentials", "",
		"Secret with username and password for --image-proxy, as NAMESPACE/NAME; the key 'address' of the Secret overrides --image-proxy")
}

// Validate returns an error that names every invalid setting and its remedy.
func (p *Proxy) Validate() error {
	var problems []error
	if p.URL != "" {
		if _, err := parseProxy(p.URL); err != nil {
			problems = append(problems, fmt.Errorf("--image-proxy %w", err))
		}
	}
	if key := p.secret(); p.Credentials != "" && (len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(key.Name)) > 0) {
		problems = append(problems, fmt.Errorf("--image-proxy-credentials is %q, which names no Secret; write it as NAMESPACE/NAME", p.Credentials))
	}
	if p.Exceptions != "" && p.URL == "" && p.Credentials == "" {
		problems = append(problems, errors.New("--image-no-proxy has no effect without --image-proxy; set NO_PROXY for the proxies of the environment"))
	}
	return errors.Join(problems...)
}

// secret returns the key of the Secret with the credentials.
func (p *Proxy) secret() types.NamespacedName {
	namespace, name, _ := strings.Cut(p.Credentials, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// read returns the function that chooses the proxy for a request, nil for that of the environment. It reads the
// Secret each time, so that other credentials apply to the next image. Unusable settings are a [*proxyError].
func (p *Proxy) read(ctx context.Context, reader client.Reader) (func(*http.Request) (*url.URL, error), error) {
	if p.Credentials == "" {
		return p.choose(nil)
	}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, p.secret(), secret)
	if apierrors.IsNotFound(err) {
		return nil, &proxyError{fmt.Errorf("the Secret %s of --image-proxy-credentials does not exist; create it", p.Credentials)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s of --image-proxy-credentials: %w", p.Credentials, err)
	}
	return p.choose(secret.Data)
}

// choose returns the function that chooses the proxy for a request, nil for that of the environment. data is the
// content of the Secret.
func (p *Proxy) choose(data map[string][]byte) (func(*http.Request) (*url.URL, error), error) {
	place, address := "--image-proxy", p.URL
	if own := strings.TrimSpace(string(data[keyAddress])); own != "" {
		place, address = fmt.Sprintf("key %s of Secret %s", keyAddress, p.Credentials), own
	}
	if address == "" {
		if p.Credentials == "" {
			return nil, nil //nolint:nilnil // The doc comment says what nil means.
		}
		return nil, &proxyError{fmt.Errorf("the Secret %s of --image-proxy-credentials has no key %s; add it, or set --image-proxy", p.Credentials, keyAddress)}
	}
	proxy, err := parseProxy(address)
	if err != nil {
		return nil, &proxyError{fmt.Errorf("%s %w", place, err)}
	}
	if user := string(data[keyUsername]); user != "" {
		proxy.User = url.UserPassword(user, string(data[keyPassword]))
	}
	config := httpproxy.Config{HTTPProxy: proxy.String(), HTTPSProxy: proxy.String(), NoProxy: p.Exceptions + ",.svc,.cluster.local"}
	find := config.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }, nil
}

// parseProxy parses the URL of a proxy, which must have no credentials. The error continues a sentence that begins with the
// place of the URL, and does not show the URL.
func parseProxy(text string) (*url.URL, error) {
	u, err := image.ParseProxy(text)
	if err != nil {
		return nil, err //nolint:wrapcheck // continues the caller's sentence
	}
	if u.User != nil {
		return nil, fmt.Errorf("has credentials; write them to the keys %s and %s of a Secret, and name it in --image-proxy-credentials", keyUsername, keyPassword)
	}
	return u, nil
}

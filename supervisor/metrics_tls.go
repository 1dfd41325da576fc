package supervisor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)

// MetricsTLS names the files of the certificate for the metrics. With them, the metrics are served over TLS to
// clients whose token may read them. Without them, everyone can read them.
type MetricsTLS struct {
	// Certificate and Key are files in PEM form. Both are empty or neither is.
	Certificate, Key string
}

func (t *MetricsTLS) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&t.Certificate, "metrics-tls-cert", "", "file with the TLS certificate chain of --metrics-address (PEM); clients of /metrics then need a token and permission to get the non-resource URL /metrics; a changed file applies to new connections")
	fs.StringVar(&t.Key, "metrics-tls-key", "", "file with the private key of --metrics-tls-cert (PEM)")
}

func (t *MetricsTLS) validate() error {
	if (t.Certificate == "") != (t.Key == "") {
		return errors.New("only one of --metrics-tls-cert and --metrics-tls-key is set; set both or neither")
	}
	return nil
}

func (t *MetricsTLS) enabled() bool { return t.Certificate != "" }

// config returns the configuration of the server. It reads the files at each connection, so that a renewed certificate
// is used at once.
func (t *MetricsTLS) config() (*tls.Config, error) {
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("reading --metrics-tls-cert and --metrics-tls-key: %w", err)
		}
		return &pair, nil
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: load, NextProtos: []string{"http/1.1"}}, nil
}

// Limits of the reviews of tokens, so that clients without a valid token do not load the API server.
const (
	reviewsPerSecond = 5
	reviewsBurst     = 20
)

// authorized returns a handler for requests with a token whose user may make them, according to the API server.
// It logs nothing, because clients with an unknown token could fill the log.
func authorized(cfg *rest.Config, handler http.Handler) (http.Handler, error) {
	limited := rest.CopyConfig(cfg)
	limited.QPS, limited.Burst = reviewsPerSecond, reviewsBurst
	client, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, fmt.Errorf("preparing the authentication of metrics: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(limited, client)
	if err != nil {
		return nil, fmt.Errorf("preparing the authentication of metrics: %w", err)
	}
	filtered, err := filter(logr.Discard(), handler)
	if err != nil {
		return nil, fmt.Errorf("preparing the authentication of metrics: %w", err)
	}
	return filtered, nil
}

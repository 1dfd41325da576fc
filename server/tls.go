package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLS names the files for encryption and authentication of connections. They are read periodically;
// new files apply to new connections. The zero value serves without encryption.
type TLS struct {
	// Certificate and Key are PEM files. Certificate holds the whole chain.
	Certificate, Key string
	// ClientCA is a PEM file of authorities. If it is set, clients must present a certificate that
	// one of them has signed.
	ClientCA string
	// Address serves TLS beside Config.Address, which then serves plain text. By default, Config.Address
	// serves TLS.
	Address string
	// Interval is the time between two reads of the files; 10 s by default.
	Interval time.Duration
}

const (
	defaultTLSInterval = 10 * time.Second
	// maxPEM is the size of the largest file of certificates that is read.
	maxPEM = 1 << 20
	// numTLSFiles are the certificate, its key and the clients' authorities.
	numTLSFiles = 3
)

var (
	errHalfTLS   = errors.New("a TLS certificate and its key belong together: name both files")
	errLonePort  = errors.New("a port for TLS needs a certificate: name the server's certificate and key as well")
	errLoneCA    = errors.New("client certificates need TLS: name the server's certificate and key as well")
	errNoCerts   = errors.New("holds no PEM certificate")
	errLargeFile = errors.New("is too large for a file of certificates")
)

// enabled reports whether connections are encrypted.
func (t TLS) enabled() bool { return t.Certificate != "" }

func (t TLS) validate() error {
	switch {
	case (t.Certificate == "") != (t.Key == ""):
		return errHalfTLS
	case t.ClientCA != "" && t.Certificate == "":
		return errLoneCA
	case t.Address != "" && t.Certificate == "":
		return errLonePort
	default:
		return nil
	}
}

// certificates is the TLS configuration for new connections. It follows its files.
type certificates struct {
	files   TLS
	logger  *slog.Logger
	metrics *metrics
	current atomic.Pointer[tls.Config]
	// seen are the contents of the files at the last attempt to load them. reported is the last
	// logged error. Only the watching goroutine accesses both.
	seen     [numTLSFiles][]byte
	reported string
}

// newCertificates loads the files. The first load must succeed.
func newCertificates(files TLS, logger *slog.Logger, m *metrics) (*certificates, error) {
	c := &certificates{files: files, logger: logger, metrics: m}
	if _, err := c.load(); err != nil {
		return nil, fmt.Errorf("loading TLS certificates: %w", err)
	}
	return c, nil
}

// credentials returns the credentials for gRPC.
func (c *certificates) credentials() credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load(), nil
		},
	})
}

// watch reloads the files when they change, until ctx ends. It compares contents, because a mounted
// Secret changes by switching a link to its folder.
func (c *certificates) watch(ctx context.Context) {
	ticker := time.NewTicker(c.files.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := c.load()
		switch {
		case err != nil && err.Error() != c.reported:
			c.reported = err.Error()
			c.logger.ErrorContext(ctx, "Keeping the old TLS certificate: the new one cannot be used", "error", err)
		case changed:
			c.reported = ""
			c.logger.InfoContext(ctx, "Loaded a new TLS certificate", "certificate", c.files.Certificate)
		}
	}
}

// load applies the files unless they are the same as before.
func (c *certificates) load() (changed bool, err error) {
	read, err := c.files.read()
	if err != nil {
		return false, err
	}
	if sameFiles(read, c.seen) {
		return false, nil
	}
	// An invalid file is not tried again before it changes.
	c.seen = read
	config, expiry, err := c.files.config(read)
	if err != nil {
		c.metrics.certificateLoads.WithLabelValues(resultFailure).Inc()
		return false, err
	}
	c.current.Store(config)
	c.metrics.certificateLoads.WithLabelValues(resultSuccess).Inc()
	c.metrics.certificateExpiry.Set(float64(expiry.Unix()))
	return true, nil
}

// unstableReads is how often files that change are read again.
const unstableReads = 5

// read returns the contents of the files after two equal reads. The files are read one after the
// other and may be replaced in between.
func (t TLS) read() (read [numTLSFiles][]byte, err error) {
	for range unstableReads {
		before := read
		for i, name := range [...]string{t.Certificate, t.Key, t.ClientCA} {
			if read[i], err = readPEM(name); err != nil {
				return read, err
			}
		}
		if sameFiles(before, read) {
			break
		}
	}
	return read, nil
}

func sameFiles(a, b [numTLSFiles][]byte) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// config returns the TLS configuration for the contents of the files.
func (t TLS) config(read [numTLSFiles][]byte) (_ *tls.Config, expiry time.Time, err error) {
	pair, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s and %s: %w", t.Certificate, t.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair}}
	if t.ClientCA != "" {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(read[2]) {
			return nil, time.Time{}, fmt.Errorf("%s %w", t.ClientCA, errNoCerts)
		}
	}
	return config, pair.Leaf.NotAfter, nil
}

// readPEM reads a file, or nothing if the name is empty.
func readPEM(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPEM {
		return nil, fmt.Errorf("%s %w (%d bytes)", name, errLargeFile, info.Size())
	}
	return os.ReadFile(name)
}

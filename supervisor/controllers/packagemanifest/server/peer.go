package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// contentsPath is the path below which other supervisors read contents of catalogs: NAMESPACE/NAME/UID.
const contentsPath = "/catalog-contents/"

// ContentOpener opens the file with the content of a catalog. The error is fs.ErrNotExist if there is none.
type ContentOpener func(name types.NamespacedName, uid types.UID) (*os.File, error)

// peerHandler answers requests of other supervisors for contents of catalogs. They prove that they have the key of the
// serving certificate, which all supervisors share. Other requests go to the next handler.
type peerHandler struct {
	certificate dynamiccertificates.CertKeyContentProvider
	open        ContentOpener
	next        http.Handler
}

// ServeHTTP answers a request.
func (h *peerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, found := strings.CutPrefix(r.URL.Path, contentsPath)
	if !found || h.open == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	own, err := tls.X509KeyPair(h.certificate.CurrentCertKeyContent())
	if err != nil || r.TLS == nil || checkPeer(*r.TLS, &own) != nil {
		http.Error(w, "only supervisors may read contents of catalogs", http.StatusForbidden)
		return
	}
	parts := strings.Split(path, "/")
	if r.Method != http.MethodGet || len(parts) != 3 {
		http.Error(w, "use GET "+contentsPath+"NAMESPACE/NAME/UID", http.StatusBadRequest)
		return
	}
	file, err := h.open(types.NamespacedName{Namespace: parts[0], Name: parts[1]}, types.UID(parts[2]))
	if err != nil {
		http.Error(w, "the content is not on disk", http.StatusNotFound)
		return
	}
	defer file.Close() //nolint:errcheck // nothing was written
	w.Header().Set("Content-Type", "application/octet-stream")
	// A write error means that the client has closed the connection.
	_, _ = io.Copy(w, file)
}

var errNotPeer = errors.New("the other side has another certificate than this supervisor; a renewed one is read within a minute")

// checkPeer returns an error unless the other side of a connection has the key of a certificate. The handshake has
// proven that it has the key of the certificate that it sent.
func checkPeer(state tls.ConnectionState, own *tls.Certificate) error {
	if len(state.PeerCertificates) == 0 || len(own.Certificate) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, own.Certificate[0]) {
		return errNotPeer
	}
	return nil
}

// Peer reads the contents of catalogs of another supervisor.
type Peer struct {
	// Address is the host and port of the Service of all supervisors.
	Address string
	// Certificate returns the serving certificate and its key, in PEM.
	Certificate func(ctx context.Context) (cert, key []byte, err error)
}

// Open opens the content of a catalog. The error is [fs.ErrNotExist] if the other supervisor has none.
func (p *Peer) Open(ctx context.Context, name types.NamespacedName, uid types.UID) (io.ReadCloser, error) {
	cert, key, err := p.Certificate(ctx)
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for other supervisors: %w", err)
	}
	at := url.URL{Scheme: "https", Host: p.Address, Path: contentsPath + name.Namespace + "/" + name.Name + "/" + string(uid)}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask another supervisor: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The other supervisor must have the same certificate, whatever its names and authority.
		InsecureSkipVerify:   true, //nolint:gosec // VerifyConnection checks more
		VerifyConnection:     func(state tls.ConnectionState) error { return checkPeer(state, &own) },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil },
	}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("asking another supervisor for the content of CatalogSource %s: %w", name, err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	_ = response.Body.Close() // the status says everything
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("asking another supervisor for the content of CatalogSource %s: %w", name, fs.ErrNotExist)
	}
	return nil, fmt.Errorf("asking another supervisor for the content of CatalogSource %s: %w: %s", name, errPeerAnswer, response.Status)
}

var errPeerAnswer = errors.New("it refused")

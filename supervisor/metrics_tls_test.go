package supervisor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewer is an API server that knows two tokens: one of a user who may read metrics, and one of a user who may not.
func reviewer(t *testing.T) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		name, known := strings.CutPrefix(review.Spec.Token, "token-of-")
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{Username: name}}
		answer(t, w, review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		about := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && about != nil && about.Path == "/metrics" && about.Verb == "get"
		answer(t, w, review)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func answer(t *testing.T, w http.ResponseWriter, review any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		t.Error(err)
	}
}

// writeCertificate writes a new certificate with a serial number.
func writeCertificate(t *testing.T, files MetricsTLS, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		files.Certificate: {Type: "CERTIFICATE", Bytes: certificate}, files.Key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serveMetrics serves metrics with certificate files, and returns the address.
func serveMetrics(t *testing.T, files MetricsTLS) string {
	t.Helper()
	opened, err := openPorts(t.Context(), reviewer(t), Options{MetricsAddress: "127.0.0.1:0", HealthAddress: "0", MetricsTLS: files}, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	stop := opened.serve(t.Context(), func(error) {})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return opened[0].Listener.Addr().String()
}

// TestMetricsNeedAToken reads metrics over TLS with several tokens, and without TLS.
func TestMetricsNeedAToken(t *testing.T) {
	dir := t.TempDir()
	files := MetricsTLS{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	writeCertificate(t, files, 1)
	address := serveMetrics(t, files)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	get := func(token, path string) (code int, serial int64, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.TLS.PeerCertificates[0].SerialNumber.Int64(), string(text)
	}
	for _, tt := range []struct {
		reason, token, path string
		code                int
	}{
		{"no token", "", "/metrics", http.StatusUnauthorized},
		{"an unknown token", "guess", "/metrics", http.StatusInternalServerError}, // as with all users of the library
		{"a user without the permission", "token-of-tenant", "/metrics", http.StatusForbidden},
		{"another path", "token-of-prometheus", "/other", http.StatusForbidden},
		{"a user with the permission", "token-of-prometheus", "/metrics", http.StatusOK},
	} {
		code, _, body := get(tt.token, tt.path)
		if code != tt.code || strings.Contains(body, "go_goroutines") != (code == http.StatusOK) {
			t.Errorf("%s: status %d, %d bytes", tt.reason, code, len(body))
		}
	}
	writeCertificate(t, files, 2)
	if code, serial, _ := get("token-of-prometheus", "/metrics"); code != http.StatusOK || serial != 2 {
		t.Errorf("after the renewal: status %d, certificate %d", code, serial)
	}
	plain, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: status %d, %v", response.StatusCode, err)
	}
}

// TestMetricsTLSFiles checks the error about files that cannot be read, and about one of them alone.
func TestMetricsTLSFiles(t *testing.T) {
	if _, err := openPorts(t.Context(), reviewer(t), Options{MetricsAddress: "127.0.0.1:0", MetricsTLS: MetricsTLS{"absent", "absent"}}, nil); err == nil || !strings.Contains(err.Error(), "--metrics-tls-cert") {
		t.Errorf("missing files: %v", err)
	}
	o := defaults(t, "--metrics-tls-cert=c")
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "set both or neither") {
		t.Errorf("a certificate without a key: %v", err)
	}
}

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

// authority signs certificates for a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{serial: 1}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// sign returns a new certificate for 127.0.0.1, and its key.
func (a *authority) sign(t *testing.T) (certificate, key []byte) {
	t.Helper()
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// pair returns a new certificate in the form for clients.
func (a *authority) pair(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(a.sign(t))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// secret is a folder as the kubelet mounts it: the files are links into a folder that is replaced as a whole.
type secret struct {
	dir string
	n   int
}

func (s *secret) write(t *testing.T, files map[string][]byte) {
	t.Helper()
	s.n++
	version := "..version" + strconv.Itoa(s.n)
	if err := os.Mkdir(filepath.Join(s.dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, version, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(s.dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(version, filepath.Join(s.dir, "..next")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(s.dir, "..next"), filepath.Join(s.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// startTLS runs a server on a socket, with the files of a secret.
func startTLS(t *testing.T, s *secret, clients bool) (f *fixture, address string) {
	t.Helper()
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p"))
	files := TLS{Certificate: filepath.Join(s.dir, "tls.crt"), Key: filepath.Join(s.dir, "tls.key"), Interval: 5 * time.Millisecond}
	if clients {
		files.ClientCA = filepath.Join(s.dir, "ca.crt")
	}
	return startSocket(t, Config{Source: source.Dir{Path: dir}, TLS: files})
}

// encrypted returns a client with a TLS configuration.
func encrypted(t *testing.T, address string, config *tls.Config) api.RegistryClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewRegistryClient(conn)
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	certificate, key := ours.sign(t)
	s := &secret{dir: t.TempDir()}
	s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ours.pem})
	cases := map[string]struct {
		reason string
		mutual bool
		client *tls.Config
		fails  bool
	}{
		"Encrypted":  {reason: "the certificate is served", client: &tls.Config{RootCAs: ours.pool()}},
		"Old":        {reason: "old versions of TLS are refused", client: &tls.Config{RootCAs: ours.pool(), MaxVersion: tls.VersionTLS11}, fails: true},
		"Version12":  {reason: "version 1.2 is the least", client: &tls.Config{RootCAs: ours.pool(), MaxVersion: tls.VersionTLS12}},
		"Distrusted": {reason: "clients check the certificate", client: &tls.Config{RootCAs: theirs.pool()}, fails: true},
		"Mutual":     {reason: "a client that we know is let in", mutual: true, client: &tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{ours.pair(t)}}},
		"Nobody":     {reason: "a client without a certificate is not", mutual: true, client: &tls.Config{RootCAs: ours.pool()}, fails: true},
		"Stranger":   {reason: "nor one of another authority", mutual: true, client: &tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{theirs.pair(t)}}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, address := startTLS(t, s, tc.mutual)
			client := encrypted(t, address, tc.client)
			_, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "p"})
			for status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "not loaded yet") {
				_, err = client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "p"})
			}
			if (err != nil) != tc.fails {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestCertificateReload(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t)
	s := &secret{dir: t.TempDir()}
	s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	f, address := startTLS(t, s, false)
	serial := func() int64 {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: a.pool(), NextProtos: []string{"h2"}}}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != a.serial {
		t.Errorf("got certificate %d, want %d", got, a.serial)
	}
	// Open a connection that outlives everything that follows.
	client := encrypted(t, address, &tls.Config{RootCAs: a.pool()})
	call := func() error {
		_, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "p"})
		return err
	}
	wait(t, "the first answer", func() bool { return call() == nil })

	good := a.serial
	_, other := a.sign(t)
	s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": other})
	const kept = "Keeping the old TLS certificate"
	wait(t, "the broken pair to be logged", func() bool { return strings.Contains(f.logs.String(), kept) })
	if got := serial(); got != good {
		t.Errorf("with a broken pair: certificate %d, want %d", got, good)
	}
	certificate, key = a.sign(t)
	s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	wait(t, "the new certificate", func() bool { return serial() == a.serial })
	if err := call(); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
	if opened := value(t, f.metrics.certificateExpiry); opened < float64(time.Now().Unix()) {
		t.Errorf("the certificate ends at %v", opened)
	}
	failures, loads := f.metrics.certificateLoads.WithLabelValues(resultFailure), f.metrics.certificateLoads.WithLabelValues(resultSuccess)
	if value(t, failures) != 1 || value(t, loads) != 2 || strings.Count(f.logs.String(), kept) != 1 {
		t.Errorf("counted %v failures and %v successes, log:\n%s", value(t, failures), value(t, loads), f.logs)
	}
}

func TestBadTLSFiles(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t)
	dir := t.TempDir()
	paths := map[string]string{}
	for name, text := range map[string]string{
		"tls.crt": string(certificate), "tls.key": string(key), "junk": "junk", "huge": strings.Repeat("x", maxPEM+1),
	} {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		files  TLS
		want   string
	}{
		"NoKey":     {"halves are of no use", TLS{Certificate: paths["tls.crt"]}, "belong together"},
		"LoneCA":    {"authorities need a certificate beside them", TLS{ClientCA: paths["tls.crt"]}, "client certificates need TLS"},
		"Missing":   {"the file is named", TLS{Certificate: filepath.Join(dir, "gone"), Key: paths["tls.key"]}, "gone"},
		"Junk":      {"the file is named", TLS{Certificate: paths["junk"], Key: paths["tls.key"]}, "junk"},
		"Huge":      {"the size is bounded", TLS{Certificate: paths["huge"], Key: paths["tls.key"]}, "too large"},
		"JunkCA":    {"the file is named", TLS{Certificate: paths["tls.crt"], Key: paths["tls.key"], ClientCA: paths["junk"]}, "junk holds no PEM certificate"},
		"Exchanged": {"a key is no certificate", TLS{Certificate: paths["tls.key"], Key: paths["tls.crt"]}, "tls.key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := Config{Source: source.Dir{}, Logger: slog.New(slog.DiscardHandler), Address: "127.0.0.1:0", TLS: tc.files}
			if _, err := New(t.Context(), config); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want something with %q", tc.reason, err, tc.want)
			}
		})
	}
}

package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestIssue(t *testing.T) {
	s := mustServers(t, fixture())[0]
	c := mustIssue(t, s, now)
	if problem := c.Problem(s, "ns", now); problem != "" {
		t.Error(problem)
	}
	if want := now.AddDate(2, 0, 0).Add(-24 * time.Hour); c.NotAfter.Before(want) || c.RotateAt != c.NotAfter.AddDate(0, 0, -30) {
		t.Errorf("valid to %s and replaced at %s, want two years, and 30 days before that", c.NotAfter, c.RotateAt)
	}
	if d := c.IssuedAt().Sub(now); d < -time.Second || d > time.Second {
		t.Errorf("issued at %s, want %s", c.IssuedAt(), now)
	}
	parsed, err := cert.ParseCertsPEM(c.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if parsed[0].PublicKeyAlgorithm != x509.ECDSA || parsed[0].IsCA || !slices.Equal(parsed[0].DNSNames, s.Hosts("ns")) {
		t.Errorf("certificate is %s, an authority: %t, for %v", parsed[0].PublicKeyAlgorithm, parsed[0].IsCA, parsed[0].DNSNames)
	}
	if other := mustIssue(t, s, now); other.CAHash() == c.CAHash() || bytes.Equal(other.Key, c.Key) {
		t.Error("two certificates have the same authority or key")
	}
	if len(c.CAHash()) != 64 {
		t.Errorf("hash of the authority is %q, want a SHA-256 in hexadecimal", c.CAHash())
	}
}

// TestCertificateProblem checks the messages about unusable certificates.
func TestCertificateProblem(t *testing.T) {
	s := mustServers(t, fixture())[0]
	good, other := mustIssue(t, s, now), mustIssue(t, s, now)
	for name, tt := range map[string]struct {
		cert      Certificate
		namespace string
		at        time.Time
		want      string
	}{
		"good":              {cert: *good},
		"due":               {cert: *good, at: good.RotateAt.Add(time.Hour)},
		"a minute old node": {cert: *good, at: now.Add(-time.Minute)},
		"expired":           {cert: *good, at: good.NotAfter.Add(time.Second), want: "has expired"},
		"one name":          {cert: *issuedFor(t, "etcd-operator-service.ns.svc")},
		"one name too few":  {cert: *issuedFor(t, "etcd-operator-service.ns"), want: "is not valid for etcd-operator-service.ns.svc,"},
		"another namespace": {cert: *good, namespace: "other", want: "the certificate is not valid for etcd-operator-service.other.svc, the name that the API server uses"},
		"another key":       {cert: Certificate{CA: good.CA, Cert: good.Cert, Key: other.Key}, want: "do not match"},
		"another authority": {cert: Certificate{CA: other.CA, Cert: good.Cert, Key: good.Key}, want: "the certificate is not valid"},
		"no authority":      {cert: Certificate{Cert: good.Cert, Key: good.Key}, want: "authority cannot be read"},
		"nothing":           {want: "do not match"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.namespace == "" {
				tt.namespace = "ns"
			}
			if tt.at.IsZero() {
				tt.at = now
			}
			got := tt.cert.Problem(s, tt.namespace, tt.at)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("problem is %q, want %q", got, tt.want)
			}
		})
	}
}

// issuedFor returns a certificate of another issuer for given names.
func issuedFor(t *testing.T, names ...string) *Certificate {
	t.Helper()
	ca, caKey, err := authority("theirs", now)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := sign(&x509.Certificate{DNSNames: names, NotBefore: now, NotAfter: ca.NotAfter}, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	out := &Certificate{Provided: true}
	for into, encode := range map[*[]byte]func() ([]byte, error){
		&out.CA:   func() ([]byte, error) { return cert.EncodeCertificates(ca) },
		&out.Cert: func() ([]byte, error) { return cert.EncodeCertificates(signed) },
		&out.Key:  func() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(key) },
	} {
		if *into, err = encode(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestRotation executes a rotation. At each step it makes each pod that may be running answer each caller with
// any possible bundle: all handshakes succeed.
func TestRotation(t *testing.T) {
	csv := fixture()
	s := mustServers(t, csv)[0]
	old := mustIssue(t, s, now)
	due := old.RotateAt
	staged, err := Renew(throughSecret(t, s, old), s, "ns", due)
	if err != nil {
		t.Fatal(err)
	}
	if staged.Next == nil || !bytes.Equal(staged.Cert, old.Cert) || !staged.Due(due) {
		t.Fatal("a certificate that is due has no successor, or gave way to it at once")
	}
	if again, err := Renew(throughSecret(t, s, staged), s, "ns", due); err != nil || !bytes.Equal(again.Next.Cert, staged.Next.Cert) {
		t.Fatalf("the successor is made again: %v", err)
	}
	promoted := throughSecret(t, s, staged).UseNext()
	settled := throughSecret(t, s, promoted).DropPreviousCA()
	for _, step := range []struct {
		name         string
		pods         []*Certificate
		before, then *Certificate // the bundles of callers
	}{
		{"made known", []*Certificate{old}, old, staged},
		{"in use", []*Certificate{old, promoted}, staged, promoted},
		{"rolled out", []*Certificate{promoted}, promoted, settled},
	} {
		for _, pod := range step.pods {
			for _, told := range []*Certificate{step.before, step.then} {
				if err := handshake(t, s, pod, told.Bundle(), due); err != nil {
					t.Errorf("%s: a caller does not believe a pod: %v", step.name, err)
				}
			}
		}
	}
	if err := handshake(t, s, old, settled.Bundle(), due); err == nil {
		t.Error("the old authority is believed after it was settled")
	}
	if again, err := Renew(throughSecret(t, s, settled), s, "ns", due); err != nil || again.Next != nil || again.Due(due) {
		t.Errorf("a new certificate is replaced at once: %v", err)
	}
	if promoted.CAHash() == old.CAHash() || settled.CAHash() != promoted.CAHash() {
		t.Error("pods are to be recreated when the certificate takes over, and then no more")
	}
}

// throughSecret returns a certificate after writing and reading it.
func throughSecret(t *testing.T, s Server, c *Certificate) *Certificate {
	t.Helper()
	out, err := FromSecret(Secret(fixture(), s, c))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, out); diff != "" {
		t.Errorf("read of a Secret (-written +read):\n%s", diff)
	}
	return out
}

func handshake(t *testing.T, s Server, pod *Certificate, bundle []byte, at time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(pod.Cert, pod.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	clock := func() time.Time { return at }
	here, there := net.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- tls.Server(there, &tls.Config{Certificates: []tls.Certificate{pair}, Time: clock, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
		_ = there.Close()
	}()
	err = tls.Client(here, &tls.Config{RootCAs: roots, ServerName: s.Host("ns"), Time: clock, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	_ = here.Close()
	<-done
	return err
}

// TestRenew checks the renewal of unusual certificates.
func TestRenew(t *testing.T) {
	s := mustServers(t, fixture())[0]
	good := mustIssue(t, s, now)
	for name, tt := range map[string]struct {
		have     *Certificate
		same     bool
		previous bool
	}{
		"none":                   {},
		"good":                   {have: good, same: true},
		"damaged":                {have: &Certificate{CA: good.CA, Cert: good.Cert, Key: []byte("damaged")}, previous: true},
		"damaged, authority too": {have: &Certificate{CA: []byte("damaged")}},
		"a stray successor":      {have: &Certificate{CA: good.CA, Cert: good.Cert, Key: good.Key, RotateAt: good.RotateAt, Next: &Certificate{}}, same: true},
		"provided, of no use":    {have: &Certificate{CA: good.CA, Provided: true}, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Renew(tt.have, s, "ns", now)
			if err != nil {
				t.Fatal(err)
			}
			same := tt.have != nil && bytes.Equal(got.Cert, tt.have.Cert)
			if same != tt.same || got.Next != nil || (len(got.PreviousCA) > 0) != tt.previous {
				t.Errorf("same: %t, with a successor: %t, with a previous authority: %t", same, got.Next != nil, len(got.PreviousCA) > 0)
			}
			if !tt.same && got.Problem(s, "ns", now) != "" {
				t.Error(got.Problem(s, "ns", now))
			}
		})
	}
}

// TestFromSecret reads certificates that others wrote.
func TestFromSecret(t *testing.T) {
	s := mustServers(t, fixture())[0]
	c := mustIssue(t, s, now)
	for name, tt := range map[string]struct {
		secret *corev1.Secret
		want   *Certificate // nil for an error
	}{
		"another manager's": {
			secret: &corev1.Secret{Data: map[string][]byte{"tls.crt": c.Cert, "tls.key": c.Key, "olmCAKey": c.CA}},
			want:   &Certificate{CA: c.CA, Cert: c.Cert, Key: c.Key, NotAfter: c.NotAfter, RotateAt: c.RotateAt},
		},
		"provided": {
			secret: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationCertificate: Provided}},
				Data:       map[string][]byte{"tls.crt": c.Cert, "tls.key": c.Key, "ca.crt": c.CA, "next.tls.crt": c.Cert},
			},
			want: &Certificate{CA: c.CA, Cert: c.Cert, Key: c.Key, NotAfter: c.NotAfter, RotateAt: c.RotateAt, Provided: true},
		},
		"a successor that cannot be read": {
			secret: &corev1.Secret{Data: map[string][]byte{"tls.crt": c.Cert, "tls.key": c.Key, "olmCAKey": c.CA, "next.tls.crt": []byte("x")}},
			want:   &Certificate{CA: c.CA, Cert: c.Cert, Key: c.Key, NotAfter: c.NotAfter, RotateAt: c.RotateAt},
		},
		"without authority": {secret: &corev1.Secret{Data: map[string][]byte{"tls.crt": c.Cert, "tls.key": c.Key}}},
		"empty":             {secret: &corev1.Secret{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FromSecret(tt.secret)
			if (err == nil) != (tt.want != nil) {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("certificate (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProvidedIsNeverDue checks that a provided certificate is never replaced.
func TestProvidedIsNeverDue(t *testing.T) {
	c := &Certificate{RotateAt: now.Add(-time.Hour), Provided: true}
	if c.Due(now) {
		t.Error("somebody else's certificate is to be replaced")
	}
}

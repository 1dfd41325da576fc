package catalogsource

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

// believes reports whether a client that trusts some authorities accepts a certificate.
func believes(t *testing.T, bundle []byte, c *webhook.Certificate, at time.Time) bool {
	t.Helper()
	chain, err := cert.ParseCertsPEM(c.Cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = chain[0].Verify(x509.VerifyOptions{DNSName: "shop.olm.svc", Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil
}

// TestCertificateRotation passes the time of two renewals. A client that reads the authorities once a day accepts the
// certificate at each time.
func TestCertificateRotation(t *testing.T) {
	source := shop()
	var stored *webhook.Certificate
	var published, known []byte
	uses, first := 0, []byte(nil)
	for hour := 0; hour < 24*365*4; hour += 6 {
		now := noon.Add(time.Duration(hour) * time.Hour)
		before := stored
		next, err := nextCertificate(stored, source, published, now)
		if err != nil {
			t.Fatal(err)
		}
		published = next.Bundle()
		// The Secret is what the next check reads.
		if stored, err = webhook.FromSecret(&corev1.Secret{Data: next.Data()}); err != nil {
			t.Fatal(err)
		}
		if before == nil || !bytes.Equal(before.Cert, stored.Cert) {
			uses, first = uses+1, stored.CA
		}
		if hour%24 == 18 || hour == 0 {
			known = published
		}
		changed := before == nil || !bytes.Equal(before.Cert, stored.Cert)
		if (changed || hour%24 == 0) && !believes(t, known, stored, now) {
			t.Fatalf("after %d hours, a client does not accept the certificate", hour)
		}
	}
	if uses != 3 {
		t.Errorf("%d certificates were used in four years, want 3", uses)
	}
	if !bytes.Equal(bytes.TrimSpace(published), bytes.TrimSpace(first)) {
		t.Error("an old authority is still trusted")
	}
}

// TestCertificateIsNotUsedUnpublished checks that a new certificate waits until its authority is published, and a day more.
func TestCertificateIsNotUsedUnpublished(t *testing.T) {
	source := shop()
	old, err := nextCertificate(nil, source, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	due := old.RotateAt
	staged, err := nextCertificate(old, source, old.Bundle(), due)
	if err != nil || staged.Next == nil || !bytes.Equal(staged.Cert, old.Cert) {
		t.Fatalf("there is no successor, or it is used at once: %v", err)
	}
	for name, tt := range map[string]struct {
		published []byte
		after     time.Duration
		used      bool
	}{
		"not published":      {old.Bundle(), 2 * overlap, false},
		"published just now": {staged.Bundle(), overlap - time.Minute, false},
		"published a day":    {staged.Bundle(), overlap + time.Minute, true},
	} {
		got, err := nextCertificate(staged, source, tt.published, due.Add(tt.after))
		if err != nil || bytes.Equal(got.Cert, staged.Next.Cert) != tt.used {
			t.Errorf("%s: in use is %t, %v", name, !tt.used, err)
		}
	}
}

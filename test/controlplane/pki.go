package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is the validity of the temporary certificates. It exceeds the life of any cluster
// that `down` removes.
const certificateLife = 365 * 24 * time.Hour

// authority signs the certificates of one control plane.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	dir         string
	name        string
}

// identity is the holder of a certificate.
type identity struct {
	name   string
	groups []string
	// server is the address of a server. Its certificate is also valid for the loopback address and
	// the names of the API server. Empty for clients.
	server string
}

// newAuthority creates a certificate authority whose files in dir start with name.
func newAuthority(dir, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of authority %s: %w", name, err)
	}

	template := certificateTemplate(identity{name: "chandlery test " + name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of authority %s: %w", name, err)
	}

	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of authority %s: %w", name, err)
	}

	a := &authority{certificate: certificate, key: key, dir: dir, name: name}

	return a, writePair(dir, name, der, key)
}

// openAuthority reads an authority that newAuthority has created.
func openAuthority(dir, name string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, fmt.Errorf("read authority %s: %w", name, err)
	}

	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read authority %s: its key is a %T", name, pair.PrivateKey)
	}

	return &authority{certificate: pair.Leaf, key: key, dir: dir, name: name}, nil
}

// issue writes NAME.crt and NAME.key, signed by the authority.
func (a *authority) issue(name string, id identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of %s: %w", name, err)
	}

	der, err := x509.CreateCertificate(rand.Reader, certificateTemplate(id), a.certificate, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("sign the certificate of %s: %w", name, err)
	}

	return writePair(a.dir, name, der, key)
}

func certificateTemplate(id identity) *x509.Certificate {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: id.name, Organization: id.groups},
		// Clocks of virtual machines may jump, by less than an hour.
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}

	if id.server != "" {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesServiceIP), net.ParseIP(id.server)}
		template.DNSNames = []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}
	}

	return template
}

func writePair(dir, name string, certificate []byte, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key of %s: %w", name, err)
	}

	files := map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: certificate},
		name + ".key": {Type: "PRIVATE KEY", Bytes: der},
	}

	for file, block := range files {
		err = os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600)
		if err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}

	return nil
}

// writePKI creates the certificates of every component in dir. The aggregation layer has its own
// authority, because a certificate of the cluster's authority must not permit impersonation. The
// API server listens on address.
func writePKI(dir, address string) error {
	cluster, err := newAuthority(dir, "ca")
	if err != nil {
		return err
	}

	proxy, err := newAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}

	err = proxy.issue("front-proxy-client", identity{name: "front-proxy-client"})
	if err != nil {
		return err
	}

	masters := []string{"system:masters"}
	identities := map[string]identity{
		"apiserver":                   {name: "kube-apiserver", server: address},
		"etcd":                        {name: "etcd", server: "127.0.0.1"},
		"apiserver-etcd-client":       {name: "kube-apiserver"},
		"apiserver-kubelet-client":    {name: "kube-apiserver", groups: masters},
		"admin":                       {name: "admin", groups: masters},
		string(KubeControllerManager): {name: "system:kube-controller-manager"},
		string(KubeScheduler):         {name: "system:kube-scheduler"},
		string(Kwok):                  {name: "kwok", groups: masters},
		// The key pair that signs and verifies the tokens of service accounts.
		"service-account": {name: "service-account"},
	}

	for name, id := range identities {
		err = cluster.issue(name, id)
		if err != nil {
			return err
		}
	}

	return nil
}

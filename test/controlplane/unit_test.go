package controlplane

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/filelock"
)

func TestNamespacePrefix(t *testing.T) {
	cases := map[string]struct {
		reason string
		test   string
		want   string
	}{
		"Plain":   {reason: "Capitals are not allowed in names.", test: "TestThing", want: "t-testthing-"},
		"Subtest": {reason: "Neither are slashes, underscores and other letters.", test: "TestÄ/a_b#01", want: "t-test--a-b-01-"},
		"Long": {
			reason: "A name has 63 characters, some of which the server adds.",
			test:   "Test123456789012345678901234567890123456789012345678901234567890",
			want:   "t-test123456789012345678901234567890123456-",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, namespacePrefix(tc.test)); diff != "" {
				t.Errorf("%s\nnamespacePrefix(%q): -want, +got:\n%s", tc.reason, tc.test, diff)
			}
		})
	}
}

func TestVersionFlags(t *testing.T) {
	want := "-X k8s.io/component-base/version.gitVersion=v1.2.3 -X k8s.io/component-base/version.gitMajor=1 " +
		"-X k8s.io/component-base/version.gitMinor=2 -X k8s.io/component-base/version.gitTreeState=clean"

	if diff := cmp.Diff(want, versionFlags("v1.2.3")); diff != "" {
		t.Errorf("versionFlags(...): -want, +got:\n%s", diff)
	}
}

func TestWritePKI(t *testing.T) {
	dir := t.TempDir()

	err := writePKI(dir, "127.0.0.1")
	if err != nil {
		t.Fatalf("writePKI(...): %v", err)
	}

	cases := map[string]struct {
		reason    string
		authority string
		pair      string
		usage     x509.ExtKeyUsage
		refused   bool
	}{
		"Server": {reason: "Clients trust the API server.", authority: "ca", pair: "apiserver", usage: x509.ExtKeyUsageServerAuth},
		"Client": {reason: "The API server trusts the administrator.", authority: "ca", pair: "admin", usage: x509.ExtKeyUsageClientAuth},
		"ClientIsNoServer": {
			reason: "A client cannot pose as the API server.", authority: "ca", pair: "admin", usage: x509.ExtKeyUsageServerAuth, refused: true,
		},
		"ClientIsNoProxy": {
			reason:    "A client cannot speak for other users through the aggregation layer.",
			authority: "front-proxy-ca", pair: "admin", usage: x509.ExtKeyUsageClientAuth, refused: true,
		},
		"Proxy": {reason: "The proxy can.", authority: "front-proxy-ca", pair: "front-proxy-client", usage: x509.ExtKeyUsageClientAuth},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AddCert(certificate(t, filepath.Join(dir, tc.authority+".crt")))

			_, err := certificate(t, filepath.Join(dir, tc.pair+".crt")).Verify(x509.VerifyOptions{
				Roots: roots, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if got := err != nil; got != tc.refused {
				t.Errorf("%s\nVerify(...): want refused %t, got %v", tc.reason, tc.refused, err)
			}
		})
	}
}

func certificate(t *testing.T, name string) *x509.Certificate {
	t.Helper()

	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	block, _ := pem.Decode(data)

	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func TestNewFolder(t *testing.T) {
	t.Setenv(buildcache.RootVariable, t.TempDir())

	runs, err := cacheFolder("run")
	if err != nil {
		t.Fatal(err)
	}

	// Simulate a killed process: a folder and a lock that is not held.
	abandoned := filepath.Join(runs, "1-abandoned")

	lock, err := filelock.Try(abandoned + lockSuffix)
	if err != nil {
		t.Fatal(err)
	}

	err = errors.Join(os.Mkdir(abandoned, 0o700), lock.Release())
	if err != nil {
		t.Fatal(err)
	}

	first, err := newFolder("")
	if err != nil {
		t.Fatalf("newFolder(...): %v", err)
	}

	second, err := newFolder("")
	if err != nil {
		t.Fatalf("newFolder(...): %v", err)
	}

	for path, want := range map[string]bool{abandoned: false, first.path: true, second.path: true} {
		_, err := os.Stat(path)
		if got := err == nil; got != want {
			t.Errorf("%s: want there %t, got %v", path, want, err)
		}
	}

	err = errors.Join(first.remove(), second.remove())
	if err != nil {
		t.Errorf("remove(): %v", err)
	}

	left, err := os.ReadDir(runs)
	if len(left) != 0 || err != nil {
		t.Errorf("after all were removed: want nothing, got %v, %v", left, err)
	}
}

func TestGivenFolderMustBeEmpty(t *testing.T) {
	dir := t.TempDir()

	f, err := newFolder(dir)
	if err != nil {
		t.Fatalf("newFolder(...) of an empty folder: %v", err)
	}

	err = os.WriteFile(filepath.Join(dir, "something"), nil, 0o600)
	if err != nil {
		t.Fatal(err)
	}

	err = f.remove()
	if err != nil {
		t.Errorf("remove(): %v", err)
	}

	_, err = newFolder(dir)
	if err == nil {
		t.Error("newFolder(...) of a folder with content: want an error, got none")
	}
}

package server_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/server"
)

// peer returns a supervisor with a certificate, which reads contents of the running one.
func (r *running) peer(p pair) *server.Peer {
	return &server.Peer{Address: r.address, Certificate: func(context.Context) (cert, key []byte, err error) { return p.cert, p.key, nil }}
}

// TestPeersReadContents checks that only a process with the serving certificate reads contents, and that it trusts no
// other server.
func TestPeersReadContents(t *testing.T) {
	r := run(t)
	shop := types.NamespacedName{Namespace: "olm", Name: "shop"}
	if err := os.WriteFile(filepath.Join(r.contents, "olm_shop_uid"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	from, err := r.peer(r.serving).Open(t.Context(), shop, "uid")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	if text, err := io.ReadAll(from); err != nil || string(text) != "content" {
		t.Errorf("content %q, error %v", text, err)
	}
	if _, err := r.peer(r.serving).Open(t.Context(), shop, "other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for content that is not there", err)
	}
	if _, err := r.peer(r.serving).Open(t.Context(), types.NamespacedName{Namespace: "olm", Name: "a/b"}, "uid"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for a wrong path", err)
	}
	if _, err := r.peer(issue(t, "server")).Open(t.Context(), shop, "uid"); err == nil {
		t.Error("a process with another certificate has read a content")
	}
	for name, as := range map[string]pair{"the front proxy": r.proxy, "a client without a certificate": {}} {
		if got := r.get(t, as, "viewer", "/catalog-contents/olm/shop/uid", nil); got.status != http.StatusForbidden {
			t.Errorf("%s got %d, %s", name, got.status, got.body)
		}
	}
}

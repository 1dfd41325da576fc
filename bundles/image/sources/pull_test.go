package sources_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.uber.org/goleak"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/test/certificates"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeRegistry is a registry that records its requests.
type fakeRegistry struct {
	*httptest.Server

	mu sync.Mutex
	// requests are the method, the path and the query of each request, and users its user names.
	requests, users []string
	// user and password are required if they are set. answer may answer a request.
	user, password string
	answer         func(http.ResponseWriter, *http.Request) bool
	backend        http.Handler
}

func newRegistry(t *testing.T, start func(*httptest.Server)) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{backend: registry.New(registry.Logger(log.New(new(bytes.Buffer), "", 0)))}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(new(bytes.Buffer), "", 0)
	start(r.Server)
	t.Cleanup(r.Close)
	return r
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	user, password, _ := request.BasicAuth()
	r.mu.Lock()
	r.requests = append(r.requests, strings.TrimSuffix(request.Method+" "+request.URL.Path+"?"+request.URL.RawQuery, "?"))
	r.users = append(r.users, user)
	answer, wantUser, wantPassword := r.answer, r.user, r.password
	r.mu.Unlock()
	if wantUser != "" && (user != wantUser || password != wantPassword) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if answer == nil || !answer(w, request) {
		r.backend.ServeHTTP(w, request)
	}
}

// host returns the name of the registry in references.
func (r *fakeRegistry) host() string { return r.Listener.Addr().String() }

// seen returns the recorded requests with a text in them, and forgets all.
func (r *fakeRegistry) seen(part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := slices.DeleteFunc(r.requests, func(one string) bool { return !strings.Contains(one, part) })
	r.requests, r.users = nil, nil
	return found
}

// push pushes an image around all checks and returns its digest.
func (r *fakeRegistry) push(t *testing.T, repository string, img v1.Image) string {
	t.Helper()
	direct := httptest.NewServer(r.backend)
	defer direct.Close()
	ref, err := name.ParseReference(direct.Listener.Addr().String()+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if err := remote.Write(ref, img, remote.WithTransport(transport)); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// authority returns the certificate of the registry's CA.
func (r *fakeRegistry) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}))
}

// key returns the registry's name as a key of a ConfigMap has it.
func (r *fakeRegistry) key() string { return strings.ReplaceAll(r.host(), ":", "..") }

func catalogImage(t *testing.T, text string) v1.Image {
	t.Helper()
	content, err := layer.New([]layer.Entry{layer.File("configs/catalog.json", []byte(text))}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, content)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// puller pulls images with the rules in a directory, as a mounted ConfigMap.
type puller struct {
	t        *testing.T
	dir      string
	files    *sources.Files
	keychain authn.Keychain
	answers  []string
}

func newPuller(t *testing.T, keys map[string]string) *puller {
	t.Helper()
	p := &puller{t: t, dir: t.TempDir()}
	for key, text := range keys {
		p.write(key, text)
	}
	p.files = sources.NewFiles(sources.Paths{Config: p.dir})
	return p
}

func (p *puller) write(key, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, key), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *puller) client() *image.Client {
	p.t.Helper()
	c, err := image.New(image.Options{
		Keychain: p.keychain, Attempts: 2, Backoff: time.Millisecond, ResolveTimeout: 10 * time.Second,
		Sources: image.Sources{Router: p.files, Asked: func(a image.Attempt) {
			p.answers = append(p.answers, a.Place+" "+a.Rule+" "+string(a.Reason))
		}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// pull pulls a catalog and returns its content.
func (p *puller) pull(reference string) (string, error) {
	p.t.Helper()
	client := p.client()
	digest, err := client.Find(p.t.Context(), reference)
	if err != nil {
		return "", err //nolint:wrapcheck // the test compares it
	}
	kept, err := image.Store{Dir: p.t.TempDir(), Apart: true}.Get(p.t.Context(), client, reference, digest, image.Catalog())
	if err != nil {
		return "", err //nolint:wrapcheck // the test compares it
	}
	defer kept.Release()
	text, err := os.ReadFile(filepath.Join(kept.Path, "catalog.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text), nil
}

// mustPull checks the content of a catalog.
func (p *puller) mustPull(reason, reference, want string) {
	p.t.Helper()
	if got, err := p.pull(reference); err != nil || got != want {
		p.t.Errorf("%s: got %q, %v", reason, got, err)
	}
}

// mustFail checks the reason of an error and parts of its text.
func (p *puller) mustFail(reason, reference string, want image.Reason, parts ...string) error {
	p.t.Helper()
	_, err := p.pull(reference)
	if image.ReasonOf(err) != want {
		p.t.Errorf("%s: got %s, %v, want %s", reason, image.ReasonOf(err), err, want)
		return err
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			p.t.Errorf("%s: got %q, without %q", reason, err, part)
		}
	}
	return err
}

// mirrored returns a registries.conf with one table.
func mirrored(source, options string, mirrors ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "[[registry]]\nprefix = %q\nlocation = %q\n%s\n", source, source, options)
	for _, mirror := range mirrors {
		fmt.Fprintf(&text, "[[registry.mirror]]\n%s\n", mirror)
	}
	return text.String()
}

func at(location string) string { return fmt.Sprintf("location = %q", location) }

// nowhere is a registry that does not exist.
const nowhere = "source.invalid"

func TestMirror(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	digest := mirror.push(t, "m/op/a:v1", catalogImage(t, "a"))
	p := newPuller(t, map[string]string{
		"registries.conf": mirrored(nowhere+"/op", "mirror-by-digest-only = true", at(mirror.host()+"/m/op")),
		mirror.key():      mirror.authority(),
	})
	p.mustPull("by digest", nowhere+"/op/a@"+digest, "a")
	p.mustPull("a tag beside the digest", nowhere+"/op/a:v1@"+digest, "a")
	p.mustFail("by tag", nowhere+"/op/a:v1", image.ReasonUnreachable,
		`image "source.invalid/op/a:v1": no source has it: source.invalid/op/a:v1 (`+p.dir+` key registries.conf, prefix source.invalid/op): `,
		mirror.host()+"/m/op ("+p.dir+" key registries.conf, prefix source.invalid/op): not asked, the mirror is for digests only")
	p.mustFail("another repository has no mirror", nowhere+"/other/a@"+digest, image.ReasonUnreachable)

	// A mirror that has half of the images, and the registry that has all.
	p.write("registries.conf", mirrored(source.host()+"/op", "", at(mirror.host()+"/none"), at(mirror.host()+"/m/op")))
	p.write(source.key(), source.authority())
	other := source.push(t, "op/b:v1", catalogImage(t, "b"))
	source.push(t, "op/a:v1", catalogImage(t, "a"))
	mirror.seen("")
	p.answers = nil
	p.mustPull("the second mirror", source.host()+"/op/a@"+digest, "a")
	rule := p.dir + " key registries.conf, prefix " + source.host() + "/op"
	want := []string{mirror.host() + "/none/a@" + digest + " " + rule + " NotFound", mirror.host() + "/m/op/a@" + digest + " " + rule + " "}
	if diff := cmp.Diff(append(want, want...), p.answers); diff != "" {
		t.Errorf("the answers of the sources (-want, +got):\n%s", diff)
	}
	if asked := source.seen(""); len(asked) > 0 {
		t.Errorf("the source was asked: %q", asked)
	}
	p.mustPull("what mirrors lack", source.host()+"/op/b@"+other, "b")
	p.mustPull("what mirrors lack by tag", source.host()+"/op/b:v1", "b")
	err := p.mustFail("what none has", source.host()+"/op/c:v1", image.ReasonNotFound, "/none/c:v1", "/m/op/c:v1", source.host()+"/op/c:v1 (")
	if all, ok := errors.AsType[*image.SourcesError](err); !ok || len(all.Attempts) != 3 || image.IsAway(err) {
		t.Errorf("got %+v", all)
	}
	p.write("registries.conf", mirrored(nowhere, "", at(mirror.host()+"/none")))
	if err := p.mustFail("the source is away", nowhere+"/op/c:v1", image.ReasonNotFound); !image.IsAway(err) {
		t.Errorf("the source that is away may have it: %v", err)
	}
}

func TestBlocked(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	mirror.push(t, "m/a:v1", catalogImage(t, "a"))
	source.push(t, "a:v1", catalogImage(t, "a"))
	source.push(t, "b:v1", catalogImage(t, "b"))
	p := newPuller(t, map[string]string{
		"registries.conf": mirrored(source.host(), "blocked = true", at(mirror.host()+"/m")),
		"ca-bundle.crt":   mirror.authority(),
	})
	p.mustPull("by the mirror", source.host()+"/a:v1", "a")
	p.mustFail("the mirror lacks it", source.host()+"/b:v1", image.ReasonNotFound, "404",
		source.host()+"/b:v1 ("+p.dir+" key registries.conf, prefix "+source.host()+"): not asked, it is blocked")
	p.write("registries.conf", mirrored(source.host(), "blocked = true"))
	p.mustFail("no source", source.host()+"/a:v1", image.ReasonBlocked, "no source has it: "+source.host()+"/a:v1 (")
	if asked := source.seen(""); len(asked) > 0 {
		t.Errorf("the source was asked: %q", asked)
	}
}

// TestChange checks that changed files count for the next image, and that broken ones change nothing.
func TestChange(t *testing.T) {
	mirror := newRegistry(t, (*httptest.Server).StartTLS)
	mirror.push(t, "one/a:v1", catalogImage(t, "1"))
	mirror.push(t, "two/a:v1", catalogImage(t, "2"))
	to := func(path string) string { return mirrored(nowhere, "", at(mirror.host()+path)) }
	p := newPuller(t, map[string]string{"registries.conf": "[[registry"})
	p.mustFail("there have never been valid rules", nowhere+"/a:v1", image.ReasonConfiguration, "registries.conf, line 1", "correct the TOML")
	p.write("registries.conf", to("/one"))
	p.mustFail("its certificate is unknown", nowhere+"/a:v1", image.ReasonUntrusted)
	p.write(mirror.key(), mirror.authority())
	p.mustPull("the first mirror", nowhere+"/a:v1", "1")
	p.write("10.registries.conf", to("/two"))
	p.mustPull("a drop-in", nowhere+"/a:v1", "2")
	p.write("10.registries.conf", to("/one")+"mirrors = 3\n")
	if _, err := p.files.Table(); err == nil || !strings.Contains(err.Error(), "unknown key") {
		t.Errorf("got %v", err)
	}
	p.mustPull("the last valid rules stay", nowhere+"/a:v1", "2")
	p.write("10.registries.conf", to("/one"))
	p.mustPull("the next valid ones count", nowhere+"/a:v1", "1")
	if _, err := p.files.Table(); err != nil {
		t.Error(err)
	}
}

func TestHostsTOML(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	img := catalogImage(t, "a")
	digest := mirror.push(t, "a:v1", img)
	source.push(t, "a:v1", img)
	mirror.push(t, "hub/b:v1", catalogImage(t, "b"))
	certs := func(r *fakeRegistry) string { return "ca = \"ca-bundle.crt\"\nserver = \"https://" + r.host() + "\"\n" }
	p := newPuller(t, map[string]string{
		source.key() + ".hosts.toml": certs(source) + "[host.\"https://" + mirror.host() + "\"]\ncapabilities = [\"pull\"]\n[host.\"https://" + mirror.host() + "\".header]\nX-Test = \"yes\"\n",
		"ca-bundle.crt":              mirror.authority(),
	})
	header := ""
	mirror.answer = func(_ http.ResponseWriter, request *http.Request) bool {
		mirror.mu.Lock()
		defer mirror.mu.Unlock()
		header = request.Header.Get("X-Test")
		return false
	}
	p.mustPull("the source has tags, the mirror content", source.host()+"/a:v1", "a")
	if asked := source.seen("/blobs/"); len(asked) > 0 {
		t.Errorf("the source had to send %q", asked)
	}
	if asked := mirror.seen("/manifests/"); !slices.Contains(asked, "GET /v2/a/manifests/"+digest+"?ns="+strings.ReplaceAll(source.host(), ":", "%3A")) || header != "yes" {
		t.Errorf("the mirror was asked %q, with header %q", asked, header)
	}

	// Every registry by one mirror, below a path.
	p = newPuller(t, map[string]string{
		"_default.hosts.toml": "server = \"https://" + mirror.host() + "/v2/hub\"\noverride_path = true\nca = \"ca-bundle.crt\"\n",
		"ca-bundle.crt":       mirror.authority(),
	})
	source.seen("")
	p.mustPull("only the mirror", source.host()+"/b:v1", "b")
	p.mustFail("what the mirror lacks", source.host()+"/a:v1", image.ReasonNotFound)
	if asked := source.seen(""); len(asked) > 0 {
		t.Errorf("the source was asked: %q", asked)
	}

	// A registry below another path of its host.
	below := newRegistry(t, (*httptest.Server).StartTLS)
	below.backend = http.StripPrefix("/some", mirror.backend)
	p = newPuller(t, map[string]string{
		"_default.hosts.toml": "server = \"https://" + below.host() + "/some\"\nca = \"ca-bundle.crt\"\n", "ca-bundle.crt": mirror.authority(),
	})
	p.mustPull("below a path", source.host()+"/a:v1", "a")
}

// TestBrokenBlobs checks that another source delivers the content if one fails in the middle, and that content is
// checked.
func TestBrokenBlobs(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	img := catalogImage(t, "a")
	digest := mirror.push(t, "a:v1", img)
	source.push(t, "a:v1", img)
	p := newPuller(t, map[string]string{
		"registries.conf": mirrored(source.host(), "", at(mirror.host())), "ca-bundle.crt": mirror.authority(),
	})
	for reason, answer := range map[string]func(http.ResponseWriter){
		"errors":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"other bytes": func(w http.ResponseWriter) { _, _ = w.Write([]byte("other")) },
		"no blob":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
	} {
		mirror.answer = func(w http.ResponseWriter, request *http.Request) bool {
			if !strings.Contains(request.URL.Path, "/blobs/") {
				return false
			}
			answer(w)
			return true
		}
		p.mustPull(reason, source.host()+"/a@"+digest, "a")
	}
}

func TestPlainHTTP(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).Start), newRegistry(t, (*httptest.Server).Start)
	mirror.push(t, "a:v1", catalogImage(t, "a"))
	source.push(t, "b:v1", catalogImage(t, "b"))
	p := newPuller(t, map[string]string{"registries.conf": mirrored(source.host(), "", at(mirror.host())+"\ninsecure = true")})
	p.mustPull("the mirror may", source.host()+"/a:v1", "a")
	p.mustFail("the source may not", source.host()+"/b:v1", image.ReasonNotFound, "plain HTTP is not allowed")
	if asked := source.seen(""); len(asked) > 0 {
		t.Errorf("the source was asked: %q", asked)
	}
	untrusted := newRegistry(t, (*httptest.Server).StartTLS)
	untrusted.push(t, "c:v1", catalogImage(t, "c"))
	p.write("registries.conf", mirrored(untrusted.host(), "insecure = true"))
	p.mustPull("any certificate", untrusted.host()+"/c:v1", "c")
}

// TestCertificates checks that trust in a CA is per registry, and that renewed files count.
func TestCertificates(t *testing.T) {
	one, two := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	one.push(t, "a:v1", catalogImage(t, "a"))
	two.push(t, "a:v1", catalogImage(t, "a"))
	p := newPuller(t, map[string]string{one.key(): one.authority()})
	p.mustPull("trusted", one.host()+"/a:v1", "a")
	p.mustFail("another registry of the same CA", two.host()+"/a:v1", image.ReasonUntrusted)

	// The layout of a node.
	dir := t.TempDir()
	folder := filepath.Join(dir, one.host())
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p.files = sources.NewFiles(sources.Paths{CertsDirs: []string{dir}})
	p.mustFail("no certificate yet", one.host()+"/a:v1", image.ReasonUntrusted)
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), []byte(one.authority()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.mustPull("a new file", one.host()+"/a:v1", "a")
	p.dir = folder
	p.write("client.cert", "a")
	if _, err := p.files.Table(); err == nil || !strings.Contains(err.Error(), "client.cert: the other half of the client certificate is missing; add client.key") {
		t.Errorf("got %v", err)
	}
	p.mustPull("the last valid files stay", one.host()+"/a:v1", "a")

	// A file that hosts.toml names elsewhere.
	p = newPuller(t, nil)
	p.write("ca.pem", "")
	if err := os.Remove(filepath.Join(folder, "client.cert")); err != nil {
		t.Fatal(err)
	}
	p.files = sources.NewFiles(sources.Paths{CertsDirs: []string{dir}})
	elsewhere := filepath.Join(p.dir, "ca.pem")
	if err := os.WriteFile(filepath.Join(folder, "hosts.toml"), []byte("server = \"https://"+one.host()+"\"\nca = \""+elsewhere+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.mustFail("an empty file", one.host()+"/a:v1", image.ReasonConfiguration, "ca.pem")
	p.write("ca.pem", one.authority())
	p.mustPull("it has content now", one.host()+"/a:v1", "a")
}

// TestClientCertificate pulls from a registry that requires a client certificate, in both forms of the settings.
func TestClientCertificate(t *testing.T) {
	authority := certificates.NewAuthority(t, "clients")
	client := authority.Sign(t, certificates.Request{Usage: x509.ExtKeyUsageClientAuth})
	var shown atomic.Int32
	start := func(clientAuth tls.ClientAuthType) func(*httptest.Server) {
		return func(server *httptest.Server) {
			server.TLS = &tls.Config{ClientAuth: clientAuth, ClientCAs: authority.Pool(), MinVersion: tls.VersionTLS12}
			server.StartTLS()
		}
	}
	strict, other := newRegistry(t, start(tls.RequireAndVerifyClientCert)), newRegistry(t, start(tls.RequestClientCert))
	other.answer = func(_ http.ResponseWriter, request *http.Request) bool {
		shown.Add(int32(len(request.TLS.PeerCertificates)))
		return false
	}
	strict.push(t, "a:v1", catalogImage(t, "a"))
	other.push(t, "a:v1", catalogImage(t, "a"))
	p := newPuller(t, map[string]string{"ca-bundle.crt": strict.authority()})
	p.mustFail("without a certificate", strict.host()+"/a:v1", image.ReasonUnreachable, "tls: certificate required")
	p.write(strict.key()+".cert", string(client.Certificate))
	if _, err := p.files.Table(); err == nil || !strings.Contains(err.Error(), "add key "+strict.key()+".key") {
		t.Errorf("half a pair: %v", err)
	}
	p.write(strict.key()+".key", string(client.Key))
	p.mustPull("with a certificate", strict.host()+"/a:v1", "a")
	p.mustPull("another registry", other.host()+"/a:v1", "a")
	if n := shown.Load(); n > 0 {
		t.Errorf("the other registry saw the certificate %d times", n)
	}

	p = newPuller(t, map[string]string{
		"ca-bundle.crt": strict.authority(), "client.cert": string(client.Certificate), "client.key": string(client.Key),
		strict.key() + ".hosts.toml": "server = \"https://" + strict.host() + "\"\nclient = [[\"client.cert\", \"client.key\"]]\n",
	})
	p.mustPull("in hosts.toml", strict.host()+"/a:v1", "a")
}

// pullSecret returns credentials in the format of a Secret.
func pullSecret(t *testing.T, entries map[string]string) authn.Keychain {
	t.Helper()
	var auths []string
	for host, user := range entries {
		auths = append(auths, fmt.Sprintf("%q:{%q:%q}", host, "auth", base64.StdEncoding.EncodeToString([]byte(user))))
	}
	found, err := image.ParsePullSecret([]byte(`{"auths":{` + strings.Join(auths, ",") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCredentials(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	mirror.user, mirror.password = "mirror", "good"
	mirror.push(t, "a:v1", catalogImage(t, "a"))
	source.push(t, "b:v1", catalogImage(t, "b"))
	p := newPuller(t, map[string]string{
		"registries.conf": mirrored(source.host(), "", at(mirror.host())), "ca-bundle.crt": mirror.authority(),
	})
	p.keychain = image.Keychains(pullSecret(t, map[string]string{source.host(): "source:secret"}))
	p.mustPull("the source serves what the mirror refuses", source.host()+"/b:v1", "b")
	mirror.mu.Lock()
	if slices.Contains(mirror.users, "source") {
		t.Error("the mirror got credentials of the source")
	}
	mirror.mu.Unlock()
	p.mustFail("the mirror came further than the source", source.host()+"/a:v1", image.ReasonUnauthorized, "tried no credentials", "404")

	stale := pullSecret(t, map[string]string{mirror.host(): "mirror:stale", source.host(): "source:secret"})
	p.keychain = image.Keychains(stale, pullSecret(t, map[string]string{mirror.host(): "mirror:good"}))
	p.mustPull("stale credentials come first", source.host()+"/a:v1", "a")
	p.keychain = image.Fallback(stale, pullSecret(t, map[string]string{mirror.host() + "/a": "mirror:good"}))
	p.mustPull("the other keychain is tried last", source.host()+"/a:v1", "a")
	p.keychain = image.Keychains(stale, pullSecret(t, map[string]string{mirror.host(): "mirror:stale2"}))
	p.mustFail("both are stale", source.host()+"/a:v1", image.ReasonUnauthorized, "tried the pull secret's credentials for "+mirror.host()+", the pull secret's credentials for "+mirror.host())
}

// TestSlowMirror checks that a mirror that does not answer leaves time for the source.
func TestSlowMirror(t *testing.T) {
	mirror, source := newRegistry(t, (*httptest.Server).StartTLS), newRegistry(t, (*httptest.Server).StartTLS)
	source.push(t, "a:v1", catalogImage(t, "a"))
	mirror.answer = func(_ http.ResponseWriter, request *http.Request) bool {
		<-request.Context().Done()
		return true
	}
	p := newPuller(t, map[string]string{
		"registries.conf": mirrored(source.host(), "", at(mirror.host())), "ca-bundle.crt": mirror.authority(),
	})
	client, err := image.New(image.Options{Sources: image.Sources{Router: p.files}, ResolveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Find(t.Context(), source.host()+"/a:v1"); err != nil {
		t.Error(err)
	}
	if _, err := client.Find(t.Context(), source.host()+"/b:v1"); image.ReasonOf(err) != image.ReasonNotFound || !image.IsAway(err) || !errors.Is(err, image.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

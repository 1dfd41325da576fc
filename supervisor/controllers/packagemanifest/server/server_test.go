package server_test

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/server"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

const group = "/apis/packages.operators.coreos.com/v1"

// pair is a certificate with its key, in PEM.
type pair struct {
	cert, key []byte
}

// issue returns a certificate that signs itself, for a server and a client on this machine.
func issue(t *testing.T, name string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	var p pair
	if p.cert, err = cert.EncodeCertificates(parsed); err != nil {
		t.Fatal(err)
	}
	if p.key, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	return p
}

// running is a server with the package lamp of catalog olm/shop, and torch of a/own.
type running struct {
	index   *manifest.Index
	address string
	serving pair
	// proxy is the certificate of the front proxy.
	proxy pair
	// contents has the contents of catalogs.
	contents string
}

// apiServer publishes how the front proxy authenticates, and allows the user viewer everything but the namespace secret.
func apiServer(t *testing.T, proxy []byte) *httptest.Server {
	t.Helper()
	published := corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication", ResourceVersion: "1"},
		Data: map[string]string{
			"requestheader-client-ca-file": string(proxy), "requestheader-allowed-names": `["front-proxy"]`,
			"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}
	send := func(w http.ResponseWriter, kind string, o any) {
		w.Header().Set("Content-Type", "application/json")
		text, err := json.Marshal(o)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1",%s`, kind, text[1:])
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			http.Error(w, "not supported", http.StatusUnprocessableEntity)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			send(w, "ConfigMapList", struct {
				Metadata metav1.ListMeta    `json:"metadata"`
				Items    []corev1.ConfigMap `json:"items"`
			}{metav1.ListMeta{ResourceVersion: "1"}, []corev1.ConfigMap{published}})
		}
	})
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps/{name}", func(w http.ResponseWriter, _ *http.Request) {
		send(w, "ConfigMap", published)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		resource := review.Spec.ResourceAttributes
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
		review.Status.Allowed = review.Spec.User == "viewer" && (resource == nil || resource.Namespace != "secret")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	})
	api := httptest.NewServer(mux)
	t.Cleanup(api.Close)
	return api
}

func run(t *testing.T) *running {
	t.Helper()
	r := &running{index: manifest.NewIndex("olm"), serving: issue(t, "server"), proxy: issue(t, "front-proxy"), contents: t.TempDir()}
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: apiServer(t, r.proxy.cert).URL})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	certificate, err := dynamiccertificates.NewStaticCertKeyContent("test", r.serving.cert, r.serving.key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, answering := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- server.Run(ctx, server.Config{
			Listener: listener, Certificate: certificate, Client: client, Index: r.index,
			ReadIcon: func(context.Context, manifest.Item) (manifest.Icon, error) {
				return manifest.Icon{Data: "aWNvbg==", MediaType: "image/png"}, nil
			},
			Contents: func(name types.NamespacedName, uid types.UID) (*os.File, error) {
				return os.Open(filepath.Join(r.contents, name.Namespace+"_"+name.Name+"_"+string(uid)))
			},
			Serving: func() { close(answering) },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-answering:
	case <-time.After(time.Minute):
		t.Fatal("the server does not start")
	}
	if got := r.get(t, r.proxy, "viewer", group, nil); got.status != http.StatusOK {
		t.Fatalf("the first request of the front proxy has the status %d", got.status)
	}
	return r
}

// fill adds the catalogs.
func (r *running) fill(t *testing.T) {
	t.Helper()
	for namespace, name := range map[string]string{"olm": "lamp", "a": "torch"} {
		z, err := compressed.NewCompressor()
		if err != nil {
			t.Fatal(err)
		}
		b := content.NewBuilder(1 << 20)
		if err := b.Add(content.ChannelEntry{Package: name, Channel: "stable", Bundle: name + ".v1", Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
		b.Describe(name, "stable", "")
		text := `{"metadata":{"name":"` + name + `.v1"},"spec":{"version":"1.0.0","provider":{"name":"Light, Ltd"}}}`
		if name == "torch" {
			text = strings.Replace(text, `"version"`, `"icon":[{"base64data":"aWNvbg==","mediatype":"image/png"}],"version"`, 1)
		}
		head, err := manifest.ParseHead(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifest.NewPackage(z, b.Build().Package(name), map[string]manifest.Head{"stable": head})
		if err != nil {
			t.Fatal(err)
		}
		source := &manifest.Source{Namespace: namespace, Name: "shop", DisplayName: "The Shop", Created: time.Now().Add(-time.Hour)}
		if namespace == "a" {
			source.UnavailableSince = time.Unix(1e9, 0)
		}
		r.index.Set(manifest.Catalog{Source: source, Packages: []*manifest.Package{p}})
	}
	r.index.SetReady()
}

type reply struct {
	status int
	header http.Header
	body   string
}

// get sends a request as the front proxy does for a user.
func (r *running) get(t *testing.T, as pair, user, path string, header http.Header) reply {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.serving.cert)
	settings := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if as.cert != nil {
		loaded, err := tls.X509KeyPair(as.cert, as.key)
		if err != nil {
			t.Fatal(err)
		}
		settings.Certificates = []tls.Certificate{loaded}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("X-Remote-User", user)
	transport := &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{status: answer.StatusCode, header: answer.Header, body: string(text)}
}

// view sends a request of a user with permissions.
func (r *running) view(t *testing.T, path string) reply {
	t.Helper()
	return r.get(t, r.proxy, "viewer", path, nil)
}

func TestServer(t *testing.T) {
	t.Parallel()
	r := run(t)
	t.Run("before the first reading", r.waits)
	r.fill(t)
	t.Run("lists", r.lists)
	t.Run("encodings", r.encodings)
	t.Run("changes", r.changes)
	t.Run("table", r.table)
	t.Run("icons", r.icons)
	t.Run("callers", r.callers)
	t.Run("errors", r.errors)
	t.Run("formats", r.formats)
}

// waits checks that nothing looks like an empty catalog before the catalogs are read.
func (r *running) waits(t *testing.T) {
	for _, path := range []string{"/packagemanifests", "/namespaces/a/packagemanifests/lamp", "/namespaces/a/packagemanifests/lamp/icon"} {
		got := r.view(t, group+path)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "2" {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// packages are the fields of a list that the tests compare.
type packages struct {
	Kind  string
	Items []struct {
		Kind     string
		Metadata struct {
			Name, Namespace string
			Annotations     map[string]string
		}
		Status struct{ PackageName, CatalogSourceNamespace string }
	}
}

func (r *running) lists(t *testing.T) {
	for query, want := range map[string][]string{
		"/packagemanifests":                                                                       {"lamp/olm/olm", "torch/a/a"},
		"/namespaces/a/packagemanifests":                                                          {"lamp/a/olm", "torch/a/a"},
		"/namespaces/none/packagemanifests?limit=1":                                               {"lamp/none/olm"},
		"/namespaces/a/packagemanifests?labelSelector=catalog-namespace%3Da":                      {"torch/a/a"},
		"/packagemanifests?fieldSelector=metadata.name%3Dlamp":                                    {"lamp/olm/olm"},
		"/namespaces/a/packagemanifests?fieldSelector=metadata.namespace%3Db":                     nil,
		"/namespaces/a/packagemanifests?fieldSelector=" + url.QueryEscape("metadata.namespace=a"): {"lamp/a/olm", "torch/a/a"},
	} {
		var list packages
		got := r.view(t, group+query)
		if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK || list.Kind != "PackageManifestList" {
			t.Errorf("%s: %v, %+v", query, err, got)
		}
		var found []string
		for _, p := range list.Items {
			found = append(found, strings.Join([]string{p.Status.PackageName, p.Metadata.Namespace, p.Status.CatalogSourceNamespace}, "/"))
			since := p.Metadata.Annotations["chandlery.dev/catalog-unavailable-since"]
			if p.Kind != "PackageManifest" || p.Metadata.Name != p.Status.PackageName || (p.Metadata.Name == "torch") != (since == "2001-09-09T01:46:40Z") {
				t.Errorf("%s: %+v", query, p)
			}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if got := r.view(t, group+"/packagemanifests?fieldSelector=metadata.name%3Dx"); !strings.Contains(got.body, `"items":[]`) {
		t.Errorf("an empty list: %s", got.body)
	}
}

// encodings compares answers with those from the encoder of the library, which gets requests with other parameters.
func (r *running) encodings(t *testing.T) {
	for accept, prepared := range map[string]bool{
		"application/json": true, "*/*": true, "application/json;as=Table;g=meta.k8s.io;v=v1,application/json": true,
		"application/json;as=Other;g=meta.k8s.io;v=v1,application/json": false,
		"application/yaml": false, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": false,
		"application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json;as=Table;g=meta.k8s.io;v=v1": false,
		"application/json;as=Other;g=meta.k8s.io;v=v1":                                                   false,
	} {
		r.encodingsOf(t, accept, prepared)
	}
}

// changes checks that lists follow the catalogs.
func (r *running) changes(t *testing.T) {
	names := func() (found []string) {
		var list packages
		if err := json.Unmarshal([]byte(r.view(t, group+"/packagemanifests").body), &list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			found = append(found, p.Metadata.Name)
		}
		return found
	}
	before := names()
	r.index.Remove(types.NamespacedName{Namespace: "a", Name: "shop"})
	without := names()
	r.fill(t)
	if diff := cmp.Diff([][]string{{"lamp", "torch"}, {"lamp"}, {"lamp", "torch"}}, [][]string{before, without, names()}); diff != "" {
		t.Errorf("before, without and again with a catalog (-want +got):\n%s", diff)
	}
}

func (r *running) encodingsOf(t *testing.T, accept string, prepared bool) {
	t.Helper()
	paths := []string{
		group + "/packagemanifests", group + "/namespaces/a/packagemanifests", group + "/namespaces/none/packagemanifests?limit=500",
		group + "/packagemanifests?labelSelector=catalog-namespace%3Da&limit=500", group + "/packagemanifests?fieldSelector=metadata.name%3Dlamp",
		group + "/packagemanifests?labelSelector=catalog-namespace%3Da&fieldSelector=metadata.name%3Dlamp",
		group + "/packagemanifests?timeoutSeconds=60&resourceVersion=0&timeout=30s",
	}
	if !strings.Contains(accept, "as=") {
		paths = append(paths, group+"/namespaces/a/packagemanifests/lamp", group+"/namespaces/a/packagemanifests/torch?resourceVersion=0")
	}
	for _, path := range paths {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		want := r.get(t, r.proxy, "viewer", path+separator+"allowWatchBookmarks=false", http.Header{"Accept": {accept}})
		for encoding, packed := range map[string]bool{"identity": false, "gzip": true, "br, gzip;q=0.5": true, "gzip; q=0": false} {
			got := r.get(t, r.proxy, "viewer", path, http.Header{"Accept-Encoding": {encoding}, "Accept": {accept}})
			text := got.body
			if prepared && packed {
				reader, err := gzip.NewReader(strings.NewReader(text))
				if err != nil {
					t.Fatalf("%s with %s: %v", path, encoding, err)
				}
				read, err := io.ReadAll(reader)
				if err != nil {
					t.Fatalf("%s with %s: %v", path, encoding, err)
				}
				text = string(read)
			}
			if diff := cmp.Diff(want.body, text); diff != "" || got.header.Get("Content-Type") != want.header.Get("Content-Type") {
				t.Errorf("%s as %s with %s has the type %s (-want +got):\n%s", path, accept, encoding, got.header.Get("Content-Type"), diff)
			}
		}
	}
}

func (r *running) table(t *testing.T) {
	// kubectl accepts the second format too.
	got := r.get(t, r.proxy, "viewer", group+"/packagemanifests", http.Header{"Accept": {"application/json;as=Table;g=meta.k8s.io;v=v1,application/json"}})
	var table metav1.Table
	if err := json.Unmarshal([]byte(got.body), &table); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Catalog", "Age"}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	var cells [][]any
	for _, row := range table.Rows {
		cells = append(cells, row.Cells)
	}
	if diff := cmp.Diff([][]any{{"lamp", "The Shop", "60m"}, {"torch", "The Shop", "60m"}}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func (r *running) icons(t *testing.T) {
	icon := r.view(t, group+"/namespaces/a/packagemanifests/torch/icon?resourceVersion=torch.stable.torch.v1")
	tag := icon.header.Get("ETag")
	if icon.status != http.StatusOK || icon.body != "icon" || icon.header.Get("Content-Type") != "image/png" || tag != `"torch.stable.torch.v1"` || icon.header.Get("Content-Length") != "4" {
		t.Errorf("icon: %+v", icon)
	}
	for sent, want := range map[string]int{tag: http.StatusNotModified, `"x", W/` + tag: http.StatusNotModified, `"x"`: http.StatusOK} {
		got := r.get(t, r.proxy, "viewer", group+"/namespaces/a/packagemanifests/torch/icon", http.Header{"If-None-Match": {sent}})
		if got.status != want {
			t.Errorf("If-None-Match %s: status %d, want %d", sent, got.status, want)
		}
	}
	none := r.view(t, group+"/namespaces/a/packagemanifests/lamp/icon")
	if none.status != http.StatusOK || none.header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(none.body, "<svg") || none.header.Get("ETag") == "" {
		t.Errorf("drawing: %+v", none)
	}
	if got := r.view(t, group+"/namespaces/a/packagemanifests/none/icon"); got.status != http.StatusNotFound {
		t.Errorf("icon of no package: %+v", got)
	}
}

func (r *running) callers(t *testing.T) {
	path := group + "/namespaces/a/packagemanifests"
	for name, test := range map[string]struct {
		as   pair
		user string
		path string
		want int
	}{
		"without a certificate":      {pair{}, "viewer", path, http.StatusUnauthorized},
		"another authority":          {issue(t, "front-proxy"), "viewer", path, http.StatusUnauthorized},
		"without a user":             {r.proxy, "", path, http.StatusUnauthorized},
		"a user without permissions": {r.proxy, "nobody", path, http.StatusForbidden},
		"another namespace":          {r.proxy, "viewer", group + "/namespaces/secret/packagemanifests", http.StatusForbidden},
		"a viewer":                   {r.proxy, "viewer", path, http.StatusOK},
	} {
		if got := r.get(t, test.as, test.user, test.path, nil); got.status != test.want {
			t.Errorf("%s: %+v, want status %d", name, got, test.want)
		}
	}
}

func (r *running) errors(t *testing.T) {
	for path, want := range map[string]int{
		"/namespaces/a/packagemanifests/none":                        http.StatusNotFound,
		"/namespaces/a/packagemanifests?fieldSelector=spec.x%3D1":    http.StatusBadRequest,
		"/namespaces/a/packagemanifests?watch=true":                  http.StatusMethodNotAllowed,
		"/namespaces/a/packagemanifests?timeoutSeconds=x":            http.StatusBadRequest,
		"/namespaces/a/packagemanifests?timeout=x":                   http.StatusBadRequest,
		"/namespaces/b/packagemanifests/torch":                       http.StatusNotFound,
		"/namespaces/a/packagemanifests?labelSelector=a%3D%3D%3D%21": http.StatusBadRequest,
	} {
		if got := r.view(t, group+path); got.status != want {
			t.Errorf("%s: %+v, want status %d", path, got, want)
		}
	}
}

// formats asks for different media types, as kube-apiserver answers them for custom resources.
func (r *running) formats(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	for accept, want := range map[string]struct {
		status    int
		mediaType string
	}{
		protobuf:                       {http.StatusNotAcceptable, protobuf},
		protobuf + ",application/json": {http.StatusOK, "application/json"},
		protobuf + ";as=Table;g=meta.k8s.io;v=v1": {http.StatusNotAcceptable, "application/json"},
		"application/xml":                         {http.StatusNotAcceptable, "application/json"},
		"application/cbor":                        {http.StatusNotAcceptable, "application/json"},
		"application/yaml":                        {http.StatusOK, "application/yaml"},
		"*/*":                                     {http.StatusOK, "application/json"},
	} {
		for _, path := range []string{"/packagemanifests", "/namespaces/a/packagemanifests/lamp"} {
			got := r.get(t, r.proxy, "viewer", group+path, http.Header{"Accept": {accept}})
			if got.status != want.status || got.header.Get("Content-Type") != want.mediaType {
				t.Errorf("%s as %s: %+v, want %+v", path, accept, got, want)
			}
			if got.status == http.StatusNotAcceptable && !strings.Contains(got.body, "application/yaml") {
				t.Errorf("%s as %s: the error does not name the formats: %s", path, accept, got.body)
			}
		}
	}
}

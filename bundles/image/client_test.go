package image

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func simple(t *testing.T, text string) v1.Image {
	t.Helper()
	return build(t, nil, layer(t, entry{name: "configs/c", text: text}))
}

// secret writes a pull secret for a host.
func secret(t *testing.T, host string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	auth := base64.StdEncoding.EncodeToString([]byte("user:word"))
	if err := os.WriteFile(path, []byte(`{"auths":{"`+host+`":{"auth":"`+auth+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestResolve(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	var heads, gets atomic.Int32
	headers := true
	r.answer(func(w http.ResponseWriter, request *http.Request) bool {
		if !strings.Contains(request.URL.Path, "/manifests/") {
			return false
		}
		if request.Method == http.MethodHead {
			heads.Add(1)
			if !headers {
				w.WriteHeader(http.StatusOK)
			}
			return !headers
		}
		if request.Method == http.MethodGet {
			gets.Add(1)
		}
		return false
	})
	c := client(t, nil)
	digestOf := func(img v1.Image) string {
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	for _, text := range []string{"1", "2"} {
		img := simple(t, text)
		reference := r.push(t, "moves:latest", img)
		for _, headers = range []bool{true, false} {
			if got, err := c.Resolve(t.Context(), reference); err != nil || got != digestOf(img) {
				t.Errorf("with headers %v: got %s, %v, want %s", headers, got, err, digestOf(img))
			}
		}
		headers = true
	}
	heads.Store(0)
	gets.Store(0)
	digest := digestOf(simple(t, "1"))
	if got, err := c.Resolve(t.Context(), "nowhere.invalid/a@"+digest); err != nil || got != digest {
		t.Errorf("a digest is what it is: got %s, %v", got, err)
	}
	if _, err := c.Resolve(t.Context(), r.host()+"/moves:latest"); err != nil || heads.Load() != 1 || gets.Load() != 0 {
		t.Errorf("asking took %d HEAD and %d GET requests: %v", heads.Load(), gets.Load(), err)
	}
}

// TestTrouble covers registries that fail, or that refuse some clients.
func TestTrouble(t *testing.T) {
	// fails answers the first requests whose path has a part with a status.
	fails := func(part string, times int32, status int) func(http.ResponseWriter, *http.Request) bool {
		var count atomic.Int32
		return func(w http.ResponseWriter, request *http.Request) bool {
			if !strings.Contains(request.URL.Path, part) || count.Add(1) > times {
				return false
			}
			w.WriteHeader(status)
			return true
		}
	}
	// corrupts answers the first requests for blobs with other bytes of the same length, or with fewer.
	corrupts := func(times int32, cut bool) func(http.ResponseWriter, *http.Request) bool {
		var count atomic.Int32

		return func(w http.ResponseWriter, request *http.Request) bool {
			if !strings.Contains(request.URL.Path, "/blobs/") || request.Method != http.MethodGet || count.Add(1) > times {
				return false
			}

			w.Header().Set("Content-Length", "1000")
			if cut {
				_, _ = w.Write([]byte("short"))
				return true
			}
			_, _ = w.Write(make([]byte, 1000))
			return true
		}
	}
	const always = 1 << 20
	cases := map[string]struct {
		reason string
		before func(http.ResponseWriter, *http.Request) bool
		want   Reason
		text   string
	}{
		"Hiccup":         {reason: "what fails once is tried again", before: fails("/manifests/", 2, http.StatusServiceUnavailable)},
		"HiccupAtOnce":   {reason: "from the first request on", before: fails("/v2/", 1, http.StatusBadGateway)},
		"HiccupOfBlobs":  {reason: "to the last", before: fails("/blobs/", 2, http.StatusTooManyRequests)},
		"CutOnce":        {reason: "a transfer that breaks off", before: corrupts(1, true)},
		"Down":           {reason: "but not for ever", before: fails("/manifests/", always, http.StatusServiceUnavailable), want: ReasonUnreachable, text: "503"},
		"NotFound":       {reason: "what is not there", before: fails("/manifests/", always, http.StatusNotFound), want: ReasonNotFound, text: "404"},
		"NoBlob":         {reason: "or only half", before: fails("/blobs/", always, http.StatusNotFound), want: ReasonNotFound, text: "404"},
		"Forbidden":      {reason: "who may not", before: fails("/manifests/", always, http.StatusForbidden), want: ReasonUnauthorized, text: "403"},
		"AlwaysCut":      {reason: "truncated transfers are noticed", before: corrupts(always, true), want: ReasonUnreachable, text: "blob sha256:"},
		"AlwaysOther":    {reason: "other content is noticed", before: corrupts(always, false), want: ReasonUnreachable, text: "blob sha256:"},
		"NotARegistry":   {reason: "other servers", before: fails("/v2/", always, http.StatusTeapot), want: ReasonUnreachable, text: "418"},
		"TooManyAtLarge": {reason: "limits of registries", before: fails("/manifests/", always, http.StatusTooManyRequests), want: ReasonUnreachable, text: "429"},
	}
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			r := serve(t, (*httptest.Server).Start)
			reference := r.push(t, "trouble:v1", simple(t, "1"))
			r.answer(tc.before)
			to := newPulled(t)
			_, err := client(t, nil).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
			if tc.want == "" {
				if err != nil || to.files(t)["c"] != "1" {
					t.Errorf("%s: got %v, %v", tc.reason, to.files(t), err)
				}
			} else {
				expect(t, tc.reason, err, reference, tc.want, tc.text)
			}
			to.clean(t)
		})
	}
}

// TestWrongBytes serves blobs with wrong content, and blobs that are too long or too short.
func TestWrongBytes(t *testing.T) {
	for what, tc := range map[string]struct {
		change func([]byte) []byte
		text   string
	}{
		"Other": {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "blob sha256:"},
		"Short": {func(b []byte) []byte { return b[:len(b)-1] }, "blob sha256:"},
		"Long":  {func(b []byte) []byte { return append(b, 'x') }, "blob sha256:"},
	} {
		t.Run(what, func(t *testing.T) {
			r := serve(t, (*httptest.Server).Start)
			img := simple(t, "1")
			reference := r.push(t, "wrong:v1", img)
			data := layer(t, entry{name: "configs/c", text: "1"})
			layers, err := img.Layers()
			if err != nil {
				t.Fatal(err)
			}
			digest, err := layers[0].Digest()
			if err != nil {
				t.Fatal(err)
			}
			r.answer(func(w http.ResponseWriter, request *http.Request) bool {
				if !strings.HasSuffix(request.URL.Path, "/blobs/"+digest.String()) {
					return false
				}
				// With chunked encoding, the length is unknown beforehand.
				w.(http.Flusher).Flush()
				_, _ = w.Write(tc.change(append([]byte(nil), data...)))
				return true
			})
			to := newPulled(t)
			_, err = client(t, nil).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
			expect(t, "the content is checked", err, reference, ReasonUnreachable, tc.text)
			if len(to.files(t)) > 0 {
				t.Errorf("content that is not what it should be was unpacked: %v", to.files(t))
			}
			to.clean(t)
		})
	}
}

// TestStall pulls from a registry that stalls in the middle.
func TestStall(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "stall:v1", simple(t, "1"))
	r.answer(func(w http.ResponseWriter, request *http.Request) bool {
		if !strings.Contains(request.URL.Path, "/blobs/") {
			return false
		}
		// Send one byte and then stall.
		_, _ = w.Write([]byte{'{'})
		w.(http.Flusher).Flush()
		<-request.Context().Done()
		return true
	})
	c := client(t, func(o *Options) { o.Attempts, o.PullTimeout = 2, 5*time.Second })
	c.stall = 20 * time.Millisecond
	to := newPulled(t)
	_, err := c.Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
	expect(t, "a registry must go on", err, reference, ReasonUnreachable, "stopped sending")
}

func TestTimeout(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	r.answer(func(_ http.ResponseWriter, request *http.Request) bool {
		<-request.Context().Done()
		return true
	})
	c := client(t, func(o *Options) { o.ResolveTimeout = 20 * time.Millisecond })
	_, err := c.Resolve(t.Context(), r.host()+"/a:v1")
	expect(t, "the limit is named", err, r.host()+"/a:v1", ReasonUnreachable, "took longer than 20ms")
}

// TestBasicAuthentication covers a registry that requires a user and a password.
func TestBasicAuthentication(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "team/catalog:v1", simple(t, "1"))
	r.answer(func(w http.ResponseWriter, request *http.Request) bool {
		if user, word, ok := request.BasicAuth(); ok && user == "user" && word == "word" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	extract := func(keychain authn.Keychain) error {
		to := newPulled(t)
		_, err := client(t, func(o *Options) { o.Keychain = keychain }).
			Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
		return err
	}
	expect(t, "without credentials", extract(nil), reference, ReasonUnauthorized, "401")
	expect(t, "with those of another", extract(PullSecrets(secret(t, "other.example"))), reference, ReasonUnauthorized, "401")
	expect(t, "without a file", extract(PullSecrets("/none")), reference, ReasonCredentials, `pull secret "/none": there is no such file`)
	if err := extract(PullSecrets(secret(t, r.host()))); err != nil {
		t.Errorf("with credentials: %v", err)
	}
	if err := extract(Keychains(PullSecrets(secret(t, "other.example")), PullSecrets(secret(t, r.host()+"/team")))); err != nil {
		t.Errorf("with credentials for the path: %v", err)
	}
}

// TestTokens covers a registry that requires a token, which it issues for credentials.
func TestTokens(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "catalog:v1", simple(t, "1"))
	r.answer(func(w http.ResponseWriter, request *http.Request) bool {
		if request.URL.Path == "/token" {
			if user, word, _ := request.BasicAuth(); user != "user" || word != "word" {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			_, _ = io.WriteString(w, `{"token":"abc"}`)
			return true
		}
		if request.Header.Get("Authorization") == "Bearer abc" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+r.URL+`/token",service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	if _, err := client(t, nil).Resolve(t.Context(), reference); ReasonOf(err) != ReasonUnauthorized {
		t.Errorf("without credentials: %v", err)
	}
	c := client(t, func(o *Options) { o.Keychain = PullSecrets(secret(t, r.host())) })
	if _, err := c.Resolve(t.Context(), reference); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

func TestTLS(t *testing.T) {
	r := serve(t, (*httptest.Server).StartTLS)
	reference := r.host() + "/catalog:v1"
	push(t, r, reference)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	resolve := func(change func(*Options)) error {
		_, err := client(t, func(o *Options) {
			o.PlainHTTP = false
			change(o)
		}).Resolve(t.Context(), reference)
		return err
	}
	expect(t, "an unknown authority", resolve(func(*Options) {}), reference, ReasonUntrusted, "certificate")
	if err := resolve(func(o *Options) { o.Sources.Router = trusting(ca) }); err != nil {
		t.Errorf("a known authority: %v", err)
	}
	if err := resolve(func(o *Options) { o.SkipTLSVerify = true }); err != nil {
		t.Errorf("any authority: %v", err)
	}
	expect(t, "what is no certificate", resolve(func(o *Options) { o.Sources.Router = trusting("x") }), reference, ReasonCredentials, "no certificate")
}

// trusting is a PEM text of certificates to trust for all registries.
type trusting string

func (p trusting) Route(ref name.Reference) (Route, error) {
	return Route{Sources: []Source{{Reference: ref, Endpoint: Endpoint{RootCAs: [][]byte{[]byte(p)}}}}}, nil
}

func push(t *testing.T, r *fakeRegistry, reference string) {
	t.Helper()
	ref, err := client(t, nil).parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, simple(t, "1"), remote.WithTransport(r.Client().Transport)); err != nil {
		t.Fatal(err)
	}
	r.Client().CloseIdleConnections()
}

// TestPlainHTTP checks that plain HTTP must be allowed, even if the client library would fall back
// to it or a registry redirects to it.
func TestPlainHTTP(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "catalog:v1", simple(t, "1"))
	c := client(t, func(o *Options) { o.PlainHTTP = false })
	_, err := c.Resolve(t.Context(), reference)
	expect(t, "plain HTTP", err, reference, ReasonPlainHTTP, "HTTP")

	secure := serve(t, (*httptest.Server).StartTLS)
	secure.answer(func(w http.ResponseWriter, request *http.Request) bool {
		http.Redirect(w, request, r.URL+request.URL.Path, http.StatusFound)
		return true
	})
	c = client(t, func(o *Options) { o.PlainHTTP, o.SkipTLSVerify = false, true })
	_, err = c.Resolve(t.Context(), secure.host()+"/catalog:v1")
	expect(t, "plain HTTP by redirection", err, secure.host()+"/catalog:v1", ReasonPlainHTTP, "plain HTTP is not allowed")
}

func TestUnreachable(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.host() + "/catalog:v1"
	r.Close()
	_, err := client(t, nil).Resolve(t.Context(), reference)
	expect(t, "nobody there", err, reference, ReasonUnreachable, "refused")
	_, err = client(t, func(o *Options) { o.PlainHTTP = false }).Resolve(t.Context(), reference)
	expect(t, "no server of HTTPS at an address for which plain HTTP is tried", err, reference, ReasonUnreachable, "refused")
	_, err = client(t, nil).Resolve(t.Context(), "UPPER/case")
	expect(t, "no reference", err, "UPPER/case", ReasonReference, "is no reference to an image")
	if typed, ok := err.(*Error); !ok || typed.MayPass() { //nolint:errorlint // the very type is promised
		t.Errorf("a bad reference stays bad: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, platform := range []string{"linux", "/", "a/b/c/d"} {
		if _, err := New(Options{Platform: platform}); err == nil {
			t.Errorf("platform %q is accepted", platform)
		}
	}
	if !IsDigest("a.example/b@sha256:"+strings.Repeat("a", 64)) || IsDigest("a.example/b:v1") || IsDigest("@") {
		t.Error("IsDigest does not tell digests")
	}
}

// TestConnections checks that no idle connection remains.
func TestConnections(t *testing.T) {
	var open atomic.Int32
	r := serve(t, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			case http.StateActive, http.StateIdle:
			}
		}
		s.Start()
	})
	c := client(t, nil)
	if _, err := c.Resolve(t.Context(), r.host()+"/none:v1"); ReasonOf(err) != ReasonNotFound {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); open.Load() > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are kept", open.Load())
		}
		runtime.Gosched()
	}
}

// TestProgress checks the counted bytes, including those of failed attempts.
func TestProgress(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "catalog:v1", simple(t, "1"))
	var done, total int64
	c := client(t, func(o *Options) { o.Progress = func(d, t int64) { done, total = d, t } })
	to := newPulled(t)
	if _, err := c.Extract(t.Context(), reference, Catalog(), to.dir, to.scratch); err != nil {
		t.Fatal(err)
	}
	if want := int64(len(layer(t, entry{name: "configs/c", text: "1"}))); done != want || total != want {
		t.Errorf("transferred %d of %d, want %d", done, total, want)
	}
}

func TestLabels(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	labelled, err := mutate.Config(simple(t, "1"), v1.Config{Labels: map[string]string{"there": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	reference := r.push(t, "labelled:v1", labelled)
	labels, err := client(t, nil).Labels(t.Context(), reference)
	if err != nil || labels["there"] != "yes" {
		t.Errorf("labels %v, error %v", labels, err)
	}
	_, err = client(t, nil).Labels(t.Context(), r.host()+"/gone:v1")
	expect(t, "not there", err, r.host()+"/gone:v1", ReasonNotFound, "404")
	if !IsReference("host:5000/a/b:c") || IsReference("A B") {
		t.Error("references are told wrongly")
	}
}

// TestEveryCredentialIsTried has a registry that accepts only one of several credentials that fit,
// as when the first of two pull secrets is stale.
func TestEveryCredentialIsTried(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	reference := r.push(t, "team/catalog:v1", simple(t, "1"))
	var tried []string
	refusal := http.StatusUnauthorized
	r.answer(func(w http.ResponseWriter, request *http.Request) bool {
		user, word, _ := request.BasicAuth()
		if strings.Contains(request.URL.Path, "/manifests/") && !slices.Contains(tried, user) {
			tried = append(tried, user)
		}
		if user == "good" && word == "word" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		status := refusal
		if request.URL.Path == "/v2/" {
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
		return true
	})
	keychain := func(entries ...string) authn.Keychain {
		var all []authn.Keychain
		for _, entry := range entries {
			path, user, _ := strings.Cut(entry, "=")
			one, err := ParsePullSecret([]byte(`{"auths":{"` + r.host() + path + `":{"username":"` + user + `","password":"word"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		return Keychains(all...)
	}
	for name, test := range map[string]struct {
		reason  string
		secrets []string
		refusal int
		want    []string
		fails   Reason
	}{
		"StaleFirst":   {"the second Secret is good", []string{"=stale", "=good"}, http.StatusUnauthorized, []string{"stale", "good"}, ""},
		"Forbidden":    {"some registries forbid", []string{"=stale", "=good"}, http.StatusForbidden, []string{"stale", "good"}, ""},
		"Hidden":       {"some hide what may not be read", []string{"=stale", "=good"}, http.StatusNotFound, []string{"stale", "good"}, ""},
		"LongerFirst":  {"the longer path first, whatever the order of Secrets", []string{"=good", "/team=stale"}, http.StatusUnauthorized, []string{"stale", "good"}, ""},
		"TextPrefix":   {"a path is a text prefix", []string{"/te=good"}, http.StatusUnauthorized, []string{"good"}, ""},
		"Enough":       {"none is tried after the one that is good", []string{"=good", "=stale"}, http.StatusUnauthorized, []string{"good"}, ""},
		"SameTwice":    {"each is tried once", []string{"=stale", "=stale"}, http.StatusUnauthorized, []string{"stale"}, ReasonUnauthorized},
		"NeverWithout": {"never without credentials after a failure", []string{"=stale", "=old"}, http.StatusUnauthorized, []string{"stale", "old"}, ReasonUnauthorized},
	} {
		tried, refusal = nil, test.refusal
		to := newPulled(t)
		_, err := client(t, func(o *Options) { o.Keychain = keychain(test.secrets...) }).Extract(t.Context(), reference, Catalog(), to.dir, to.scratch)
		if ReasonOf(err) != test.fails {
			t.Errorf("%s: %s: %v", name, test.reason, err)
		}
		if !slices.Equal(tried, test.want) {
			t.Errorf("%s: %s: tried %v, want %v", name, test.reason, tried, test.want)
		}
	}
}

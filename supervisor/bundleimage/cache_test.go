package bundleimage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/imagesources"
	"github.com/chandlery/chandlery/test/ports"
)

func TestUnpack(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	c := b.cache(nil)
	events := c.Listen()
	b.run(c)
	r := request(reference, "user")
	if s := c.State(t.Context(), r); s.Ready || s.Began.IsZero() {
		t.Errorf("at first: %+v", s)
	}
	b.expectEvent(events)
	if s := b.await(c, r, "pulled", ready); s.Digest != digest {
		t.Errorf("ready: %+v", s)
	}
	b.forget()
	content, err := c.Content(t.Context(), r)
	if err != nil || content.Digest != digest || content.Image != b.host()+"/lamp@"+digest || len(content.Objects) != 2 ||
		!strings.Contains(content.Objects[0], "lamp.v1") {
		t.Errorf("content: %+v, %v", content, err)
	}
	r.Image = content.Image
	if s := c.State(t.Context(), r); !s.Ready || b.sent("") != 0 {
		t.Errorf("by its digest: %+v after %d requests", s, b.sent(""))
	}
}

// expectEvent waits for an event for the namespace user.
func (b *bed) expectEvent(events <-chan event.GenericEvent) {
	b.Helper()
	select {
	case e := <-events:
		if e.Object.GetNamespace() != "user" {
			b.Errorf("an event for %s", e.Object.GetNamespace())
		}
	case <-time.After(30 * time.Second):
		b.Fatal("there was no event")
	}
}

// TestOnce requests one image for many namespaces at the same time.
func TestOnce(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	b.forget()
	c := b.started(nil)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			r := request(reference, "catalogs")
			if i%2 == 1 {
				r = request(reference, "ns"+string(rune('a'+i)))
			}
			if content, err := c.Content(t.Context(), r); err != nil || content.Digest != digest {
				t.Errorf("%+v, %v", content, err)
			}
		})
	}
	group.Wait()
	// The configuration and the layer, each once.
	if n := b.sent("GET /v2/lamp/blobs/"); n != 2 {
		t.Errorf("blobs were fetched %d times", n)
	}
	if n := b.sent("HEAD /v2/lamp/manifests/"); n != 11 {
		t.Errorf("the registry was asked %d times, want once for each catalog", n)
	}
}

// TestCredentials uses a registry that requires a password.
func TestCredentials(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	b.answer(private("word"))
	b.secret("good", "pull", "word")
	b.secret("bad", "pull", "wrong")
	b.secret("account", "hidden", "word")
	b.account("account", "wares", "hidden")
	c := b.started(nil)
	get := func(r Request) error {
		_, err := c.Content(t.Context(), r)
		return err
	}
	refused := func(why string, r Request, texts ...string) {
		t.Helper()
		err := get(r)
		for _, text := range append(texts, r.Image) {
			if image.ReasonOf(err) != image.ReasonUnauthorized || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", why, err, text)
			}
		}
	}
	refused("without credentials", request(reference, "none"), "401")
	if err := get(request(reference, "good", "pull")); err != nil {
		t.Errorf("with credentials: %v", err)
	}
	if err := get(request(reference, "account")); err != nil {
		t.Errorf("with those of the ServiceAccount: %v", err)
	}
	b.account("configmap", "wares-configmap-server", "hidden")
	b.secret("configmap", "hidden", "word")
	inConfigMap := request(reference, "configmap")
	refused("with the account of an image", inConfigMap, "401")
	inConfigMap.Account = "wares-configmap-server"
	if err := get(inConfigMap); err != nil {
		t.Errorf("with those of the ServiceAccount of a ConfigMap catalog: %v", err)
	}
	refused("what is kept is not for everybody", request(reference, "other"), "401")
	refused("nor for wrong credentials", request(reference, "bad", "pull"), "401")
	refused("nor for those that do not exist", request(reference, "good", "none"), "Secret good/none does not exist")
	refused("nor by its digest", Request{Image: b.host() + "/lamp@" + digest, Catalog: request("", "other").Catalog, Timeout: -1}, "401")
	if err := get(request(reference, "good", "none", "pull")); err != nil {
		t.Errorf("one of two Secrets will do: %v", err)
	}
}

// TestWithoutRegistry restarts with a filled cache while the registry is not available.
func TestWithoutRegistry(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	b.answer(private("word"))
	b.secret("good", "pull", "word")
	b.secret("other", "pull", "word")
	c := b.cache(nil)
	stop := b.run(c)
	if _, err := c.Content(t.Context(), request(reference, "good", "pull")); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := c.Content(t.Context(), request(reference, "good")); !errors.Is(err, errStopped) {
		t.Errorf("after the end: %v", err)
	}
	b.answer(unavailable)
	c = b.started(nil)
	for _, one := range []string{reference, b.host() + "/lamp@" + digest} {
		content, err := c.Content(t.Context(), request(one, "good", "pull"))
		if err != nil || content.Digest != digest || len(content.Objects) != 2 {
			t.Errorf("%s: %+v, %v", one, content, err)
		}
	}
	for why, r := range map[string]Request{
		"somebody who was never let in": request(reference, "other", "pull"), "nobody": request(reference, "none"),
	} {
		if _, err := c.Content(t.Context(), r); image.ReasonOf(err) != image.ReasonUnreachable {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestLosesRights revokes the permissions of a namespace.
func TestLosesRights(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	b.secret("good", "pull", "word")
	b.answer(private("word"))
	clock := testclock.NewFakeClock(time.Now())
	c := b.started(func(o *Options) { o.Clock = clock })
	r := request(reference, "good", "pull")
	b.await(c, r, "let in", ready)
	b.answer(private("another"))
	if s := c.State(t.Context(), r); !s.Ready {
		t.Errorf("it counts for a while: %+v", s)
	}
	clock.Step(freshTime)
	s := b.await(c, r, "asked again", failed)
	if s.Ready || s.Digest != "" || image.ReasonOf(s.Err) != image.ReasonUnauthorized {
		t.Errorf("locked out: %+v", s)
	}
	b.answer(unavailable)
	clock.Step(backoff.Max + backoff.Max)
	b.await(c, r, "asked in vain", func(s State) bool { return image.ReasonOf(s.Err) == image.ReasonUnreachable })
	b.answer(private("word"))
	clock.Step(backoff.Max + backoff.Max)
	if s := b.await(c, r, "let in again", ready); s.Digest != digest {
		t.Errorf("let in again: %+v", s)
	}
	b.answer(unavailable)
	clock.Step(freshTime)
	for range 3 {
		if s := c.State(t.Context(), r); !s.Ready {
			t.Errorf("a registry that is away takes nothing back: %+v", s)
		}
	}
}

// TestRetries uses a registry that is not available at first.
func TestRetries(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	b.answer(unavailable)
	clock := testclock.NewFakeClock(time.Now())
	c := b.cache(func(o *Options) { o.Clock = clock })
	events := c.Listen()
	b.run(c)
	r := request(reference, "user")
	s := b.await(c, r, "the first attempt", failed)
	b.expectEvent(events)
	if s.Attempts != 1 || !s.FailedAt.Equal(clock.Now()) || s.RetryAt.Sub(s.FailedAt) < backoff.First || s.RetryAt.Sub(s.FailedAt) > 2*backoff.First {
		t.Errorf("the first attempt: %+v", s)
	}
	sent := b.sent("")
	if s := c.State(t.Context(), r); !s.Began.IsZero() || b.sent("") != sent {
		t.Errorf("too early: %+v", s)
	}
	clock.SetTime(s.RetryAt)
	s = b.await(c, r, "the second attempt", func(s State) bool { return s.Attempts == 2 })
	if s.RetryAt.Sub(s.FailedAt) < 2*backoff.First {
		t.Errorf("the second attempt: %+v", s)
	}
	b.answer(nil)
	clock.SetTime(s.RetryAt)
	if s := b.await(c, r, "the third attempt", ready); s.Digest != digest || s.Err != nil || s.Attempts != 0 {
		t.Errorf("ready: %+v", s)
	}
	r.Image, r.RetryInterval = b.host()+"/none:v1", time.Hour
	if s := b.await(c, r, "not there", failed); s.RetryAt.Sub(s.FailedAt) < time.Hour || image.ReasonOf(s.Err) != image.ReasonNotFound {
		t.Errorf("not there: %+v", s)
	}
}

// TestContentErrors uses unusable images, and fixes one.
func TestContentErrors(t *testing.T) {
	b := newBed(t)
	clock := testclock.NewFakeClock(time.Now())
	c := b.started(func(o *Options) { o.Clock = clock })
	noCSV := b.image(labelled(), files{"manifests/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"})
	two := b.image(labelled(), files{"manifests/a.yaml": csvText("a"), "manifests/b.yaml": csvText("b")})
	broken := b.image(labelled(), files{"manifests/csv.yaml": csvText("lamp"), "manifests/z.yaml": "a: b: c"})
	large := b.image(labelled(), files{"manifests/csv.yaml": csvText("lamp"), "manifests/z.yaml": csvText("x") + strings.Repeat("#", 50<<20)})
	other := b.image(map[string]string{"operators.operatorframework.io.bundle.mediatype.v1": "helm"}, files{"a": ""})
	none := b.image(nil, files{"bin/x": ""})
	for repository, tc := range map[string]struct {
		img  func() (string, string)
		want []string
	}{
		"nocsv":  {func() (string, string) { return b.push("nocsv:v1", noCSV) }, []string{"/manifests cannot be used as a bundle", "has no ClusterServiceVersion"}},
		"two":    {func() (string, string) { return b.push("two:v1", two) }, []string{"is a second ClusterServiceVersion beside"}},
		"broken": {func() (string, string) { return b.push("broken:v1", broken) }, []string{"z.yaml:1: is not valid YAML"}},
		"large":  {func() (string, string) { return b.push("large:v1", large) }, []string{`z.yaml: ClusterServiceVersion "x" is too large: the file has`, "1.5 MiB"}},
		"other":  {func() (string, string) { return b.push("other:v1", other) }, []string{`is of format "helm"`}},
		"none":   {func() (string, string) { return b.push("none:v1", none) }, []string{"directory /manifests is not in the image"}},
	} {
		reference, digest := tc.img()
		pinned := request(b.host()+"/"+repository+"@"+digest, "user")
		s := b.await(c, pinned, repository, failed)
		for _, want := range tc.want {
			if !strings.Contains(s.Err.Error(), want) {
				t.Errorf("%s: %v, want %q", repository, s.Err, want)
			}
		}
		if s.Ready || !s.RetryAt.IsZero() || s.Attempts != 1 {
			t.Errorf("%s by its digest will not get better: %+v", repository, s)
		}
		b.forget()
		tagged := b.await(c, request(reference, "user"), repository, failed)
		if tagged.RetryAt.IsZero() || b.sent("GET /v2/"+repository) != 0 {
			t.Errorf("%s by its tag may, but is known: %+v after %d requests", repository, tagged, b.sent("GET"))
		}
		if _, err := c.Content(t.Context(), pinned); !errors.As(err, new(*image.Error)) || b.sent("GET /v2/"+repository) != 0 {
			t.Errorf("%s: its content is %v after %d requests", repository, err, b.sent("GET"))
		}
	}
	reference, digest := b.push("two:v1", b.bundle())
	before := c.State(t.Context(), request(reference, "user"))
	clock.SetTime(before.RetryAt)
	if s := b.await(c, request(reference, "user"), "fixed", ready); s.Digest != digest {
		t.Errorf("fixed: %+v", s)
	}
	if s := b.await(c, request("A B", "user"), "no reference", failed); image.ReasonOf(s.Err) != image.ReasonReference || !s.RetryAt.IsZero() {
		t.Errorf("no reference: %+v", s)
	}
}

// TestTrouble uses blobs that are cut off, and a registry that does not answer.
func TestTrouble(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	c := b.started(nil)
	b.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write([]byte("short"))
		return true
	})
	s := b.await(c, request(reference, "user"), "cut off", failed)
	if image.ReasonOf(s.Err) != image.ReasonUnreachable || !strings.Contains(s.Err.Error(), "blob sha256:") || s.RetryAt.IsZero() {
		t.Errorf("cut off: %+v", s)
	}
	release := make(chan struct{})
	b.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") && r.Method == http.MethodGet {
			<-release
		}
		return false
	})
	defer close(release)
	r := request(reference, "hanging")
	r.Timeout = 200 * time.Millisecond
	s = b.await(c, r, "hanging", failed)
	if image.ReasonOf(s.Err) != image.ReasonUnreachable || !strings.Contains(s.Err.Error(), "took longer than 200ms") {
		t.Errorf("hanging: %+v", s)
	}
	// A request that joins another one's pull waits for as long as its own timeout.
	patient := request(reference, "patient")
	patient.Timeout = 0
	if s := b.await(c, patient, "patient", func(s State) bool { return s.Err != nil || b.sent("GET /v2/lamp/manifests/") > 0 }); s.Err != nil {
		t.Errorf("patient: %+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Content(ctx, patient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who waits may give up: %v", err)
	}
	r.Namespace, r.Catalog.Namespace = "impatient", "impatient"
	s = b.await(c, r, "impatient", failed)
	if !strings.Contains(s.Err.Error(), "took longer than 200ms") {
		t.Errorf("impatient: %+v", s)
	}
}

// TestSecretsUnreadable uses an API server that is not available.
func TestSecretsUnreadable(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	b.reader.fail(errAway)
	c := b.started(nil)
	s := b.await(c, request(reference, "user"), "without credentials", failed)
	if !errors.Is(s.Err, errAway) || !strings.Contains(s.Err.Error(), "ServiceAccount user/wares") || s.RetryAt.IsZero() {
		t.Errorf("got %+v", s)
	}
}

var errAway = errors.New("the API server is away")

// TestProgress observes a layer that arrives in two halves.
func TestProgress(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.image(labelled(), files{"manifests/csv.yaml": csvText("lamp"), "manifests/noise": noise(300 << 10)}))
	release := make(chan struct{})
	var once sync.Once
	goOn := func() { once.Do(func() { close(release) }) }
	defer goOn()
	inner := b.inner
	b.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		inner.ServeHTTP(&slow{ResponseWriter: w, left: 100 << 10, release: release}, r)
		return true
	})
	c := b.cache(nil)
	events := c.Listen()
	b.run(c)
	r := request(reference, "user")
	b.await(c, r, "half of it", func(s State) bool { return s.Done > 0 && s.Done < s.Total && !s.Began.IsZero() })
	b.expectEvent(events)
	goOn()
	b.expectEvent(events)
	b.await(c, r, "all of it", ready)
}

// TestDamage changes cached content outside the Cache.
func TestDamage(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	c := b.started(nil)
	r := request(reference, "user")
	get := func(what string) {
		t.Helper()
		c.contents.mu.Lock()
		c.contents.memory = newMemory(maxMemory)
		c.contents.mu.Unlock()
		content, err := c.Content(t.Context(), r)
		if err != nil || content.Digest != digest || len(content.Objects) != 2 || !strings.Contains(content.Objects[1], "settings") {
			t.Errorf("%s: %+v, %v", what, content, err)
		}
	}
	get("at first")
	b.forget()
	get("from disk")
	if b.sent("") != 0 {
		t.Errorf("the disk was not enough: %d requests", b.sent(""))
	}
	found, err := filepath.Glob(filepath.Join(b.dir, "sha256-*", "content", "a.configmap.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	if err := os.WriteFile(found[0], []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sittings}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	get("damaged")
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(found[0]))); err != nil {
		t.Fatal(err)
	}
	get("removed")
}

// TestSize uses a cache that has room for one of two bundles.
func TestSize(t *testing.T) {
	b := newBed(t)
	big := func(csv string) (string, string) {
		return b.push(csv+":v1", b.image(labelled(), files{"manifests/csv.yaml": csvText(csv), "manifests/noise": noise(100 << 10)}))
	}
	lamp, _ := big("lamp")
	bell, _ := big("bell")
	c := b.started(func(o *Options) { o.Size = 150 << 10 })
	for _, one := range []string{lamp, bell, lamp} {
		if _, err := c.Content(t.Context(), request(one, "user")); err != nil {
			t.Fatal(err)
		}
	}
	if usage, err := c.contents.store.Bound(1 << 30); err != nil || usage.Images != 1 || usage.Bytes > 150<<10 {
		t.Errorf("it keeps %+v, %v", usage, err)
	}
	c.contents.mu.Lock()
	c.contents.memory = newMemory(0)
	c.contents.mu.Unlock()
	b.forget()
	if _, err := c.Content(t.Context(), request(lamp, "user")); err != nil || b.sent("GET") == 0 {
		t.Errorf("what was removed comes again: %v after %d requests", err, b.sent("GET"))
	}
}

// TestForeignDir checks that directories that other users may have filled are refused.
func TestForeignDir(t *testing.T) {
	dir := t.TempDir()
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{file, open, link} {
		if _, err := New(Options{Dir: one}); err == nil || !strings.Contains(err.Error(), "--bundle-cache-dir") {
			t.Errorf("%s: %v", one, err)
		}
	}
}

// TestOtherRegistry uses a registry that claims to serve an image that another registry serves to authorized
// users only.
func TestOtherRegistry(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	c := b.started(nil)
	if _, err := c.Content(t.Context(), request(reference, "user")); err != nil {
		t.Fatal(err)
	}
	liar := newBed(t)
	var asked atomic.Int32
	liar.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Content-Length", "100")
		w.Header().Set("Docker-Content-Digest", digest)
		return true
	})
	_, err := c.Content(t.Context(), request(liar.host()+"/lamp:v1", "thief"))
	if image.ReasonOf(err) != image.ReasonNotFound || asked.Load() == 0 {
		t.Errorf("got %v after %d questions", err, asked.Load())
	}
}

// TestMirror checks that a bundle comes from a mirror with its own credentials, and that the right to have it
// depends on the mirror.
func TestMirror(t *testing.T) {
	source, mirror := newBed(t), newBed(t)
	reference, digest := source.push("lamp:v1", source.bundle())
	mirror.push("m/lamp:v1", mirror.bundle())
	mirror.answer(private("right"))
	mirror.secret("shared", "mirrors", "right")
	source.answer(unavailable)
	dir := t.TempDir()
	rules := fmt.Sprintf("[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", source.host(), mirror.host()+"/m")
	if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	shared := []types.NamespacedName{{Namespace: "shared", Name: "mirrors"}}
	c := mirror.started(func(o *Options) {
		o.PlainHTTP, o.Sources = false, imagesources.New(sources.Paths{Config: dir}, shared)
	})
	got, err := c.Content(t.Context(), request(reference, "user"))
	if err != nil || got.Digest != digest || got.Image != source.host()+"/lamp@"+digest {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(strings.Replace(rules, "[[registry.mirror]]", "blocked = true\n[[registry.mirror]]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	mirror.secret("shared", "mirrors", "wrong")
	other := request(reference, "user")
	other.Catalog.Name = "other"
	if _, err := c.Content(t.Context(), other); image.ReasonOf(err) != image.ReasonUnauthorized {
		t.Errorf("the content is cached, and the mirror refuses the new credentials: got %v", err)
	}
}

// TestSharedSecret pulls with a pull secret for all catalogs, which is deleted later: access to the cached content ends,
// also after a restart while the registry is not available.
func TestSharedSecret(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle())
	b.answer(private("word"))
	b.secret("shared", "all", "word")
	clock := testclock.NewFakeClock(time.Now())
	options := func(o *Options) {
		o.Clock = clock
		o.Sources = imagesources.New(sources.Paths{}, []types.NamespacedName{{Namespace: "shared", Name: "all"}})
	}
	c := b.started(options)
	r := request(reference, "user")
	if s := b.await(c, r, "pulled", ready); s.Digest != digest {
		t.Errorf("got %+v", s)
	}
	b.answer(unavailable)
	if _, err := b.started(options).Content(t.Context(), r); err != nil {
		t.Errorf("after a restart, with the Secret: %v", err)
	}
	b.answer(private("word"))
	b.reader.remove(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shared", Name: "all"}})
	clock.Step(freshTime)
	if s := b.await(c, r, "asked again", failed); s.Ready || image.ReasonOf(s.Err) != image.ReasonUnauthorized {
		t.Errorf("without the Secret: %+v", s)
	}
	b.answer(unavailable)
	if _, err := b.started(options).Content(t.Context(), r); image.ReasonOf(err) != image.ReasonUnreachable {
		t.Errorf("after a restart, without the Secret: %v", err)
	}
}

// TestOwnMirror checks that a mirror of a tenant fills only what its namespace reads, gets no shared credentials, and
// gives no access to content that others have brought.
func TestOwnMirror(t *testing.T) {
	source, mirror := newBed(t), newBed(t)
	reference, digest := source.push("lamp:v1", source.bundle())
	source.answer(private("word"))
	source.secret("shared", "all", "word")
	shared := []types.NamespacedName{{Namespace: "shared", Name: "all"}}
	c := source.started(func(o *Options) { o.Sources = imagesources.New(sources.Paths{}, shared) })
	if _, err := c.Content(t.Context(), request(reference, "user")); err != nil {
		t.Fatal(err)
	}
	rules := func(version, text string) {
		source.reader.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "thief", Name: "rules", ResourceVersion: version},
			Data:       map[string]string{"registries.conf": text},
		})
	}
	own := request(reference, "thief")
	own.Config = "rules"
	refused := func(why string, want image.Reason, text string) {
		t.Helper()
		if _, err := c.Content(t.Context(), own); image.ReasonOf(err) != want || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v", why, err)
		}
		// Another request has no back-off.
		own.Secrets = append(own.Secrets, fmt.Sprint("none", len(own.Secrets)))
	}
	refused("a ConfigMap that is missing", image.ReasonConfiguration, "ConfigMap thief/rules, which annotation chandlery.dev/image-config names, does not exist")
	to := fmt.Sprintf("[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", source.host(), mirror.host())
	rules("1", "[[registry")
	refused("invalid rules", image.ReasonConfiguration, "ConfigMap thief/rules key registries.conf, line 1")
	rules("2", to)
	refused("neither the mirror nor shared credentials", image.ReasonUnauthorized, "401")
	// The mirror claims to have the private image.
	mirror.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Content-Length", "100")
		w.Header().Set("Docker-Content-Digest", digest)
		return true
	})
	refused("it does not", image.ReasonUnauthorized, "401")
	mirror.answer(nil)
	mirror.push("lamp:v1", mirror.bundle())
	if _, err := c.Content(t.Context(), own); err != nil {
		t.Errorf("the tenant's own copy: %v", err)
	}
	// The copy is for the namespace of the tenant.
	source.answer(unavailable)
	mirror.answer(unavailable)
	again := source.started(nil)
	if _, err := again.Content(t.Context(), own); err != nil {
		t.Errorf("the own copy is cached: %v", err)
	}
	rules("3", strings.Replace(to, mirror.host(), "other.invalid", 1))
	third := source.started(nil)
	if _, err := third.Content(t.Context(), own); image.ReasonOf(err) != image.ReasonUnreachable {
		t.Errorf("rights end with the rule: got %v", err)
	}
}

// TestOwnMirrorFillsNothing pulls an image that only a mirror of a tenant has. Requests without that mirror do not get it.
func TestOwnMirrorFillsNothing(t *testing.T) {
	source, mirror := newBed(t), newBed(t)
	_, digest := mirror.push("lamp:v1", mirror.bundle())
	reference := source.host() + "/lamp@" + digest
	source.reader.put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "rules", ResourceVersion: "1"},
		Data: map[string]string{
			"registries.conf": fmt.Sprintf("[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", source.host(), mirror.host()),
		},
	})
	c := source.started(nil)
	own := request(reference, "tenant")
	own.Config = "rules"
	if _, err := c.Content(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]Request{"another namespace": request(reference, "user"), "another catalog of the namespace": request(reference, "tenant")} {
		if _, err := c.Content(t.Context(), r); image.ReasonOf(err) != image.ReasonNotFound {
			t.Errorf("%s: got %v, want %v", what, err, image.ReasonNotFound)
		}
	}
}

// TestPullsAreCounted counts a pull, and images that a registry does not have or that have no registry.
func TestPullsAreCounted(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	c := b.started(nil)
	for result, tc := range map[string]struct {
		reference string
		ended     func(State) bool
	}{
		"success":     {reference, ready},
		"notfound":    {b.host() + "/lamp:absent", failed},
		"unreachable": {ports.Address(t) + "/lamp:v1", failed},
	} {
		before := testutil.ToFloat64(pullsTotal.WithLabelValues(result))
		b.await(c, request(tc.reference, "user"), result, tc.ended)
		if got := testutil.ToFloat64(pullsTotal.WithLabelValues(result)) - before; got < 1 {
			t.Errorf("%s: counted %v pulls", result, got)
		}
	}
}

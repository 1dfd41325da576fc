package bundleimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

const nodeDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// fakeNodes are nodes that pull images.
type fakeNodes struct {
	mu       sync.Mutex
	requests []nodepull.Request
	// archive is what nodes hand over, and err why they do not.
	archive []byte
	err     error
	// hold delays the result; nil for not.
	hold chan struct{}
}

func newNodes(t *testing.T, texts files) *fakeNodes {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var archive bytes.Buffer
	bundle := image.Bundle()
	if err := bundle.Archive(&archive, root, image.BundleLimits()); err != nil {
		t.Fatal(err)
	}
	return &fakeNodes{archive: archive.Bytes()}
}

func (n *fakeNodes) Pull(ctx context.Context, r nodepull.Request) (*nodepull.Result, error) {
	n.mu.Lock()
	n.requests = append(n.requests, r)
	hold, archive, err := n.hold, n.archive, n.err
	n.mu.Unlock()
	r.Started(types.NamespacedName{Namespace: r.Catalog.Namespace, Name: "pod"})
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, &image.Error{Reference: r.Image, Reason: image.ReasonNode, Err: err}
	}
	return &nodepull.Result{Catalog: types.UID("uid of " + r.Catalog.String()), Digest: nodeDigest, Node: "n1", Archive: archive}, nil
}

// fail makes nodes fail; nil for not.
func (n *fakeNodes) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

func (n *fakeNodes) pulls() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.requests)
}

func (n *fakeNodes) options(mode nodepull.Mode) func(*Options) {
	return func(o *Options) { o.Nodes = Nodes{Mode: mode, Puller: n} }
}

func lampFiles() files { return files{"manifests/csv.yaml": csvText("lamp.v1")} }

// pullBeside pulls an image for a catalog with an annotation, in a new cache beside nodes that have a bundle. It returns the
// nodes and the error.
func (b *bed) pullBeside(mode nodepull.Mode, annotation, reference string) (*fakeNodes, error) {
	b.Helper()
	n := newNodes(b.T, lampFiles())
	c := b.started(func(o *Options) {
		n.options(mode)(o)
		o.Dir = b.TempDir() + "/bundles"
	})
	r := request(reference, "user")
	r.Pull = annotation
	_, err := c.Content(b.Context(), r)
	return n, err
}

// TestNodePullsWhatTheSupervisorCannot shows the first failure at once, then the content of the node.
func TestNodePullsWhatTheSupervisorCannot(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	b.answer(private("word"))
	n := newNodes(t, lampFiles())
	n.hold = make(chan struct{})
	c := b.started(n.options(nodepull.Auto))
	r := request(reference, "user", "pull")
	s := b.await(c, r, "refused", func(s State) bool { return s.Err != nil && s.Node != nil })
	if image.ReasonOf(s.Err) != image.ReasonUnauthorized || s.Node.Pod != "user/pod" || s.Node.Cause == nil || s.Began.IsZero() || s.Ready {
		t.Errorf("while the node pulls: %+v", s)
	}
	close(n.hold)
	s = b.await(c, r, "pulled", ready)
	if s.Digest != nodeDigest || s.Node == nil || s.Node.Node != "n1" || image.ReasonOf(s.Node.Cause) != image.ReasonUnauthorized || s.Err != nil {
		t.Errorf("at the end: %+v", s)
	}
	content, err := c.Content(t.Context(), r)
	if err != nil || content.Image != b.host()+"/lamp@"+nodeDigest || len(content.Objects) != 1 || !strings.Contains(content.Objects[0], "lamp.v1") {
		t.Errorf("%+v, %v", content, err)
	}
	r.Image = content.Image
	if s := c.State(t.Context(), r); !s.Ready || n.pulls() != 1 {
		t.Errorf("by its digest: %+v after %d pulls", s, n.pulls())
	}
	if got := n.requests[0]; got.Image != reference || got.Catalog != r.Catalog || len(got.Secrets) != 1 || got.Timeout != c.o.timeout(&r) {
		t.Errorf("the node was asked for %+v", got)
	}
}

// TestNodePullsForOneCatalog lets another catalog ask for what a node has pulled.
func TestNodePullsForOneCatalog(t *testing.T) {
	b := newBed(t)
	n := newNodes(t, lampFiles())
	c := b.started(n.options(nodepull.Auto))
	reference := b.host() + "/lamp@" + nodeDigest
	if _, err := c.Content(t.Context(), request(reference, "first")); err != nil {
		t.Fatal(err)
	}
	n.fail(errors.New("ErrImagePull"))
	if content, err := c.Content(t.Context(), request(reference, "second")); image.ReasonOf(err) != image.ReasonNotFound {
		t.Errorf("another catalog got %+v, %v", content, err)
	}
	n.archive = newNodes(t, files{"manifests/csv.yaml": csvText("forged.v1")}).archive
	n.fail(nil)
	third, err := c.Content(t.Context(), request(reference, "third"))
	if err != nil || !strings.Contains(third.Objects[0], "forged.v1") {
		t.Errorf("the catalog of the forger: %+v, %v", third, err)
	}
	first, err := c.Content(t.Context(), request(reference, "first"))
	if err != nil || !strings.Contains(first.Objects[0], "lamp.v1") || n.pulls() != 3 {
		t.Errorf("the first catalog: %+v, %v after %d pulls", first, err, n.pulls())
	}
}

// TestNodePullsOnceInEachPause asks often for an image that no node has.
func TestNodePullsOnceInEachPause(t *testing.T) {
	b := newBed(t)
	n := newNodes(t, lampFiles())
	n.fail(errors.New("a node cannot pull it: ErrImagePull: no such host"))
	clock := testclock.NewFakePassiveClock(time.Now())
	c := b.started(func(o *Options) {
		n.options(nodepull.Auto)(o)
		o.Clock = clock
	})
	r := request(b.host()+"/lamp:v1", "user")
	for attempt := 1; attempt <= 3; attempt++ {
		s := b.await(c, r, "failed", func(s State) bool { return !s.RetryAt.IsZero() && s.Attempts == attempt })
		if n.pulls() != attempt || s.Node != nil || image.ReasonOf(s.Err) != image.ReasonNotFound ||
			!strings.Contains(s.Err.Error(), "ErrImagePull: no such host; the supervisor cannot pull it either: NotFound: ") {
			t.Errorf("attempt %d: %d pulls, %+v", attempt, n.pulls(), s)
		}
		for range 100 {
			c.State(t.Context(), r)
		}
		if n.pulls() != attempt {
			t.Errorf("in the pause after attempt %d, there were %d pulls", attempt, n.pulls())
		}
		clock.SetTime(s.RetryAt)
	}
}

// TestNodeDoesNotPull checks the failures after which no node pulls.
func TestNodeDoesNotPull(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.image(nil, files{"etc/passwd": "user"}))
	n := newNodes(t, lampFiles())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(
		"[[registry]]\nlocation = \""+b.host()+"/forbidden\"\nblocked = true\n"+
			"[[registry]]\nlocation = \""+b.host()+"/mirrored\"\nblocked = true\n[[registry.mirror]]\nlocation = \""+b.host()+"/mirror\"\ninsecure = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := b.started(func(o *Options) {
		n.options(nodepull.Auto)(o)
		o.Sources = imagesources.New(sources.Paths{Config: dir}, nil)
	})
	for why, expected := range map[string]struct {
		image  string
		reason image.Reason
	}{
		"a blocked registry":                    {b.host() + "/forbidden/lamp:v1", image.ReasonBlocked},
		"a blocked registry with another image": {b.host() + "/mirrored/lamp:v1", image.ReasonNotFound},
		"no bundle":                             {reference, image.ReasonNoTree},
	} {
		if _, err := c.Content(t.Context(), request(expected.image, "user")); image.ReasonOf(err) != expected.reason || n.pulls() > 0 {
			t.Errorf("%s: %v, and %d pulls by nodes", why, err, n.pulls())
		}
	}
	only := newNodes(t, lampFiles())
	c = b.started(only.options(nodepull.Supervisor))
	if _, err := c.Content(t.Context(), request(b.host()+"/lamp:v2", "user")); image.ReasonOf(err) != image.ReasonNotFound || only.pulls() > 0 {
		t.Errorf("mode supervisor: %v, and %d pulls by nodes", err, only.pulls())
	}
}

// TestExcludedNodes checks that an error names the setting by which no node pulls, if a node could have access.
func TestExcludedNodes(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.image(nil, files{"etc/passwd": "user"}))
	missing := b.host() + "/none:v1"
	for why, test := range map[string]struct {
		mode              nodepull.Mode
		annotation, image string
		reason            image.Reason
		setting           string
	}{
		"the flag":                      {nodepull.Supervisor, "", missing, image.ReasonNotFound, "--image-pull"},
		"the flag before an annotation": {nodepull.Supervisor, "node", missing, image.ReasonNotFound, "--image-pull"},
		"an annotation":                 {nodepull.Auto, "supervisor", missing, image.ReasonNotFound, "annotation chandlery.dev/image-pull"},
		"no bundle for any node either": {nodepull.Supervisor, "", reference, image.ReasonNoTree, ""},
	} {
		n, err := b.pullBeside(test.mode, test.annotation, test.image)
		excluded, is := errors.AsType[*ExcludedError](err)
		if image.ReasonOf(err) != test.reason || is != (test.setting != "") || n.pulls() > 0 {
			t.Errorf("%s: %v after %d pulls by nodes", why, err, n.pulls())
		}
		if !is {
			continue
		}
		want := fmt.Sprintf("image %q: %v; nodes do not try, because of %s", test.image, excluded.Err, test.setting)
		if excluded.Setting != test.setting || err.Error() != want {
			t.Errorf("%s: %q, %v; want %q", why, excluded.Setting, err, want)
		}
	}
}

// TestOnlyNodesPull sends no request to registries.
func TestOnlyNodesPull(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	b.forget()
	n := newNodes(t, lampFiles())
	c := b.started(n.options(nodepull.Node))
	r := request(reference, "user")
	if _, err := c.Content(t.Context(), r); err != nil || b.sent("") > 0 || n.pulls() != 1 {
		t.Errorf("%v after %d requests and %d pulls", err, b.sent(""), n.pulls())
	}
	if s := c.State(t.Context(), r); s.Node == nil || s.Node.Cause != nil {
		t.Errorf("%+v", s)
	}
}

// TestCatalogsSayWhoPulls has catalogs with the annotation. The first image exists, and the second is in no registry.
func TestCatalogsSayWhoPulls(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	for name, test := range map[string]struct {
		mode         nodepull.Mode
		annotation   string
		image        string
		want         image.Reason
		byNode, asks bool
	}{
		"only nodes":                           {mode: nodepull.Auto, annotation: "node", image: reference, byNode: true},
		"only the supervisor":                  {mode: nodepull.Auto, annotation: "supervisor", image: b.host() + "/none:v1", want: image.ReasonNotFound, asks: true},
		"both":                                 {mode: nodepull.Auto, annotation: "auto", image: b.host() + "/none:v1", byNode: true, asks: true},
		"the flag lets only nodes pull":        {mode: nodepull.Node, annotation: "supervisor", image: reference, byNode: true},
		"the flag lets no node pull":           {mode: nodepull.Supervisor, annotation: "node", image: reference, asks: true},
		"a typing error, and nothing is asked": {mode: nodepull.Auto, annotation: "nodes", image: reference, want: image.ReasonConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			b.forget()
			n, err := b.pullBeside(test.mode, test.annotation, test.image)
			if image.ReasonOf(err) != test.want || (err == nil) != (test.want == "") || n.pulls() > 0 != test.byNode || b.sent("") > 0 != test.asks {
				t.Errorf("%v after %d requests and %d pulls by nodes", err, b.sent(""), n.pulls())
			}
		})
	}
	// The annotation is added: what the supervisor has pulled does not count.
	n := newNodes(t, lampFiles())
	c := b.started(n.options(nodepull.Auto))
	r := request(reference, "user")
	for _, step := range []struct {
		annotation string
		pulls      int
	}{{"", 0}, {"node", 1}, {"node", 1}} {
		r.Pull = step.annotation
		if _, err := c.Content(t.Context(), r); err != nil || n.pulls() != step.pulls {
			t.Errorf("annotation %q: %v after %d pulls by nodes, want %d", step.annotation, err, n.pulls(), step.pulls)
		}
	}
}

// TestNodeHandsOverNoBundle lets a node hand over content that is no bundle. It is not pulled again by digest.
func TestNodeHandsOverNoBundle(t *testing.T) {
	b := newBed(t)
	for why, texts := range map[string]files{
		"no manifests": {"etc/passwd": "user"}, "no ClusterServiceVersion": {"manifests/a.yaml": "kind: ConfigMap\n"},
	} {
		n := newNodes(t, texts)
		c := b.started(func(o *Options) {
			n.options(nodepull.Node)(o)
			o.Dir = t.TempDir() + "/bundles"
		})
		s := b.await(c, request(b.host()+"/lamp@"+nodeDigest, "user"), "failed", failed)
		known, ok := errors.AsType[*image.Error](s.Err)
		if !ok || known.MayPass() || !s.RetryAt.IsZero() {
			t.Errorf("%s: %+v", why, s)
		}
	}
}

// TestNodePullsAfterAccessWasRevoked revokes the access of the supervisor: what it was given for is returned no more.
func TestNodePullsAfterAccessWasRevoked(t *testing.T) {
	b := newBed(t)
	reference, _ := b.push("lamp:v1", b.bundle())
	n := newNodes(t, lampFiles())
	n.fail(errors.New("ErrImagePull"))
	clock := testclock.NewFakePassiveClock(time.Now())
	c := b.started(func(o *Options) {
		n.options(nodepull.Auto)(o)
		o.Clock = clock
	})
	r := request(reference, "user")
	b.await(c, r, "pulled", ready)
	b.answer(private("word"))
	clock.SetTime(clock.Now().Add(freshTime))
	b.await(c, r, "revoked", func(s State) bool {
		return !s.Ready && s.Node == nil && image.ReasonOf(s.Err) == image.ReasonUnauthorized
	})

	n.fail(nil)
	clock.SetTime(clock.Now().Add(freshTime))
	b.await(c, r, "pulled by a node", ready)
	n.fail(errors.New("ErrImagePull"))
	pulls := n.pulls()
	clock.SetTime(clock.Now().Add(freshTime))
	b.await(c, r, "asked again", func(State) bool { return n.pulls() > pulls })
	if s := c.State(t.Context(), r); !s.Ready {
		t.Errorf("a node that fails later takes the content away: %+v", s)
	}
	clock.SetTime(clock.Now().Add(authorizedTime))
	if s := c.State(t.Context(), r); s.Ready {
		t.Errorf("the content stays without access: %+v", s)
	}
}

package suite_test

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	imagename "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/fakecatalog"
)

// currents returns the values of status.currentCSV of a Subscription, in order and without
// repetitions.
func (r *record) currents(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, sub := range r.statuses[name] {
		list = append(list, sub.Status.CurrentCSV)
	}
	return slices.Compact(list)
}

const unpacked = operatorsv1alpha1.SubscriptionBundleUnpackFailed

// absentImage returns an image that its registry does not have.
func absentImage(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/lamp:2"
}

// TestCurrentCSVWaitsForItsBundle offers an update whose image does not exist, and then one with an
// image: status.currentCSV never names the first.
func TestCurrentCSVWaitsForItsBundle(t *testing.T) {
	absent := absentImage(t)
	for name, change := range map[string]func(*operatorsv1alpha1.SubscriptionSpec){
		"automatic": func(*operatorsv1alpha1.SubscriptionSpec) {}, "manual": manual,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.Serve(w.lamp(1))
			w.Create(w.subscription("my-lamp", "lamp", change))
			r := w.recording()
			stop := w.supervise()
			if name == "manual" {
				w.approve(w.onlyPlan(asking).Name)
			}
			w.succeed("lamp.v1")
			w.settled("my-lamp", "lamp.v1")

			update := w.lamp(2)
			update.Channels[0].Entries[1].Image, update.Channels[0].Entries[1].Objects = absent, nil
			w.server.Serve(update)
			fails := func() *operatorsv1alpha1.Subscription {
				return w.says("my-lamp", unpacked, "BundleUnpackFailed", "Bundle unpacking failed - NotFound: bundle lamp.v2: ")
			}
			check := func(sub *operatorsv1alpha1.Subscription) {
				t.Helper()
				s := sub.Status
				if s.CurrentCSV != "lamp.v1" || s.InstalledCSV != "lamp.v1" || s.GetCondition(operatorsv1alpha1.SubscriptionBundleUnpacking).Status == corev1.ConditionTrue {
					t.Errorf("status %+v", s)
				}
			}
			check(fails())
			stop()
			if got := r.currents("my-lamp"); !slices.Equal(got, []string{"", "lamp.v1"}) {
				t.Errorf("currentCSV was %q", got)
			}
			// A wrong status of an earlier release is corrected in one write.
			sub := w.subscription("my-lamp", "lamp")
			w.patchStatus(sub, `{"status":{"currentCSV":"lamp.v2"}}`)
			r = w.recording()
			stop = w.supervise()
			w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.CurrentCSV == "lamp.v1" })
			check(fails())
			for _, p := range w.plans() {
				if slices.Contains(p.Spec.ClusterServiceVersionNames, "lamp.v2") && p.Status.Phase != operatorsv1alpha1.InstallPlanPhasePlanning {
					t.Errorf("InstallPlan %s of lamp.v2 is in phase %s", p.Name, p.Status.Phase)
				}
			}

			fixed := w.lamp(3)
			fixed.Channels[0].Entries[1].Image, fixed.Channels[0].Entries[1].Objects = absent, nil
			fixed.Channels[0].Entries[2].Replaces, fixed.Channels[0].Entries[2].Skips = "lamp.v1", []string{"lamp.v2"}
			w.server.Serve(fixed)
			if name == "manual" {
				sub := w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.CurrentCSV == "lamp.v3" })
				w.approve(sub.Status.InstallPlanRef.Name)
			}
			w.succeed("lamp.v3")
			w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool {
				return sub.Status.CurrentCSV == "lamp.v3" && sub.Status.GetCondition(unpacked).Status != corev1.ConditionTrue
			})
			stop()
			if got := r.currents("my-lamp"); !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return s == "lamp.v2" }), []string{"lamp.v1", "lamp.v3"}) {
				t.Errorf("currentCSV was %q", got)
			}
		})
	}
}

// TestFirstCSVWaitsForItsBundle installs a version whose image does not exist, with another one.
func TestFirstCSVWaitsForItsBundle(t *testing.T) {
	w := newWorld(t)
	w.server.Serve(fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: absentImage(t)}), w.lampBeside())
	w.Create(w.subscription("my-lamp", "lamp"), w.subscription("my-torch", "torch"))
	r := w.recording()
	w.supervise()
	s := w.says("my-lamp", unpacked, "BundleUnpackFailed", "Bundle unpacking failed - NotFound: bundle lamp.v1: ").Status
	w.Expect(s.State).To(gomega.BeEquivalentTo(operatorsv1alpha1.SubscriptionStateFailed))
	// Versions that are resolved together wait together.
	w.says("my-torch", unpacked, "BundleUnpackFailed", "bundle lamp.v1: ")
	for _, name := range []string{"my-lamp", "my-torch"} {
		if got := r.currents(name); !slices.Equal(got, []string{""}) {
			t.Errorf("currentCSV of %s was %q", name, got)
		}
	}
}

// bundleImage returns a bundle image with one manifest. Without a manifest it has no label of a
// bundle.
func bundleImage(t *testing.T, manifest string) v1.Image {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "manifests/csv.yaml", Typeflag: tar.TypeReg, Size: int64(len(manifest)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
	}
	if manifest == "" {
		labels = nil
	}
	if img, err = mutate.Config(img, v1.Config{Labels: labels}); err != nil {
		t.Fatal(err)
	}
	return img
}

// TestUpdateWhoseImageIsLate offers an update whose image is late or invalid: currentCSV changes
// only after the bundle arrives (N3, N5, N6, N8).
func TestUpdateWhoseImageIsLate(t *testing.T) {
	const unpacking, unpacked = operatorsv1alpha1.SubscriptionBundleUnpacking, operatorsv1alpha1.SubscriptionBundleUnpackFailed
	for scenario, tt := range map[string]struct {
		late, foreign bool   // pushed late, or no bundle
		holds         string // requests whose path contains it are not answered until release
		timeout       string // the unpack timeout of the OperatorGroup
		kind          operatorsv1alpha1.SubscriptionConditionType
		reason, text  string
		comes         bool
	}{
		"N3": {late: true, kind: unpacked, reason: "BundleUnpackFailed", text: "Bundle unpacking failed - NotFound: bundle lamp.v2: ", comes: true},
		"N5": {holds: "/blobs/", kind: unpacking, reason: "UnpackingInProgress", comes: true},
		"N6": {holds: "/manifests/", timeout: "1s", kind: unpacked, reason: "BundleUnpackFailed", text: "Bundle unpacking failed - DeadlineExceeded: bundle lamp.v2: "},
		"N8": {foreign: true, kind: unpacked, reason: "ErrorPreventedUnpacking", text: "bundle lamp.v2: "},
	} {
		t.Run(scenario, func(t *testing.T) {
			w := newWorld(t)
			update := w.lamp(2)
			manifest := update.Channels[0].Entries[1].Objects[0]
			if tt.foreign {
				manifest = ""
			}
			images := newBlockedRegistry(t, tt.holds)
			update.Channels[0].Entries[1].Image, update.Channels[0].Entries[1].Objects = images.reference, nil
			if !tt.late {
				images.push(bundleImage(t, manifest))
			}
			if tt.timeout != "" {
				w.patch(w.group("group"), `{"metadata":{"annotations":{"operatorframework.io/bundle-unpack-timeout":"`+tt.timeout+`"}}}`)
			}
			w.server.Serve(w.lamp(1))
			w.Create(w.subscription("my-lamp", "lamp"))
			r := w.recording()
			w.supervise()
			w.succeed("lamp.v1")
			w.settled("my-lamp", "lamp.v1")
			were := func(want ...string) {
				t.Helper()
				w.Eventually(func() []string {
					return slices.DeleteFunc(r.currents("my-lamp"), func(s string) bool { return s == "" })
				}).Should(gomega.Equal(want))
			}

			w.server.Serve(update)
			w.says("my-lamp", tt.kind, tt.reason, tt.text)
			were("lamp.v1")
			if !tt.comes {
				return
			}
			if tt.late {
				images.push(bundleImage(t, manifest))
			}
			images.release()
			sub := w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.CurrentCSV == "lamp.v2" })
			if c := sub.Status.GetCondition(tt.kind); c.Status == corev1.ConditionTrue {
				t.Errorf("condition %+v", c)
			}
			were("lamp.v1", "lamp.v2")
		})
	}
}

// blockedRegistry is a registry that does not answer some requests until release is called.
type blockedRegistry struct {
	t *testing.T
	// reference is the reference of the pushed image.
	reference string
	inner     http.Handler
	release   func()
}

// newBlockedRegistry starts a registry that holds requests whose path contains a text; "" holds none.
func newBlockedRegistry(t *testing.T, path string) *blockedRegistry {
	t.Helper()
	released := make(chan struct{})
	h := &blockedRegistry{t: t, inner: registry.New(registry.Logger(log.New(io.Discard, "", 0))), release: sync.OnceFunc(func() { close(released) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path != "" && strings.Contains(r.URL.Path, path) {
			select {
			case <-released:
			case <-r.Context().Done():
				return
			}
		}
		h.inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(h.release)
	h.reference = strings.TrimPrefix(server.URL, "http://") + "/lamp:2"
	return h
}

// push pushes the image and bypasses the held requests.
func (h *blockedRegistry) push(img v1.Image) {
	h.t.Helper()
	server := httptest.NewServer(h.inner)
	defer server.Close()
	ref, err := imagename.ParseReference(strings.TrimPrefix(server.URL, "http://")+"/lamp:2", imagename.Insecure)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		h.t.Fatal(err)
	}
}

// lampBeside returns a package that requires lamp.
func (w *world) lampBeside() fakecatalog.Package {
	return single("torch", requiresPackage("lamp"))
}

func (w *world) patchStatus(sub *operatorsv1alpha1.Subscription, text string) {
	w.T.Helper()
	if err := w.Status().Patch(w.T.Context(), sub, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		w.T.Fatal(err)
	}
}

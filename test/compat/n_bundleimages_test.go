package compat_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	imagename "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// imageRegistry is a registry of images. It holds requests whose path contains a text until it is released.
type imageRegistry struct {
	t       *testing.T
	host    string
	inner   http.Handler
	release func()
}

func newImageRegistry(t *testing.T, holds string) *imageRegistry {
	t.Helper()
	released := make(chan struct{})
	r := &imageRegistry{t: t, inner: registry.New(registry.Logger(log.New(io.Discard, "", 0))), release: sync.OnceFunc(func() { close(released) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if holds != "" && strings.Contains(request.URL.Path, holds) {
			select {
			case <-released:
			case <-request.Context().Done():
				return
			}
		}
		r.inner.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(r.release)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// image returns the reference of an image.
func (r *imageRegistry) image(tag string) string { return r.host + "/lamp:" + tag }

// push pushes a bundle image with one manifest past the held requests. Without a manifest, the image is no bundle.
func (r *imageRegistry) push(tag, manifest string) {
	r.t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "manifests/csv.yaml", Typeflag: tar.TypeReg, Size: int64(len(manifest)), Mode: 0o644}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := w.Write([]byte(manifest)); err != nil {
		r.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		r.t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		r.t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		r.t.Fatal(err)
	}
	if manifest != "" {
		image, err = mutate.Config(image, v1.Config{Labels: map[string]string{
			"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
			"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		}})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	server := httptest.NewServer(r.inner)
	defer server.Close()
	ref, err := imagename.ParseReference(strings.TrimPrefix(server.URL, "http://")+"/lamp:"+tag, imagename.Insecure)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		r.t.Fatal(err)
	}
}

// imageCase is a case with lamp.v1 installed from inline manifests, and updates from images.
type imageCase struct {
	*compattest.Cluster

	t        *testing.T
	server   *fakecatalog.Server
	registry *imageRegistry
	one      *operatorsv1alpha1.ClusterServiceVersion
	sub      *operatorsv1alpha1.Subscription
	currents *subscriptionLog
}

// newImageCase installs lamp.v1. The registry holds requests whose path contains a text.
func newImageCase(t *testing.T, c *compattest.Cluster, holds string, change ...func(*operatorsv1alpha1.Subscription)) *imageCase {
	t.Helper()
	i := &imageCase{Cluster: c, t: t, registry: newImageRegistry(t, holds), one: c.CSV("lamp.v1")}
	i.server = c.Catalog("shelf", fakecatalog.Simple("lamp", lampEntry(c, i.one, "1.0.0")))
	i.sub = c.Subscribe("shelf", "lamp", append(change, func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "stable" })...)
	if i.sub.Spec.InstallPlanApproval == operatorsv1alpha1.ApprovalManual {
		i.approve("lamp.v1")
	}
	subscriptionStatus(c, i.sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
	i.currents = logSubscriptions(t, c)
	return i
}

// version returns an update of lamp.v1.
func (i *imageCase) version(n int) *operatorsv1alpha1.ClusterServiceVersion {
	return i.CSV(fmt.Sprintf("lamp.v%d", n), func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = "lamp.v1" })
}

// offers makes the catalog offer an update with an image.
func (i *imageCase) offers(n int) {
	entry := fakecatalog.Entry{
		Name: fmt.Sprintf("lamp.v%d", n), Version: fmt.Sprintf("%d.0.0", n), Replaces: "lamp.v1", Image: i.registry.image(strconv.Itoa(n)),
	}
	i.server.Serve(fakecatalog.Simple("lamp", lampEntry(i.Cluster, i.one, "1.0.0"), entry))
}

// push pushes the image of an update.
func (i *imageCase) push(n int) {
	i.t.Helper()
	i.registry.push(strconv.Itoa(n), i.Manifest(i.version(n)))
}

// says waits until a condition of the Subscription is True with a reason and a message.
func (i *imageCase) says(limit time.Duration, kind operatorsv1alpha1.SubscriptionConditionType, reason string, message wording) {
	i.t.Helper()
	saysCondition(i.Cluster, limit, i.sub, kind, reason, message)
}

func saysCondition(c *compattest.Cluster, limit time.Duration, sub *operatorsv1alpha1.Subscription,
	kind operatorsv1alpha1.SubscriptionConditionType, reason string, message wording,
) {
	c.Eventually(limit, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		condition := sub.Status.GetCondition(kind)
		if condition.Status != "True" || condition.Reason != reason {
			return fmt.Sprintf("condition %+v", condition)
		}
		return message(condition.Message)
	})
}

// lacksCondition fails if a Subscription that was read has a condition, whatever its status is.
func lacksCondition(t *testing.T, sub *operatorsv1alpha1.Subscription, kind operatorsv1alpha1.SubscriptionConditionType) {
	t.Helper()
	for _, condition := range sub.Status.Conditions {
		if condition.Type == kind {
			t.Errorf("condition %+v", condition)
		}
	}
}

// stays checks for some seconds that currentCSV and installedCSV are lamp.v1, and that they were nothing else.
func (i *imageCase) stays() {
	i.t.Helper()
	i.staysFor(restTime)
}

// staysFor is stays for a time.
func (i *imageCase) staysFor(rest time.Duration) {
	i.t.Helper()
	pause.For(i.t.Context(), rest)
	if left := i.Read(i.sub); left != "" {
		i.t.Fatal(left)
	}
	if s := i.sub.Status; s.CurrentCSV != "lamp.v1" || s.InstalledCSV != "lamp.v1" {
		i.t.Errorf("currentCSV %s, installedCSV %s", s.CurrentCSV, s.InstalledCSV)
	}
	i.were("lamp.v1")
	if have := i.currents.installed("lamp"); !slices.Equal(have, []string{"lamp.v1"}) {
		i.t.Errorf("installedCSV was %q", have)
	}
}

// were checks which values currentCSV had. The watch may lag what was read.
func (i *imageCase) were(want ...string) {
	i.t.Helper()
	i.Eventually(5*time.Second, func() string {
		if have := i.currents.values("lamp"); !slices.Equal(have, want) {
			return fmt.Sprintf("currentCSV was %q, want %q", have, want)
		}
		return ""
	})
}

// rests waits until the Subscription has not been written for two seconds.
func (i *imageCase) rests() {
	i.t.Helper()
	version, since := "", time.Now()
	i.Eventually(compattest.Patience, func() string {
		if left := i.Read(i.sub); left != "" {
			return left
		}
		if i.sub.ResourceVersion != version {
			version, since = i.sub.ResourceVersion, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return "the Subscription was written " + time.Since(since).String() + " ago"
		}
		return ""
	})
}

// becomes waits until currentCSV names an update.
func (i *imageCase) becomes(n int) {
	i.t.Helper()
	i.becomesWithin(compattest.Patience, n)
}

// becomesWithin waits at most until a limit until currentCSV names an update.
func (i *imageCase) becomesWithin(limit time.Duration, n int) {
	i.t.Helper()
	i.Eventually(limit, func() string {
		if left := i.Read(i.sub); left != "" || i.sub.Status.CurrentCSV == fmt.Sprintf("lamp.v%d", n) {
			return left
		}
		return "currentCSV " + i.sub.Status.CurrentCSV
	})
}

// approve waits for an InstallPlan that asks for approval of a version, and approves it.
func (i *imageCase) approve(version string) {
	i.t.Helper()
	i.Eventually(compattest.Patience, func() string {
		for _, plan := range i.plans(version) {
			if plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
				mergePatch(i.t, i.Cluster, &plan, `{"spec":{"approved":true}}`)
				return ""
			}
		}
		return "no InstallPlan asks for approval of " + version
	})
}

// plans returns the InstallPlans of a version.
func (i *imageCase) plans(version string) []operatorsv1alpha1.InstallPlan {
	i.t.Helper()
	var list operatorsv1alpha1.InstallPlanList
	if err := i.List(i.t.Context(), &list, client.InNamespace(i.Namespace)); err != nil {
		i.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p operatorsv1alpha1.InstallPlan) bool {
		return !slices.Contains(p.Spec.ClusterServiceVersionNames, version)
	})
}

// subscriptionLog records the statuses of Subscriptions from a watch.
type subscriptionLog struct {
	mu   sync.Mutex
	seen map[string][]operatorsv1alpha1.SubscriptionStatus
}

func logSubscriptions(t *testing.T, c *compattest.Cluster) *subscriptionLog {
	t.Helper()
	w, err := c.Watch(t.Context(), &operatorsv1alpha1.SubscriptionList{}, client.InNamespace(c.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	l := &subscriptionLog{seen: map[string][]operatorsv1alpha1.SubscriptionStatus{}}
	go func() {
		for e := range w.ResultChan() {
			if sub, is := e.Object.(*operatorsv1alpha1.Subscription); is {
				l.mu.Lock()
				l.seen[sub.Name] = append(l.seen[sub.Name], sub.Status)
				l.mu.Unlock()
			}
		}
	}()
	return l
}

// statuses returns the statuses of a Subscription in order.
func (l *subscriptionLog) statuses(name string) []operatorsv1alpha1.SubscriptionStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen[name])
}

// values returns the values of currentCSV in order, without repetitions.
func (l *subscriptionLog) values(name string) []string {
	var values []string
	for _, status := range l.statuses(name) {
		values = append(values, status.CurrentCSV)
	}
	return slices.Compact(values)
}

// installed returns the values of installedCSV in order, without repetitions.
func (l *subscriptionLog) installed(name string) []string {
	var values []string
	for _, status := range l.statuses(name) {
		values = append(values, status.InstalledCSV)
	}
	return slices.Compact(values)
}

const (
	unpackFailed = operatorsv1alpha1.SubscriptionBundleUnpackFailed
	unpacking    = operatorsv1alpha1.SubscriptionBundleUnpacking
	notFound     = "Bundle unpacking failed - NotFound"
)

// missingImage offers an update whose image does not exist, and waits for the failure.
func missingImage(t *testing.T, c *compattest.Cluster) *imageCase {
	t.Helper()
	i := newImageCase(t, c, "")
	i.offers(2)
	i.says(10*time.Second, unpackFailed, "BundleUnpackFailed", begins(notFound))
	return i
}

// TestUnpackFailures checks the status of Subscriptions whose bundle image is missing, late or invalid.
func TestUnpackFailures(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "N1", func(t *testing.T, c *compattest.Cluster) {
		i := missingImage(t, c)
		lacksCondition(t, i.sub, unpacking)
		i.staysFor(time.Minute)
		saysCondition(c, time.Second, i.sub, unpackFailed, "BundleUnpackFailed", begins(notFound))
		lacksCondition(t, i.sub, unpacking)
	})
	compattest.Check(t, "N2", func(t *testing.T, c *compattest.Cluster) {
		i := missingImage(t, c)
		i.push(3)
		i.offers(3)
		i.becomes(3)
		i.were("lamp.v1", "lamp.v3")
		subscriptionStatus(c, i.sub, "lamp.v3", "lamp.v3", operatorsv1alpha1.SubscriptionStateAtLatest)
		lacksCondition(t, i.sub, unpackFailed)
	})
	compattest.Check(t, "N3", func(t *testing.T, c *compattest.Cluster) {
		i := missingImage(t, c)
		i.push(2)
		// A new content of the catalog causes another attempt at once.
		i.server.Announce("again")
		i.becomes(2)
		i.were("lamp.v1", "lamp.v2")
	})
	compattest.Check(t, "N4", func(t *testing.T, c *compattest.Cluster) {
		images := newImageRegistry(t, "")
		c.Catalog("shelf", fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: images.image("1")}))
		sub := c.Subscribe("shelf", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "stable" })
		saysCondition(c, compattest.Patience, sub, unpackFailed, "BundleUnpackFailed", begins(notFound))
		if s := sub.Status; s.CurrentCSV != "" || s.InstalledCSV != "" {
			t.Errorf("currentCSV %s, installedCSV %s", s.CurrentCSV, s.InstalledCSV)
		}
		var list operatorsv1alpha1.ClusterServiceVersionList
		if err := c.List(t.Context(), &list, client.InNamespace(c.Namespace)); err != nil || len(list.Items) > 0 {
			t.Errorf("%d versions, error %v", len(list.Items), err)
		}
	})
	compattest.Check(t, "N5", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "/blobs/")
		i.push(2)
		i.offers(2)
		began := time.Now()
		i.says(compattest.Patience, unpacking, "UnpackingInProgress", containing())
		i.stays()
		pause.For(t.Context(), time.Until(began.Add(20*time.Second)))
		i.were("lamp.v1")
		i.registry.release()
		i.becomesWithin(20*time.Second, 2)
		i.were("lamp.v1", "lamp.v2")
	})
}

// TestUnpackDependencies checks registries that do not answer, invalid images, and Subscriptions that depend on an image.
func TestUnpackDependencies(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "N6", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "/manifests/")
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
		mergePatch(t, c, group, `{"metadata":{"annotations":{"operatorframework.io/bundle-unpack-timeout":"5s"}}}`)
		i.push(2)
		i.offers(2)
		i.says(10*time.Second, unpackFailed, "BundleUnpackFailed", containing("DeadlineExceeded"))
		i.stays()
	})
	compattest.Check(t, "N7", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "")
		torch := c.CSV("torch.v1")
		entry := lampEntry(c, torch, "1.0.0")
		entry.Properties = []*api.Property{{Type: "olm.package.required", Value: `{"packageName":"lamp","versionRange":">=2.0.0"}`}}
		i.server.Serve(
			fakecatalog.Simple("lamp", lampEntry(c, i.one, "1.0.0"), fakecatalog.Entry{Name: "lamp.v2", Version: "2.0.0", Replaces: "lamp.v1", Image: i.registry.image("2")}),
			fakecatalog.Simple("torch", entry),
		)
		sub := c.Subscribe("shelf", "torch", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "stable" })
		saysCondition(c, compattest.Patience, sub, unpackFailed, "BundleUnpackFailed", begins(notFound))
		i.stays()
		if left := c.Read(sub); left != "" || sub.Status.CurrentCSV != "" {
			t.Errorf("currentCSV %s %s", sub.Status.CurrentCSV, left)
		}
	})
	compattest.Check(t, "N8", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "")
		i.registry.push("2", "")
		i.offers(2)
		i.says(compattest.Patience, unpackFailed, "ErrorPreventedUnpacking", containing())
		i.stays()
	})
	compattest.Check(t, "N9", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "", func(s *operatorsv1alpha1.Subscription) { s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual })
		i.offers(2)
		i.says(compattest.Patience, unpackFailed, "BundleUnpackFailed", begins(notFound))
		for _, plan := range i.plans("lamp.v2") {
			if plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
				t.Errorf("InstallPlan %s asks for approval", plan.Name)
			}
		}
		i.push(2)
		i.server.Announce("again")
		i.approve("lamp.v2")
		i.becomes(2)
	})
	compattest.Check(t, "N11", func(t *testing.T, c *compattest.Cluster) {
		i := missingImage(t, c)
		i.rests()
		mergeStatus(t, c, i.sub, `{"status":{"currentCSV":"lamp.v2"}}`)
		i.becomes(1)
		c.AtRest(restTime, i.sub)
		all := i.currents.statuses("lamp")
		patched := slices.IndexFunc(all, func(s operatorsv1alpha1.SubscriptionStatus) bool { return s.CurrentCSV == "lamp.v2" })
		if n := len(all) - patched - 1; patched < 0 || n != 1 {
			t.Errorf("the Subscription was written %d times", n)
		}
	})
}

// TestFirstUnpackFailures checks Subscriptions without an installed version, and what ends a failure.
func TestFirstUnpackFailures(t *testing.T) {
	t.Parallel()
	first := func(c *compattest.Cluster, images *imageRegistry) (*fakecatalog.Server, *operatorsv1alpha1.Subscription) {
		server := c.Catalog("shelf", fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: images.image("1")}))
		return server, c.Subscribe("shelf", "lamp", onStable)
	}
	withoutCSV := func(t *testing.T, sub *operatorsv1alpha1.Subscription) {
		t.Helper()
		if s := sub.Status; s.CurrentCSV != "" || s.InstalledCSV != "" {
			t.Errorf("currentCSV %s, installedCSV %s", s.CurrentCSV, s.InstalledCSV)
		}
	}
	compattest.Check(t, "N1-Message", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "")
		i.offers(2)
		i.says(compattest.Patience, unpackFailed, "BundleUnpackFailed", containing(i.registry.image("2")))
	})
	compattest.Check(t, "N2-Withdrawn", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "")
		i.offers(2)
		i.says(compattest.Patience, unpackFailed, "BundleUnpackFailed", begins(notFound))
		i.server.Serve(fakecatalog.Simple("lamp", lampEntry(c, i.one, "1.0.0")))
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(i.sub); left != "" {
				return left
			}
			s := i.sub.Status
			failed := func(condition operatorsv1alpha1.SubscriptionCondition) bool { return condition.Type == unpackFailed }
			if s.State != operatorsv1alpha1.SubscriptionStateAtLatest || slices.ContainsFunc(s.Conditions, failed) {
				return "the status is " + c.Manifest(s)
			}
			return ""
		})
		i.stays()
	})
	compattest.Check(t, "N4-Pushed", func(t *testing.T, c *compattest.Cluster) {
		images := newImageRegistry(t, "")
		server, sub := first(c, images)
		saysCondition(c, compattest.Patience, sub, unpackFailed, "BundleUnpackFailed", begins(notFound))
		images.push("1", c.Manifest(c.CSV("lamp.v1")))
		server.Announce("again")
		subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
	})
	compattest.Check(t, "N6-First", func(t *testing.T, c *compattest.Cluster) {
		images := newImageRegistry(t, "/manifests/")
		mergePatch(t, c, ownGroup(c), `{"metadata":{"annotations":{"operatorframework.io/bundle-unpack-timeout":"5s"}}}`)
		_, sub := first(c, images)
		saysCondition(c, compattest.Patience, sub, unpackFailed, "BundleUnpackFailed", containing("DeadlineExceeded"))
		withoutCSV(t, sub)
	})
	compattest.Check(t, "N7-Apart", func(t *testing.T, c *compattest.Cluster) {
		i := newImageCase(t, c, "")
		i.server.Serve(
			fakecatalog.Simple("lamp", lampEntry(c, i.one, "1.0.0"), fakecatalog.Entry{Name: "lamp.v2", Version: "2.0.0", Replaces: "lamp.v1", Image: i.registry.image("2")}),
			fakecatalog.Simple("torch", lampEntry(c, c.CSV("torch.v1"), "1.0.0")),
		)
		i.says(compattest.Patience, unpackFailed, "BundleUnpackFailed", begins(notFound))
		sub := c.Subscribe("shelf", "torch", onStable)
		subscriptionStatus(c, sub, "torch.v1", "torch.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
		i.stays()
	})
	compattest.Check(t, "N8-First", func(t *testing.T, c *compattest.Cluster) {
		images := newImageRegistry(t, "")
		images.push("1", "")
		_, sub := first(c, images)
		saysCondition(c, compattest.Patience, sub, unpackFailed, "ErrorPreventedUnpacking", containing())
		withoutCSV(t, sub)
	})
}

package nodes_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/pause"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// connected returns the time lastConnect of a CatalogSource that was read.
func connected(source *operatorsv1alpha1.CatalogSource) time.Time {
	if source.Status.GRPCConnectionState == nil {
		return time.Time{}
	}
	return source.Status.GRPCConnectionState.LastConnectTime.Time
}

// moves waits until a catalog is READY and lastConnect is later than a time.
func moves(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, after time.Time, limit time.Duration) {
	c.Eventually(limit, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		if left := unready(source); left != "" {
			return left
		}
		if !connected(source).After(after) {
			return fmt.Sprintf("connected at %s, before at %s; %s", connected(source), after, source.Status.Message)
		}
		return ""
	})
}

// stays fails if lastConnect moves or the catalog is not READY within a time.
func stays(t *testing.T, c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, limit time.Duration) {
	t.Helper()
	before, end := connected(source), time.Now().Add(limit)
	for time.Now().Before(end) {
		if left := c.Read(source); left != "" {
			t.Fatal(left)
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" || !state.LastConnectTime.Time.Equal(before) {
			t.Fatalf("the connection is %+v, connected at %s before; %s", state, before, source.Status.Message)
		}
		pause.For(t.Context(), 200*time.Millisecond)
	}
}

// catalogFiles returns a file-based catalog with one version of package lamp.
func catalogFiles(versions ...string) fs.FS {
	texts := []string{`{"schema":"olm.package","name":"lamp","defaultChannel":"main"}`}
	var entries []string
	for i, v := range versions {
		name := "lamp.v" + v
		entry := `{"name":"` + name + `"}`
		if i > 0 {
			entry = `{"name":"` + name + `","replaces":"lamp.v` + versions[i-1] + `"}`
		}
		entries = append(entries, entry)
		texts = append(texts, `{"schema":"olm.bundle","name":"`+name+`","package":"lamp","image":"registry.example/lamp:`+v+
			`","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"`+v+`"}}]}`)
	}
	texts = append(texts, `{"schema":"olm.channel","package":"lamp","name":"main","entries":[`+strings.Join(entries, ",")+`]}`)
	return fstest.MapFS{"lamp/catalog.json": &fstest.MapFile{Data: []byte(strings.Join(texts, "\n"))}}
}

const pollInterval = 10 * time.Second

// polled creates a catalog of an image by tag, and returns a function that moves the tag.
func polled(t *testing.T, c *compattest.Cluster, change ...func(*operatorsv1alpha1.CatalogSource)) (source *operatorsv1alpha1.CatalogSource, push func(v1.Image) time.Time) {
	t.Helper()
	tag := bed(t).Images.Address() + "/" + c.Namespace + "/shelf:v1"
	push = func(image v1.Image) time.Time {
		t.Helper()
		if _, err := images.Push(t.Context(), tag, image); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}
	push(compattest.CatalogImage(t, catalogFiles("1.0.0")))
	source = &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: tag,
			UpdateStrategy: &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{RawInterval: pollInterval.String()}},
		},
	}
	for _, f := range change {
		f(source)
	}
	c.Make(source)
	ready(c, source, compattest.Patience)
	return source, push
}

// polledOnce waits until a READY catalog was polled, and reads it. OLM writes lastConnect once more then.
func polledOnce(t *testing.T, c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource) {
	t.Helper()
	pause.For(t.Context(), pollInterval+2*time.Second)
	if left := c.Read(source); left != "" {
		t.Fatal(left)
	}
}

// resolvesToNew creates a Subscription, and fails if it names the old version before the new one.
func resolvesToNew(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	sub := c.Subscribe("shelf", "lamp")
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if sub.Status.CurrentCSV == "lamp.v1.0.0" {
			t.Fatal("the Subscription is resolved to the old content")
		}
		if sub.Status.CurrentCSV != "lamp.v1.1.0" {
			return "currentCSV is " + sub.Status.CurrentCSV
		}
		return ""
	})
}

// TestLastConnectOfConfigMaps checks lastConnect of catalogs from ConfigMaps.
func TestLastConnectOfConfigMaps(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "A1", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", oldLamp(t, c).data(t))
		change(t, c, held, source, lamp(t, c).data(t))
		ready(c, source, 30*time.Second)
		resolvesToNew(t, c)
	})
	compattest.Check(t, "A1-Unlabelled", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", oldLamp(t, c).data(t), func(held *corev1.ConfigMap) { held.Labels = nil })
		change(t, c, held, source, lamp(t, c).data(t))
		ready(c, source, 30*time.Second)
		resolvesToNew(t, c)
	})
	compattest.Check(t, "A2", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", oldLamp(t, c).data(t))
		sub := c.Subscribe("shelf", "lamp")
		installed(c, "lamp.v1.0.0")
		change(t, c, held, source, lamp(t, c).data(t))
		ready(c, source, 30*time.Second)
		current(c, sub, "lamp.v1.1.0", time.Minute)
	})
	compattest.Check(t, "A3", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", lamp(t, c).data(t))
		replica := pods(t, c, "shelf")
		update(t, c, held, func() { held.Labels["team"] = "a" })
		seen(c, held, source)
		ready(c, source, 30*time.Second)
		if after := pods(t, c, "shelf"); len(after) != 1 || after[0].UID != replica[0].UID {
			t.Errorf("a label of the ConfigMap replaced the replica")
		}
	})
	compattest.Check(t, "A4", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", oldLamp(t, c).data(t))
		before := connected(source)
		data := lamp(t, c).data(t)
		delete(data, keyPackages)
		update(t, c, held, func() { held.Data = data })
		refusedWithin(c, source, 5*time.Second, keyPackages)
		if !connected(source).Equal(before) {
			t.Errorf("lastConnect is %s, before %s", connected(source), before)
		}
		stays(t, c, source, 10*time.Second)
		// The old content has no other version.
		c.Subscribe("shelf", "lamp")
		installed(c, "lamp.v1.0.0")
	})
}

// TestLastConnectOfReplacedConfigMaps checks lastConnect after several changes of a ConfigMap.
func TestLastConnectOfReplacedConfigMaps(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "A5", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", oldLamp(t, c).data(t))
		data := lamp(t, c).data(t)
		delete(data, keyPackages)
		change(t, c, held, source, data)
		refused(c, source)
		change(t, c, held, source, lamp(t, c).data(t))
		ready(c, source, 30*time.Second)
		if source.Status.Reason != "" || source.Status.Message != "" {
			t.Errorf("reason %q, message %q", source.Status.Reason, source.Status.Message)
		}
		// The content of before is no reason to wait for ever.
		change(t, c, held, source, data)
		refused(c, source)
		change(t, c, held, source, lamp(t, c).data(t))
		ready(c, source, 30*time.Second)
	})
	compattest.Check(t, "A6", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", oldLamp(t, c).data(t))
		for _, name := range []string{"one", "two", "three"} {
			next := lamp(t, c)
			next.packages = []any{pkg("lamp", "main", channel("main", "lamp.v1.1.0"), channel(name, "lamp.v1.0.0"))}
			update(t, c, held, func() { held.Data = next.data(t) })
			pause.For(t.Context(), 500*time.Millisecond)
		}
		seen(c, held, source)
		ready(c, source, time.Minute)
		sub := c.Subscribe("shelf", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel = "three" })
		current(c, sub, "lamp.v1.0.0", compattest.Patience)
	})
	compattest.Check(t, "A7", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "shelf", lamp(t, c).data(t))
		if err := c.Delete(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		again := configMap(c, "shelf", lamp(t, c).data(t))
		c.Make(again)
		// The owner reference is a further write.
		c.Eventually(5*time.Second, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if ref := source.Status.ConfigMapResource; ref == nil || ref.UID != again.UID {
				return fmt.Sprintf("the reference is %+v", ref)
			}
			return ""
		})
		ready(c, source, 30*time.Second)
	})
	compattest.Check(t, "A23", func(t *testing.T, c *compattest.Cluster) {
		_, source := serve(t, c, "shelf", lamp(t, c).data(t))
		connectsInFuture(t, c, source)
		pause.For(t.Context(), 10*time.Second)
		if left := c.Read(source); left != "" {
			t.Fatal(left)
		}
		if connected(source).After(time.Now()) {
			t.Errorf("lastConnect is in the future: %s", connected(source))
		}
	})
}

// TestLastConnectOfImages checks lastConnect of catalogs whose tag is polled.
func TestLastConnectOfImages(t *testing.T) {
	t.Parallel()
	for id, tt := range map[string]struct {
		image func(t *testing.T) (v1.Image, error)
		text  string
	}{
		"A10-program": {func(*testing.T) (v1.Image, error) { return images.WithoutCatalog() }, "can be run"},
		"A10-broken":  {func(t *testing.T) (v1.Image, error) { t.Helper(); return images.Broken(compattest.Registry(t)) }, "holds a catalog that can be served"},
		"A10-missing": {func(t *testing.T) (v1.Image, error) { t.Helper(); return compattest.Registry(t), nil }, "holds a catalog that can be served"},
	} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			image, err := tt.image(t)
			if err != nil {
				t.Fatal(err)
			}
			source, push := polled(t, c)
			before := connected(source)
			push(image)
			c.Eventually(compattest.Patience, func() string {
				if left := c.Read(source); left != "" {
					return left
				}
				if left := unready(source); left != "" || !connected(source).Equal(before) {
					t.Fatalf("connected at %s, before at %s; %s", connected(source), before, left)
				}
				condition := apimeta.FindStatusCondition(source.Status.Conditions, api.ConditionProgressing)
				if condition == nil || condition.Status != metav1.ConditionFalse || !contains(condition.Message, tt.text) {
					return fmt.Sprintf("Progressing is %+v", condition)
				}
				return ""
			})
			stays(t, c, source, 5*time.Second)
		})
	}
	compattest.Check(t, "A11", func(t *testing.T, c *compattest.Cluster) {
		source, push := polled(t, c)
		files, _ := catalogFiles("1.0.0").(fstest.MapFS)
		// A space more makes another image with the same packages.
		files["lamp/catalog.json"].Data = append(files["lamp/catalog.json"].Data, ' ')
		pushed := push(compattest.CatalogImage(t, files))
		moves(c, source, pushed.Truncate(time.Second), pollInterval+time.Minute)
	})
	compattest.Check(t, "A12-image", func(t *testing.T, c *compattest.Cluster) {
		source, _ := polled(t, c)
		other := bed(t).Images.Address() + "/" + c.Namespace + "/shelf:v2"
		if _, err := images.Push(t.Context(), other, compattest.CatalogImage(t, catalogFiles("1.0.0", "1.1.0"))); err != nil {
			t.Fatal(err)
		}
		before := connected(source)
		update(t, c, source, func() { source.Spec.Image = other })
		moves(c, source, before, time.Minute)
	})
	compattest.Check(t, "A12-settings", func(t *testing.T, c *compattest.Cluster) {
		source, _ := polled(t, c)
		before := connected(source)
		update(t, c, source, func() {
			source.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{Tolerations: []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}}
		})
		moves(c, source, before, time.Minute)
	})
	compattest.Check(t, "A12-address", func(t *testing.T, c *compattest.Cluster) {
		one := c.Catalog("shelf", fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1.0.0", Version: "1.0.0"}))
		other := fakecatalog.Start(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1.1.0", Version: "1.1.0"}))
		source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"}}
		c.Read(source)
		before := connected(source)
		pause.For(t.Context(), time.Second)
		update(t, c, source, func() { source.Spec.Address = other.Address() })
		moves(c, source, before, time.Minute)
		if source.Status.GRPCConnectionState.Address == one.Address() {
			t.Errorf("the address is %s", one.Address())
		}
	})
}

// TestLastConnectOfReplicas checks lastConnect of a catalog that loses replicas.
func TestLastConnectOfReplicas(t *testing.T) {
	t.Parallel()
	two := func(s *operatorsv1alpha1.CatalogSource) {
		s.Annotations = map[string]string{api.AnnotationReplicas: "2"}
	}
	bothReady := func(t *testing.T, c *compattest.Cluster) []corev1.Pod {
		t.Helper()
		var found []corev1.Pod
		c.Eventually(compattest.Patience, func() string {
			found = pods(t, c, "shelf")
			isReady := func(p corev1.Pod) bool {
				return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
			}
			if len(found) != 2 || !isReady(found[0]) || !isReady(found[1]) {
				return fmt.Sprintf("%d pods", len(found))
			}
			return ""
		})
		pause.For(t.Context(), 3*time.Second)
		return found
	}
	compattest.Check(t, "A17", func(t *testing.T, c *compattest.Cluster) {
		source, _ := polled(t, c, two)
		all := bothReady(t, c)
		end := record(t, c)
		if err := c.Delete(t.Context(), &all[0]); err != nil {
			t.Fatal(err)
		}
		pause.For(t.Context(), 20*time.Second)
		written := end()[source.Name]
		if n := written.connections() - 1; n > 1 {
			t.Errorf("lastConnect moved %d times", n)
		}
		if n := written.connectionWrites(); n > 1 {
			t.Errorf("connectionState was written %d times", n)
		}
		for i := range written {
			if state := written[i].Status.GRPCConnectionState.LastObservedState; state != "READY" {
				t.Errorf("the state is %s", state)
			}
		}
	})
	compattest.Check(t, "A18", func(t *testing.T, c *compattest.Cluster) {
		source, _ := polled(t, c, two)
		all := bothReady(t, c)
		c.Read(source)
		before, end := connected(source), record(t, c)
		for i := range all {
			if err := c.Delete(t.Context(), &all[i], client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
		moves(c, source, before, time.Minute)
		if !slices.ContainsFunc(end()[source.Name], func(s operatorsv1alpha1.CatalogSource) bool {
			return s.Status.GRPCConnectionState.LastObservedState != "READY"
		}) {
			t.Error("the state was READY all the time")
		}
	})
}

// TestCatalogsAtRest checks that lastConnect does not move without a cause.
func TestCatalogsAtRest(t *testing.T) { //nolint:paralleltest // with OLM, no other case may run beside these
	compattest.CheckUndisturbed(t, "A8", func(t *testing.T, c *compattest.Cluster) {
		source, push := polled(t, c)
		polledOnce(t, c, source)
		stays(t, c, source, pollInterval+2*time.Second)
		pushed := push(compattest.CatalogImage(t, catalogFiles("1.0.0", "1.1.0")))
		moves(c, source, pushed.Truncate(time.Second), pollInterval+time.Minute)
	})
	compattest.CheckUndisturbed(t, "A9", func(t *testing.T, c *compattest.Cluster) {
		const polls = 5
		source, push := polled(t, c)
		polledOnce(t, c, source)
		end := record(t, c)
		push(compattest.CatalogImage(t, catalogFiles("1.0.0")))
		stays(t, c, source, polls*pollInterval)
		written := end()
		rested(t, c, written, polls*pollInterval)
		if n, _ := written[source.Name].writes(); n == 0 {
			t.Error("the tag was not polled")
		}
	})
	compattest.CheckUndisturbed(t, "A21", testRest)
	compattest.CheckUndisturbed(t, "A22", func(t *testing.T, c *compattest.Cluster) {
		_, source := serve(t, c, "shelf", lamp(t, c).data(t))
		update(t, c, source, func() {
			source.Spec.DisplayName, source.Annotations = "Shelf", map[string]string{"chandlery.dev/note": "x"}
		})
		stays(t, c, source, 15*time.Second)
	})
}

// testRest leaves ten catalogs alone, and then changes one.
func testRest(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	all := severalCatalogs(t, c, 10)
	for _, source := range all {
		if source.Spec.Address == "" {
			settled(c, source)
		}
	}
	end := record(t, c)
	pause.For(t.Context(), c.Rest())
	written := end()
	if len(written) != len(all) {
		t.Fatalf("%d catalogs, want %d", len(written), len(all))
	}
	rested(t, c, written, c.Rest())
	// A change of one catalog writes no other.
	source := all[0]
	end = record(t, c)
	start, held := time.Now(), configMap(c, source.Spec.ConfigMap, nil)
	update(t, c, held, func() { held.Data = oldLamp(t, c).data(t) })
	moves(c, source, connected(source), time.Minute)
	settled(c, source)
	rested(t, c, end(), time.Since(start), source.Name)
}

// severalCatalogs creates up to ten catalogs of all types, and waits until they are READY. The first one has a ConfigMap,
// and the second one polls an image.
func severalCatalogs(t *testing.T, c *compattest.Cluster, n int) []*operatorsv1alpha1.CatalogSource {
	t.Helper()
	tag := bed(t).Images.Address() + "/" + c.Namespace + "/shelf"
	digest, err := images.Push(t.Context(), tag+":v1", compattest.CatalogImage(t, catalogFiles("1.0.0")))
	if err != nil {
		t.Fatal(err)
	}
	ofConfigMap := func(good content) func(*operatorsv1alpha1.CatalogSource) {
		return func(s *operatorsv1alpha1.CatalogSource) {
			c.Make(configMap(c, s.Name, good.data(t)))
			s.Spec.SourceType, s.Spec.ConfigMap = operatorsv1alpha1.SourceTypeInternal, s.Name
		}
	}
	ofImage := func(reference string) func(*operatorsv1alpha1.CatalogSource) {
		return func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Image = reference }
	}
	atAddress := func(start func(testing.TB, ...fakecatalog.Package) *fakecatalog.Server, change ...func(*fakecatalog.Server)) func(*operatorsv1alpha1.CatalogSource) {
		return func(s *operatorsv1alpha1.CatalogSource) {
			server := start(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1.0.0", Version: "1.0.0"}))
			for _, f := range change {
				f(server)
			}
			s.Spec.Address = server.Address()
		}
	}
	withWarning := lamp(t, c)
	withWarning.packages = []any{pkg("LampShade", "main", channel("main", "lamp.v1.1.0"))}
	types := []func(*operatorsv1alpha1.CatalogSource){
		ofConfigMap(lamp(t, c)),
		func(s *operatorsv1alpha1.CatalogSource) {
			ofImage(tag + ":v1")(s)
			s.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{RawInterval: pollInterval.String()}}
		},
		atAddress(fakecatalog.Start),
		atAddress(fakecatalog.Start, func(s *fakecatalog.Server) { s.Announce("") }),
		ofImage(tag + ":v1"),
		func(s *operatorsv1alpha1.CatalogSource) {
			ofConfigMap(lamp(t, c))(s)
			s.Spec.SourceType = operatorsv1alpha1.SourceTypeConfigmap
		},
		ofConfigMap(withWarning),
		ofImage(tag + "@" + digest.String()),
		atAddress(fakecatalog.StartExtended),
		func(s *operatorsv1alpha1.CatalogSource) {
			ofImage(tag + ":v1")(s)
			s.Annotations = map[string]string{api.AnnotationReplicas: "2"}
		},
	}
	var all []*operatorsv1alpha1.CatalogSource
	for i, set := range types[:n] {
		source := &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("shelf-%d", i)},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc},
		}
		set(source)
		c.Make(source)
		all = append(all, source)
	}
	for _, source := range all {
		ready(c, source, compattest.Patience)
	}
	return all
}

// settled waits until a catalog is rolled out.
func settled(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		condition := apimeta.FindStatusCondition(source.Status.Conditions, api.ConditionProgressing)
		if condition == nil || condition.Reason != api.ReasonRolledOut {
			return fmt.Sprintf("Progressing is %+v", condition)
		}
		return ""
	})
}

// The stages of TestSupervisors.
const (
	restarted = iota
	followed
	led
)

// TestSupervisors checks catalogs when supervisors start and stop. No other case runs at the same time.
func TestSupervisors(t *testing.T) {
	standby, kill := compattest.Standby()
	stages := compattest.NewStages(compattest.RestartAfter(20*time.Second), standby, kill)
	stages.Check(t, "A19", testRestart)
	stages.Check(t, "A20", testChangeOfLeader)
	stages.Check(t, "A23-Standby", func(t *testing.T, c *compattest.Cluster, reach func(int)) {
		_, source := serve(t, c, "shelf", lamp(t, c).data(t))
		reach(followed)
		reach(led)
		// The next supervisor becomes the leader when the Lease has expired, and not before this write.
		future := connectsInFuture(t, c, source)
		c.Eventually(40*time.Second, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if connected(source).Equal(future) || connected(source).After(time.Now()) {
				return "lastConnect is " + connected(source).String()
			}
			return unready(source)
		})
		stays(t, c, source, 10*time.Second)
	})
	stages.Check(t, "C28", testWarningAtRest)
	stages.Run()
}

// connectsInFuture writes a lastConnect that is a minute in the future.
func connectsInFuture(t *testing.T, c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource) time.Time {
	t.Helper()
	future := time.Now().Add(time.Minute).Truncate(time.Second)
	c.Eventually(10*time.Second, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		source.Status.GRPCConnectionState.LastConnectTime = metav1.NewTime(future)
		if err := c.Status().Update(t.Context(), source); err != nil {
			return err.Error()
		}
		return ""
	})
	return future
}

// testRestart stops the manager for 20 s.
func testRestart(t *testing.T, c *compattest.Cluster, reach func(int)) {
	t.Helper()
	all := severalCatalogs(t, c, 5)
	before := map[string]time.Time{}
	for _, source := range all {
		c.Read(source)
		before[source.Name] = connected(source)
	}
	end := record(t, c)
	reach(restarted)
	limit := time.Now().Add(30 * time.Second)
	for _, source := range all {
		moves(c, source, before[source.Name], max(time.Second, time.Until(limit)))
	}
	pause.For(t.Context(), 10*time.Second)
	for name, h := range end() {
		if n := h.connections() - 1; n != 1 {
			t.Errorf("lastConnect of %s moved %d times", name, n)
		}
	}
}

// testChangeOfLeader kills the leader while another supervisor follows the catalogs.
func testChangeOfLeader(t *testing.T, c *compattest.Cluster, reach func(int)) {
	t.Helper()
	all := severalCatalogs(t, c, 5)
	reach(followed)
	pause.For(t.Context(), 15*time.Second)
	end := record(t, c)
	reach(led)
	pause.For(t.Context(), time.Minute)
	for name, h := range end() {
		if _, others := h.writes(); len(others) > 1 {
			t.Errorf("%s was written %d times: %s, first %s", name, len(others), c.Manifest(others), c.Manifest(h[0]))
		}
	}
	// The new leader works.
	source := all[0]
	c.Read(source)
	held := configMap(c, source.Spec.ConfigMap, nil)
	update(t, c, held, func() { held.Data = oldLamp(t, c).data(t) })
	moves(c, source, connected(source), compattest.Patience)
}

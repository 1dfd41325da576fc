package suite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/bundlelog"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// bundleLog returns the log in which a node hands over a bundle with one manifest.
func bundleLog(t *testing.T, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", "csv.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var (
		archive bytes.Buffer
		log     strings.Builder
	)
	bundle := image.Bundle()
	if err := bundle.Archive(&archive, root, image.BundleLimits()); err != nil {
		t.Fatal(err)
	}
	if err := bundlelog.Write(&log, archive.Bytes()); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// nodesWith lets nodes hand over bundles with this log.
func nodesWith(log string) func(mgr testenv.Manager) (bundleimage.Nodes, error) {
	return func(mgr testenv.Manager) (bundleimage.Nodes, error) {
		puller := nodepull.New(nodepull.Options{
			Settings: nodepull.Settings{RegistryImage: "chandlery/registry:v1", SetUserID: true},
			Client:   mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{},
			Logs: func(context.Context, types.NamespacedName, string, int64) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(log)), nil
			},
		})
		return bundleimage.Nodes{Puller: puller}, mgr.Add(puller)
	}
}

// lookupOf returns a condition of the only bundle image of the only plan.
func lookupOf(w *world, kind operatorsv1alpha1.BundleLookupConditionType) operatorsv1alpha1.BundleLookupCondition {
	w.T.Helper()
	plans := w.plans()
	if len(plans) != 1 || len(plans[0].Status.BundleLookups) != 1 {
		return operatorsv1alpha1.BundleLookupCondition{}
	}
	return plans[0].Status.BundleLookups[0].GetCondition(kind)
}

// lampIn makes the catalog serve a version whose bundle image is in a registry. It returns the image.
func lampIn(w *world, registry http.HandlerFunc) (reference string) {
	w.T.Helper()
	server := httptest.NewServer(registry)
	w.T.Cleanup(server.Close)
	reference = strings.TrimPrefix(server.URL, "http://") + "/lamp@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	lamp := w.lamp(1)
	entry := &lamp.Channels[0].Entries[0]
	w.pulls.nodes = nodesWith(bundleLog(w.T, entry.Objects[0]))
	entry.Image, entry.Objects = reference, nil
	w.server.Serve(lamp)
	return reference
}

// watchNodePull supervises a Subscription of that version. It returns the pod in which a node pulls the image.
func watchNodePull(w *world) *corev1.Pod {
	w.T.Helper()
	w.Create(w.subscription("my-lamp", "lamp"))
	w.supervise()
	var pods corev1.PodList
	w.Eventually(func() []corev1.Pod {
		if err := w.List(w.T.Context(), &pods, client.InNamespace(w.Namespace)); err != nil {
			w.T.Error(err)
		}
		return pods.Items
	}).Should(gomega.HaveLen(1))
	return &pods.Items[0]
}

// handOver ends the pod in which a node has pulled an image.
func handOver(w *world, pod *corev1.Pod, reference string) {
	w.T.Helper()
	w.ModifyStatus(pod, func() {
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "bundle", Image: reference, ImageID: reference, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}},
		}}
	})
}

// TestNodePullsImage installs a version whose image the supervisor may not pull. The plan shows this at once, and then
// that a node has pulled it.
func TestNodePullsImage(t *testing.T) {
	w := newWorld(t)
	reference := lampIn(w, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
	})
	pod := watchNodePull(w)
	w.EventuallySucceeds(func(g gomega.Gomega) {
		failed, pending := lookupOf(w, operatorsv1alpha1.BundleLookupFailed), lookupOf(w, operatorsv1alpha1.BundleLookupPending)
		g.Expect(failed.Reason).To(gomega.Equal("Unauthorized"))
		g.Expect(pending.Message).To(gomega.Equal("a node pulls " + reference + " in pod " + w.Namespace + "/" + pod.Name))
	})
	w.says("my-lamp", unpacked, "BundleUnpackFailed", "Bundle unpacking failed - Unauthorized: bundle lamp.v1: ")

	handOver(w, pod, reference)
	w.succeed("lamp.v1")
	sub := w.settled("my-lamp", "lamp.v1")
	pulled := lookupOf(w, "PulledByNode")
	if pulled.Status != corev1.ConditionTrue || pulled.Reason != "Unauthorized" || !strings.Contains(pulled.Message, "has pulled the image; the supervisor could not: image ") ||
		lookupOf(w, operatorsv1alpha1.BundleLookupFailed).Status == corev1.ConditionTrue || sub.Status.GetCondition(unpacked).Status == corev1.ConditionTrue {
		t.Errorf("%+v, %+v", pulled, sub.Status.Conditions)
	}
	w.EventuallyGone(pod)
}

// TestCatalogPulledByNodes has an annotation by which only nodes pull the images of the catalog.
func TestCatalogPulledByNodes(t *testing.T) {
	w := newWorld(t)
	w.patch(w.catalog("shop", ""), `{"metadata":{"annotations":{"chandlery.dev/image-pull":"node"}}}`)
	var asked atomic.Int64
	reference := lampIn(w, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	})
	pod := watchNodePull(w)
	handOver(w, pod, reference)
	w.succeed("lamp.v1")
	w.settled("my-lamp", "lamp.v1")
	if pulled := lookupOf(w, "PulledByNode"); pulled.Reason != "NodeOnly" || asked.Load() > 0 {
		t.Errorf("%+v after %d requests to the registry", pulled, asked.Load())
	}
}

// TestClusterImagePolicy has a ClusterImagePolicy of OpenShift whose scope covers the bundle image. Only nodes apply it.
func TestClusterImagePolicy(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int64
	reference := lampIn(w, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	})
	crd := fixtures.CRD("config.openshift.io", "ClusterImagePolicy")
	crd.Name, crd.Spec.Names.Plural, crd.Spec.Scope = "clusterimagepolicies.config.openshift.io", "clusterimagepolicies", apiextensionsv1.ClusterScoped
	w.Create(crd)
	host, _, _ := strings.Cut(reference, "/")
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scopes": []any{"other.example", host}}}}
	policy.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterImagePolicy"})
	policy.SetName(w.Namespace)
	w.Eventually(func() error { return w.Client.Create(t.Context(), policy) }).Should(gomega.Succeed())
	w.pulls.openShift = true

	pod := watchNodePull(w)
	handOver(w, pod, reference)
	w.succeed("lamp.v1")
	w.settled("my-lamp", "lamp.v1")
	want := fmt.Sprintf("node %s has pulled the image; the supervisor could not: image %q: only nodes may pull it by scope %s of ClusterImagePolicy %s",
		pod.Spec.NodeName, reference, host, w.Namespace)
	if pulled := lookupOf(w, "PulledByNode"); pulled.Reason != "PolicyNotSupported" || pulled.Message != want || asked.Load() > 0 {
		t.Errorf("%+v after %d requests to the registry, want %q", pulled, asked.Load(), want)
	}
}

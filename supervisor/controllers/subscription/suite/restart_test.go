package suite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// TestRestartWhileCatalogIsAway restarts the controllers while a catalog is away. They resolve and install a new
// Subscription from the content on disk.
func TestRestartWhileCatalogIsAway(t *testing.T) {
	w := newWorld(t)
	w.contents.dir = t.TempDir()
	images, lamp := newBlockedRegistry(t, ""), w.lamp(1)
	images.push(bundleImage(t, lamp.Channels[0].Entries[0].Objects[0]))
	lamp.Channels[0].Entries[0].Image, lamp.Channels[0].Entries[0].Objects = images.reference, nil
	w.server.Serve(lamp)
	stop := w.supervise()
	w.Eventually(func() ([]string, error) {
		return filepath.Glob(filepath.Join(w.contents.dir, w.Namespace, "*.index"))
	}).Should(gomega.HaveLen(1))
	stop()
	w.server.Stop()

	w.Create(w.subscription("my-lamp", "lamp"))
	begin := time.Now()
	w.supervise()
	w.becomes("my-lamp", func(sub *operatorsv1alpha1.Subscription) bool { return sub.Status.InstallPlanRef != nil })
	t.Logf("resolved %s after the start", time.Since(begin).Round(time.Millisecond))
	w.succeed("lamp.v1")
	w.settled("my-lamp", "lamp.v1")
	w.Eventually(func() (string, error) {
		source := catalogs.NewObject()
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "shop"}, source); err != nil {
			return "", err
		}
		message, _, err := unstructured.NestedString(source.Object, "status", "message")
		return message, err
	}).Should(gomega.ContainSubstring("; using the last known content"))
}

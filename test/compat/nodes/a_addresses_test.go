package nodes_test

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// servedLamp returns package lamp with one version.
func servedLamp(c *compattest.Cluster, name string) fakecatalog.Package {
	return fakecatalog.Simple("lamp", fakecatalog.Entry{Name: name, Version: "1.0.0", Objects: []string{c.Manifest(c.CSV(name))}})
}

// readShelf reads CatalogSource shelf.
func readShelf(t *testing.T, c *compattest.Cluster) *operatorsv1alpha1.CatalogSource {
	t.Helper()
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"}}
	if left := c.Read(source); left != "" {
		t.Fatal(left)
	}
	return source
}

// TestLastConnectOfAddresses checks lastConnect of catalogs by address whose server restarts.
func TestLastConnectOfAddresses(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "A13", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", servedLamp(c, "lamp.v1.0.0"))
		source := readShelf(t, c)
		server.Stop()
		end := time.Now().Add(20 * time.Second)
		c.Eventually(15*time.Second, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if state := source.Status.GRPCConnectionState.LastObservedState; state != "TRANSIENT_FAILURE" && state != "CONNECTING" {
				return "the state is " + state
			}
			return ""
		})
		pause.For(t.Context(), time.Until(end))
		server.Restart()
		moves(c, source, connected(source), 15*time.Second)
	})
	compattest.Check(t, "A14", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", servedLamp(c, "lamp.v1.0.0"))
		source := readShelf(t, c)
		pause.For(t.Context(), time.Second)
		server.Stop()
		server.Restart()
		moves(c, source, connected(source), 15*time.Second)
	})
}

// TestContentOfAddresses checks catalogs by address whose connection stays.
func TestContentOfAddresses(t *testing.T) { //nolint:paralleltest // with OLM, no other case may run beside these
	compattest.CheckUndisturbed(t, "A15", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", servedLamp(c, "lamp.v1.0.0"))
		// OLM may move the time twice for the first connection.
		pause.For(t.Context(), 5*time.Second)
		source := readShelf(t, c)
		server.Serve(servedLamp(c, "lamp.v2.0.0"))
		moves(c, source, connected(source), 15*time.Second)
		current(c, c.Subscribe("shelf", "lamp"), "lamp.v2.0.0", compattest.Patience)
	})
	compattest.CheckUndisturbed(t, "A16", func(t *testing.T, c *compattest.Cluster) {
		server := fakecatalog.Start(t, servedLamp(c, "lamp.v1.0.0"))
		server.Announce("")
		source := &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: server.Address()},
		}
		c.Make(source)
		ready(c, source, compattest.Patience)
		pause.For(t.Context(), 3*time.Second)
		c.AtRest(c.Rest(), source)
	})
}

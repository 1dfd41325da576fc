package compat_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// lampPackage returns package lamp with one version.
func lampPackage(c *compattest.Cluster, name string) fakecatalog.Package {
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

// connectsAgain waits until a catalog is READY and lastConnect is later than before.
func connectsAgain(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, limit time.Duration) {
	before := source.Status.GRPCConnectionState.LastConnectTime
	c.Eventually(limit, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		state := source.Status.GRPCConnectionState
		if state.LastObservedState != "READY" || !state.LastConnectTime.After(before.Time) {
			return "the state is " + state.LastObservedState + ", connected at " + state.LastConnectTime.String()
		}
		return ""
	})
}

// TestLastConnect checks when status.connectionState.lastConnect of a CatalogSource moves.
func TestLastConnect(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "A13", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", lampPackage(c, "lamp.v1.0.0"))
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
		connectsAgain(c, source, 15*time.Second)
	})
	compattest.Check(t, "A14", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", lampPackage(c, "lamp.v1.0.0"))
		source := readShelf(t, c)
		pause.For(t.Context(), time.Second)
		server.Stop()
		server.Restart()
		connectsAgain(c, source, 15*time.Second)
	})
}

// TestLastConnectAlone has the cases that connections of other catalogs disturb: OLM has one time for all catalogs.
func TestLastConnectAlone(t *testing.T) {
	compattest.CheckAlone(t, "A15", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", lampPackage(c, "lamp.v1.0.0"))
		// OLM may move the time twice for the first connection.
		pause.For(t.Context(), 5*time.Second)
		source := readShelf(t, c)
		server.Serve(lampPackage(c, "lamp.v2.0.0"))
		connectsAgain(c, source, 15*time.Second)
		sub := c.Subscribe("shelf", "lamp")
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(sub); left != "" {
				return left
			}
			if sub.Status.CurrentCSV != "lamp.v2.0.0" {
				return "currentCSV is " + sub.Status.CurrentCSV
			}
			return ""
		})
	})
	compattest.CheckAlone(t, "A16", func(t *testing.T, c *compattest.Cluster) {
		server := fakecatalog.Start(t, lampPackage(c, "lamp.v1.0.0"))
		server.Announce("")
		c.Make(&operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: server.Address()},
		})
		source := readShelf(t, c)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" {
				return fmt.Sprintf("the connection is %+v", state)
			}
			return ""
		})
		pause.For(t.Context(), 3*time.Second)
		c.AtRest(c.Rest(), source)
	})
}

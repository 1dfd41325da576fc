package compat_test

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// TestLastConnect checks when status.connectionState.lastConnect of a CatalogSource moves.
func TestLastConnect(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "A13", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1.0.0", Version: "1.0.0", Objects: []string{c.Manifest(c.CSV("lamp.v1.0.0"))}}))
		source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"}}
		c.Read(source)
		before := source.Status.GRPCConnectionState.LastConnectTime
		server.Stop()
		c.Eventually(15*time.Second, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if state := source.Status.GRPCConnectionState.LastObservedState; state == "READY" {
				return "the state is READY"
			}
			return ""
		})
		pause.For(t.Context(), time.Second)
		server.Restart()
		c.Eventually(15*time.Second, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			state := source.Status.GRPCConnectionState
			if state.LastObservedState != "READY" || !state.LastConnectTime.After(before.Time) {
				return "the state is " + state.LastObservedState + ", connected at " + state.LastConnectTime.String()
			}
			return ""
		})
	})
	read := func(t *testing.T, c *compattest.Cluster) *operatorsv1alpha1.CatalogSource {
		t.Helper()
		source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"}}
		if left := c.Read(source); left != "" {
			t.Fatal(left)
		}
		return source
	}
	// moves waits until the catalog is READY and lastConnect is later than before.
	moves := func(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, limit time.Duration) {
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
	simple := func(c *compattest.Cluster, name string) fakecatalog.Package {
		return fakecatalog.Simple("lamp", fakecatalog.Entry{Name: name, Version: "1.0.0", Objects: []string{c.Manifest(c.CSV(name))}})
	}
	compattest.Check(t, "A14", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", simple(c, "lamp.v1.0.0"))
		source := read(t, c)
		pause.For(t.Context(), time.Second)
		server.Stop()
		server.Restart()
		moves(c, source, 15*time.Second)
	})
	compattest.Check(t, "A15", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", simple(c, "lamp.v1.0.0"))
		source := read(t, c)
		pause.For(t.Context(), time.Second)
		server.Serve(simple(c, "lamp.v2.0.0"))
		moves(c, source, 15*time.Second)
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
	compattest.Check(t, "A16", func(t *testing.T, c *compattest.Cluster) {
		server := c.Catalog("shelf", simple(c, "lamp.v1.0.0"))
		server.Announce("")
		source := read(t, c)
		pause.For(t.Context(), 3*time.Second)
		c.AtRest(c.Rest(), source)
	})
}

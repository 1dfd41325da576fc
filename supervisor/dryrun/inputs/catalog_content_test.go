package inputs

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestSilentServer connects to a server that never answers.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const limit = 50 * time.Millisecond
	conn, err := dialWithin(listener.Addr().String(), insecure.NewCredentials(), limit)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	if _, err := catalogs.Read(t.Context(), conn); err == nil || time.Since(start) > connectTimeout {
		t.Errorf("error %v after %s", err, time.Since(start))
	}
}

// TestContents reads catalogs of which one is invalid and one is unreachable.
func TestContents(t *testing.T) {
	t.Parallel()
	server := fakecatalog.Start(t, lampOnServer())
	source := func(name, address string) *operatorsv1alpha1.CatalogSource {
		return &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address},
		}
	}
	sources := []*operatorsv1alpha1.CatalogSource{source("wares", server.Address()), source("dead", "127.0.0.1:1"), source("invalid", "")}
	var c *Cluster
	contents := c.Contents(t.Context(), sources)
	got := map[string][]bool{}
	for key, one := range contents {
		got[key.Name] = []bool{one.Snapshot != nil, one.Err != nil}
	}
	if diff := cmp.Diff(map[string][]bool{"wares": {true, false}, "dead": {false, true}, "invalid": {false, false}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if from := contents[resolution.CatalogKey{Namespace: "olm", Name: "wares"}].From; from != "spec.address "+server.Address() {
		t.Errorf("read from %q", from)
	}
	if diff := cmp.Diff("catalog olm/dead (127.0.0.1:1), catalog olm/wares ("+server.Address()+")", DescribeCatalogs(sources[:2])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

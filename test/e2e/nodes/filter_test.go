package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/failover"
)

// filtered returns a catalog from an image without a program, with a filter.
func filtered(name, image, filter string) *operatorsv1alpha1.CatalogSource {
	source := failover.NewCatalog(name, image, 1)
	if source.Annotations == nil {
		source.Annotations = map[string]string{}
	}
	source.Annotations["chandlery.dev/catalog-filter"] = filter
	source.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{
		ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs", CacheDir: "/tmp/cache"},
	}
	return source
}

// TestFilteredCatalog serves a part of an image, which does not change. Its replicas use the
// image's digest, offer what is selected, and permit installations. The status names a selection
// that the catalog cannot satisfy.
func TestFilteredCatalog(t *testing.T) {
	t.Parallel()
	s := scene(t)
	image := pushCatalog(t, s, "filtered:v1", contentOnly)
	part := filtered("part", image, "{packages: [{name: "+samplePackage+"}]}")
	create(t, s, part, filtered("candles", image, "{packages: [{name: candle}]}"))
	installed := subscribe(t, s, "from-part", "part")
	must(t, s.Ready(t.Context(), "part"))
	if packages := packagesOf(t, s, "part"); !slices.Equal(packages, []string{samplePackage}) {
		t.Errorf("offered are %v", packages)
	}
	source, err := s.Source(t.Context(), "part")
	must(t, err)
	if said := fmt.Sprint(source.Status.Conditions); !strings.Contains(said, "filtered by annotation") || !strings.Contains(said, "@sha256:") {
		t.Errorf("conditions: %s", said)
	}
	installed(t)
	must(t, failover.Eventually(t.Context(), "the status to name the package that is not there", func(ctx context.Context) string {
		source, err := s.Source(ctx, "candles")
		if err != nil {
			return err.Error()
		}
		for _, text := range []string{`package "candle": the selection: the catalog has no such package`, "chandlery.dev/catalog-filter"} {
			if !strings.Contains(source.Status.Message, text) {
				return source.Status.Message
			}
		}
		return ""
	}))
}

// packagesOf returns the packages of a catalog, from one of its replicas.
func packagesOf(t *testing.T, s *failover.Scene, name string) []string {
	t.Helper()
	var pods corev1.PodList
	must(t, s.Client.List(t.Context(), &pods, client.InNamespace(failover.CatalogNamespace), client.MatchingLabels{"olm.catalogSource": name}))
	if len(pods.Items) == 0 {
		t.Fatalf("catalog %s has no replica", name)
	}
	conn, err := grpc.NewClient(pods.Items[0].Status.PodIP+":50051", grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	stream, err := api.NewRegistryClient(conn).ListPackages(t.Context(), &api.ListPackageRequest{})
	must(t, err)
	var names []string
	for {
		one, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return names
		}
		must(t, err)
		names = append(names, one.GetName())
	}
}

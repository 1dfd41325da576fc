package catalogs

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/proto/api"
)

// inlineClient is a catalog whose bundles all have one manifest.
type inlineClient struct {
	api.RegistryClient

	manifest string
}

func (c inlineClient) GetBundle(context.Context, *api.GetBundleRequest, ...grpc.CallOption) (*api.Bundle, error) {
	return &api.Bundle{CsvName: "lamp.v1", PackageName: "lamp", Object: []string{c.manifest}}, nil
}

// TestHugeManifestsAreRefused reads a manifest of many values, which would need far more memory than its text.
func TestHugeManifestsAreRefused(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		`{"kind":"ConfigMap"}`: "",
		`{"a":[` + strings.Repeat("{},", 400_000) + `{}]}`: "bundle lamp.v1 of package lamp of catalog olm/shop is too large: " +
			"manifest 1 of 1 may hold 800003 values, at most 400000 are allowed",
	} {
		got := ""
		request := &api.GetBundleRequest{PkgName: "lamp", ChannelName: "stable", CsvName: "lamp.v1"}
		if _, err := fetchBundle(t.Context(), inlineClient{manifest: manifest}, types.NamespacedName{Namespace: "olm", Name: "shop"}, request); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d bytes: %q, want %q", len(manifest), got, want)
		}
	}
}

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/examples"
	"github.com/chandlery/chandlery/proto/api"
)

// fakeRegistry is a catalog with one package.
type fakeRegistry struct {
	api.UnimplementedRegistryServer

	csv string
}

func (*fakeRegistry) ListPackages(_ *api.ListPackageRequest, stream grpc.ServerStreamingServer[api.PackageName]) error {
	return stream.Send(&api.PackageName{Name: "lantern"})
}

func (*fakeRegistry) GetPackage(_ context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	if r.GetName() != "lantern" {
		return nil, status.Error(codes.NotFound, "unknown")
	}
	return &api.Package{Name: "lantern", DefaultChannelName: "stable", Channels: []*api.Channel{
		{Name: "fast", CsvName: "lantern.v2"}, {Name: "stable", CsvName: "lantern.v1"},
	}}, nil
}

func (f *fakeRegistry) GetBundle(_ context.Context, r *api.GetBundleRequest) (*api.Bundle, error) {
	return &api.Bundle{CsvName: r.GetCsvName(), CsvJson: f.csv}, nil
}

// serve runs the fake until the test ends and returns a connection to it.
func serve(t *testing.T, f *fakeRegistry) *grpc.ClientConn {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, f)
	healthv1.RegisterHealthServer(server, health.NewServer())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	conn, err := dial(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func TestFind(t *testing.T) {
	t.Parallel()
	const own = `{"spec":{"installModes":[{"type":"OwnNamespace","supported":true},{"type":"AllNamespaces","supported":true}]}}`
	const all = `{"spec":{"installModes":[{"type":"OwnNamespace","supported":false},{"type":"AllNamespaces","supported":true}]}}`
	cases := map[string]struct {
		reason       string
		pkg, channel string
		csv          string
		want         target
		err          string
	}{
		"DefaultChannel": {"the package says which channel", "lantern", "", own, target{"lantern", "stable", "lantern.v1", false}, ""},
		"GivenChannel":   {"the flag says which channel", "lantern", "fast", all, target{"lantern", "fast", "lantern.v2", true}, ""},
		"NoPackage":      {"the error lists what there is", "lamp", "", own, target{}, "the catalog has: lantern"},
		"NoChannel":      {"the error lists what there is", "lantern", "slow", own, target{}, "fast, stable"},
		"NoManifests":    {"image references cannot be followed", "lantern", "", "", target{}, "inline"},
		"NotJSON":        {"the manifest is damaged", "lantern", "", "{", target{}, "lantern.v1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := serve(t, &fakeRegistry{csv: tc.csv})
			if err := serving(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			got, err := find(t.Context(), conn, tc.pkg, tc.channel)
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s: find = %v, want an error with %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWriteSample(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "catalog")
	for count, want := range map[int]int{1: 1, 2: 2, 3: 3, 9: 3} {
		if err := writeSample(dir, examples.Bundles(), count); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil || len(files) != 2 {
			t.Errorf("writing %d versions leaves %v, %v, want one file for each package", count, files, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "lantern", "catalog.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), "schema: olm.bundle\n"); got != want {
			t.Errorf("writing %d versions gives %d bundles, want %d", count, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	many := strings.Fields("a b c d e f g h i j k l")
	for n, want := range map[int]string{0: "", 2: "a, b", 10: "a, b, c, d, e, f, g, h, i, j", 12: "a, b, c, d, e, f, g, h, i, j and 2 more"} {
		if got := shorten(many[:n]); got != want {
			t.Errorf("shorten(%d names) = %q, want %q", n, got, want)
		}
	}
}

func TestNamespaceOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 57) + "-" + strings.Repeat("b", 20)
	for pkg, want := range map[string]string{
		"lantern":   "demo-lantern",
		"a.B":       "demo-a-b",
		long:        "demo-" + strings.Repeat("a", 57),
		"with-dash": "demo-with-dash",
	} {
		if got := namespaceOf(pkg); got != want {
			t.Errorf("namespaceOf(%s) = %s, want %s", pkg, got, want)
		}
	}
}

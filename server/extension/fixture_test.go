package extension

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/test/bufconn"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/server/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample has a package with all fields and one with few.
const sample = `
{schema: olm.package, name: lamp, defaultChannel: stable, description: Lights the *house*.}
---
schema: olm.channel
package: lamp
name: stable
entries:
- {name: lamp.v2.0.0, replaces: lamp.v1.0.0, skips: [lamp.v1.5.0], skipRange: "<2.0.0"}
- {name: lamp.v1.0.0}
---
{schema: olm.channel, package: lamp, name: candidate, entries: [{name: lamp.v2.0.0}, {name: lamp.v3.0.0-rc1, replaces: lamp.v2.0.0}]}
---
schema: olm.deprecations
package: lamp
entries:
- {reference: {schema: olm.channel, name: candidate}, message: use stable}
- {reference: {schema: olm.bundle, name: lamp.v1.0.0}, message: use lamp.v2.0.0}
---
schema: olm.bundle
package: lamp
name: lamp.v1.0.0
properties:
- {type: olm.package, value: {packageName: lamp, version: 1.0.0}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0=}}
---
schema: olm.bundle
package: lamp
name: lamp.v2.0.0
image: example.com/lamp:v2
properties:
- {type: olm.package, value: {packageName: lamp, version: 2.0.0}}
- {type: olm.gvk, value: {group: lamps.example.com, version: v1, kind: Lamp}}
- {type: olm.gvk.required, value: {group: example.com, version: v1, kind: Socket}}
- {type: olm.package.required, value: {packageName: torch, versionRange: ">=0.1.0"}}
- type: olm.csv.metadata
  value:
    displayName: Bright Lamp
    keywords: [light, bulb]
    provider: {name: Lamp Makers}
    annotations: {categories: "Home, Lighting"}
---
schema: olm.bundle
package: lamp
name: lamp.v3.0.0-rc1
image: example.com/lamp:v3
properties:
- {type: olm.package, value: {packageName: lamp, version: 3.0.0-rc1}}
- {type: olm.gvk, value: {group: lamps.example.com, version: v1, kind: Lamp}}
---
{schema: olm.package, name: torch, defaultChannel: main}
---
{schema: olm.channel, package: torch, name: main, entries: [{name: torch.v0.1.0}]}
---
{schema: olm.deprecations, package: torch, entries: [{reference: {schema: olm.package}, message: use a lamp}]}
---
schema: olm.bundle
package: torch
name: torch.v0.1.0
image: example.com/torch:v0
properties:
- {type: olm.package, value: {packageName: torch, version: 0.1.0}}
- {type: olm.csv.metadata, value: {displayName: Torch, description: A light to carry about.}}
`

func build(tb testing.TB, text string) *index.Index {
	tb.Helper()
	catalog, err := fbc.Load(tb.Context(), fstest.MapFS{"catalog": {Data: []byte(text)}}, fbc.Options{})
	if err == nil {
		err = catalog.Validate()
	}
	if err != nil {
		tb.Fatal(err)
	}
	x, err := index.Build(tb.Context(), catalog)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// fixture is a running service with connected clients.
type fixture struct {
	registryv1.RegistryServiceClient
	Announcer

	frozen  api.RegistryClient
	conn    *grpc.ClientConn
	service *Service
	server  *grpc.Server
	current atomic.Pointer[index.Index]
}

var loadedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// serve makes the service answer from an index.
func (f *fixture) serve(x *index.Index) {
	f.current.Store(x)
	f.Loaded(x.Info(), loadedAt)
}

// start runs a service without content.
func start(tb testing.TB) *fixture {
	tb.Helper()
	f := &fixture{}
	f.service = New(Config{Current: f.current.Load, Content: &f.Announcer, Version: "v1.2.3", Commit: "abc"})
	f.server = grpc.NewServer(grpc.ForceServerCodecV2(registry.Codec()))
	Register(f.server, f.service)
	registry.Register(f.server, registry.New(f.current.Load, func(_ *index.Index, err error) { tb.Error(err) }))
	reflection.Register(f.server)
	listener := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- f.server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	f.conn, f.RegistryServiceClient, f.frozen = conn, registryv1.NewRegistryServiceClient(conn), api.NewRegistryClient(conn)
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Error(err)
		}
		f.server.Stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	return f
}

// startServing runs a service with a catalog.
func startServing(tb testing.TB, text string) *fixture {
	tb.Helper()
	f := start(tb)
	f.serve(build(tb, text))
	return f
}

// lines joins a list into one text, which makes differences easy to see.
func lines(list []string) string { return strings.Join(list, "\n") }

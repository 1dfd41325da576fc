package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/examples"
	"github.com/chandlery/chandlery/proto/api"
)

// largestReply bounds the replies of the registry. Real bundles exceed gRPC's default of four megabytes.
const largestReply = 256 << 20

// target is the operator that is installed from a catalog.
type target struct {
	pkg, channel string
	// csv is the head of the channel.
	csv string
	// allNamespaces is set if the operator cannot watch only its own namespace.
	allNamespaces bool
}

// dial connects to the registry.
func dial(address string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestReply)))
	if err != nil {
		return nil, fmt.Errorf("connecting to the registry at %s: %w", address, err)
	}
	return conn, nil
}

// serving waits until the registry serves.
func serving(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("watching the registry's health: %w", errors.Join(err, context.Cause(ctx)))
	}
	for {
		reply, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("watching the registry's health: %w", errors.Join(err, context.Cause(ctx)))
		}
		if reply.GetStatus() == healthv1.HealthCheckResponse_SERVING {
			return nil
		}
	}
}

// find finds a package in the catalog. An empty channel means its default channel.
func find(ctx context.Context, conn *grpc.ClientConn, pkg, channel string) (target, error) {
	registry := api.NewRegistryClient(conn)
	found, err := registry.GetPackage(ctx, &api.GetPackageRequest{Name: pkg})
	if err != nil {
		return target{}, fmt.Errorf("looking up package %q (the catalog has: %s): %w", pkg, available(ctx, registry), err)
	}
	if channel == "" {
		channel = found.GetDefaultChannelName()
	}
	i := slices.IndexFunc(found.GetChannels(), func(c *api.Channel) bool { return c.GetName() == channel })
	if i < 0 {
		return target{}, fmt.Errorf("package %q has no channel %q: give --channel one of %s", pkg, channel, channels(found))
	}
	head := found.GetChannels()[i].GetCsvName()
	bundle, err := registry.GetBundle(ctx, &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: head})
	if err != nil {
		return target{}, fmt.Errorf("looking up bundle %s of channel %s of package %s: %w", head, channel, pkg, err)
	}
	all, err := onlyAllNamespaces([]byte(bundle.GetCsvJson()))
	if err != nil {
		return target{}, fmt.Errorf("bundle %s: %w", head, err)
	}
	return target{pkg: pkg, channel: channel, csv: head, allNamespaces: all}, nil
}

// available lists the packages of the catalog for a message, or returns the error.
func available(ctx context.Context, registry api.RegistryClient) string {
	stream, err := registry.ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return err.Error()
	}
	var found []string
	for {
		name, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return shorten(found)
		}
		if err != nil {
			return err.Error()
		}
		found = append(found, name.GetName())
	}
}

// shorten lists names for a message. It shortens a long list to the first few names and the number.
func shorten(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func channels(p *api.Package) string {
	found := make([]string, 0, len(p.GetChannels()))
	for _, c := range p.GetChannels() {
		found = append(found, c.GetName())
	}
	return strings.Join(found, ", ")
}

// onlyAllNamespaces reports whether the operator of a ClusterServiceVersion cannot be installed for
// its own namespace alone.
func onlyAllNamespaces(csv []byte) (bool, error) {
	var c struct {
		Spec struct {
			InstallModes []operatorsv1alpha1.InstallMode `json:"installModes"`
		} `json:"spec"`
	}
	if len(csv) == 0 {
		return false, errors.New("the catalog holds no manifests for it, and the demo needs them inline (olm.bundle.object)")
	}
	if err := json.Unmarshal(csv, &c); err != nil {
		return false, fmt.Errorf("reading its ClusterServiceVersion: %w", err)
	}
	supports := func(t operatorsv1alpha1.InstallModeType) bool {
		return slices.Contains(c.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: t, Supported: true})
	}
	return !supports(operatorsv1alpha1.InstallModeTypeOwnNamespace) && supports(operatorsv1alpha1.InstallModeTypeAllNamespaces), nil
}

// writeSample writes the sample catalog to the folder with only the first versions of each package,
// at most count. It replaces each file atomically, so the registry never reads a partial one.
func writeSample(dir string, tree fs.FS, count int) error {
	packages, err := examples.Packages(tree)
	if err != nil {
		return err
	}
	for _, pkg := range packages {
		versions, err := examples.Versions(tree, pkg)
		if err != nil {
			return err
		}
		text, err := examples.Render(tree, pkg, versions[:min(count, len(versions))])
		if err != nil {
			return err
		}
		folder := filepath.Join(dir, pkg)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("writing the sample catalog: %w", err)
		}
		draft := dir + "." + pkg + ".draft" // beside the catalog, so it is not part of the content
		if err := os.WriteFile(draft, text, 0o644); err != nil {
			return fmt.Errorf("writing the sample catalog: %w", err)
		}
		if err := os.Rename(draft, filepath.Join(folder, "catalog.yaml")); err != nil {
			return fmt.Errorf("writing the sample catalog: %w", err)
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/proto/api"
)

const mib = 1 << 20

// Targets for the private memory of the registry.
const (
	restTarget  = 15 * mib
	queryTarget = 30 * mib
)

// memoryCase is a server whose memory is measured.
type memoryCase struct {
	name   string
	launch launch
	// judged is set if the targets apply to the server.
	judged bool
}

// memorySection measures the memory of servers.
type memorySection struct{ *bench }

// run measures memory at rest, during the start and under load.
func (b memorySection) run(ctx context.Context) error {
	table := b.report.add("Memory", "Private memory is RssAnon, mapped pages of files are RssFile, the peak of both is VmHWM. Queries are OLM's: two "+
		"catalog-operators (ListBundles, and a GetPackage for each package) and two packageservers "+
		"(every GetPackage and GetBundleForChannel at once).",
		"Server", "Content", "Starting: private", "peak", "At rest: private", "mapped", "proportional", "Queries: private", "mapped", "peak")
	cases, err := b.cases(ctx)
	if err != nil {
		return err
	}
	for _, c := range cases {
		b.sayf("memory of %s, %s", c.launch.name, c.name)
		f, err := b.figures(ctx, c.launch)
		if err != nil {
			b.sayf("%v", err)
			table.row(c.launch.name, c.name, firstLine([]byte(err.Error())))
			continue
		}
		table.row(c.launch.name, c.name, bytesText(f.start.private), bytesText(f.start.peak),
			bytesText(f.rest.private), bytesText(f.rest.mapped), bytesText(f.rest.proportional),
			bytesText(f.busy.private), bytesText(f.busy.mapped), bytesText(f.busy.peak))
		if c.judged {
			b.report.atMost("private memory at rest, "+c.name, f.rest.private, restTarget, bytesText)
			b.report.atMost("private memory under queries, "+c.name, f.busy.private, queryTarget, bytesText)
			b.report.atMost("private memory while starting, "+c.name, f.start.private, limitBytes, bytesText)
		}
	}
	return nil
}

func (b memorySection) cases(ctx context.Context) ([]memoryCase, error) {
	large, err := derivedCatalogs(b).multiplied(ctx)
	if err != nil {
		return nil, err
	}
	larger := fmt.Sprintf(", %d times the catalog", b.copies)
	cases := []memoryCase{
		{"directory", b.registryLaunch(b.catalog), true},
		{"directory" + larger, b.registryLaunch(large), true},
	}
	if b.index != "" {
		file, err := b.buildIndex(ctx, large, "catalog-large.index")
		if err != nil {
			return nil, err
		}
		cases = append(cases,
			memoryCase{"index file", b.registryLaunch(b.index), true},
			memoryCase{"index file" + larger, b.registryLaunch(file), true})
	}
	if b.peerRounds == 0 {
		return cases, nil
	}
	cache, err := peerCaches(b).standard(ctx)
	if err != nil {
		return nil, err
	}
	return append(cases,
		memoryCase{"directory", b.opmLaunch(b.catalog), false},
		memoryCase{"directory and pogreb cache", b.opmLaunch(b.catalog, "--cache-dir="+cache), false}), nil
}

// memoryFigures are the figures of the three phases.
type memoryFigures struct {
	start, rest, busy usage
}

func (b memorySection) figures(ctx context.Context, l launch) (f memoryFigures, err error) {
	s, began, err := b.spawn(ctx, l)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	w := watch(ctx, s.PID())
	err = s.awaitServing(ctx, began)
	f.start = w.stop()
	if err != nil {
		return f, err
	}
	if err := b.pause(ctx); err != nil {
		return f, err
	}
	if f.rest, err = memoryOf(s.PID()); err != nil {
		return f, err
	}
	w = watch(ctx, s.PID())
	err = queryAsOLM(ctx, s.address)
	f.busy = w.stop()
	return f, err
}

// clients is the number of concurrent clients of each kind.
const clients = 2

// queryAsOLM makes the calls of OLM's catalog operator and package server for a new catalog, with
// two clients of each kind.
func queryAsOLM(ctx context.Context, address string) error {
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error { return withClient(address, func(c api.RegistryClient) error { return snapshot(ctx, c) }) })
		group.Go(func() error { return withClient(address, func(c api.RegistryClient) error { return refresh(ctx, c) }) })
	}
	return group.Wait()
}

func withClient(address string, do func(api.RegistryClient) error) error {
	conn, err := dial(address)
	if err != nil {
		return err
	}
	return errors.Join(do(api.NewRegistryClient(conn)), conn.Close())
}

// snapshot makes the calls of the catalog operator: ListBundles, and GetPackage when a package first occurs.
func snapshot(ctx context.Context, client api.RegistryClient) error {
	seen := map[string]bool{}
	var failed error
	bundles, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err := each(bundles, err, func(m *api.Bundle) {
		if name := m.GetPackageName(); failed == nil && !seen[name] {
			seen[name] = true
			_, failed = client.GetPackage(ctx, &api.GetPackageRequest{Name: name})
		}
	}); err != nil || failed != nil {
		return fmt.Errorf("asking as the catalog operator: %w", errors.Join(err, failed))
	}
	return nil
}

// refresh makes the calls of the package server: for all packages and their channels at once.
func refresh(ctx context.Context, client api.RegistryClient) error {
	bundles, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err := each(bundles, err, func(*api.Bundle) {}); err != nil {
		return fmt.Errorf("asking as the package server: %w", err)
	}
	var names []string
	packages, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	if err := each(packages, err, func(p *api.PackageName) { names = append(names, p.GetName()) }); err != nil {
		return fmt.Errorf("asking as the package server: %w", err)
	}
	slices.Sort(names)
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: name}, grpc.WaitForReady(true))
			if err != nil {
				return fmt.Errorf("asking as the package server: %w", err)
			}
			for _, channel := range p.GetChannels() {
				group.Go(func() error {
					//nolint:staticcheck // deprecated, and what the package server uses
					_, err := client.GetBundleForChannel(ctx, &api.GetBundleInChannelRequest{PkgName: name, ChannelName: channel.GetName()})
					return err
				})
			}
			return nil
		})
	}
	return group.Wait()
}

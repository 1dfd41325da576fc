package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/bundles/outline/contract"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/proto/api"
)

// query sends a query to one server and prints the answer.
type query struct {
	printer

	conn     *grpc.ClientConn
	terminal io.Writer
	quiet    bool
	latest   bool
}

// parallel is the number of concurrent calls for packages.
const parallel = 8

// outline reads the packages of a server, and its bundles if requested.
func (q *query) outline(ctx context.Context, bundlesToo bool) (*outline.Catalog, error) {
	done := progress.Start(q.terminal, q.quiet, "Asking for everything")
	defer done()
	client := api.NewRegistryClient(q.conn)
	names, err := receive(func() (grpc.ServerStreamingClient[api.PackageName], error) {
		return client.ListPackages(ctx, &api.ListPackageRequest{})
	})
	if err != nil {
		return nil, err
	}
	packages := make([]*api.Package, len(names))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() error {
			var err error
			packages[i], err = client.GetPackage(groupCtx, &api.GetPackageRequest{Name: name.GetName()})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	b := contract.NewBuilder(packages)
	if !bundlesToo {
		return b.Catalog(), nil
	}
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, err
	}
	for {
		bundle, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b.Catalog(), nil
		}
		if err != nil {
			return nil, err
		}
		b.Add(bundle)
	}
}

// receive returns all messages of a stream.
func receive[M any](open func() (grpc.ServerStreamingClient[M], error)) ([]*M, error) {
	stream, err := open()
	if err != nil {
		return nil, err
	}
	var out []*M
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, message)
	}
}

// tabulated prints a table of the catalog of a server, or of one of its packages.
func (q *query) tabulated(ctx context.Context, args []string, tabulate func(*outline.Catalog) *table) error {
	catalog, err := q.outline(ctx, true)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if catalog, err = filterCatalog(catalog, args[0], ""); err != nil {
			return err
		}
	}
	return tabulate(catalog).printAs(q.out, q.form)
}

func (q *query) packages(ctx context.Context, args []string) error {
	return q.tabulated(ctx, args, packagesTable)
}

func (q *query) channels(ctx context.Context, args []string) error {
	return q.tabulated(ctx, args, channelsTable)
}

func (q *query) bundles(ctx context.Context, args []string) error {
	return q.tabulated(ctx, args, bundlesTable)
}

func (q *query) graph(ctx context.Context, args []string) error {
	catalog, err := q.outline(ctx, true)
	if err != nil {
		return err
	}
	if catalog, err = filterCatalog(catalog, args[0], ""); err != nil {
		return err
	}
	form := q.form
	if form == "table" || form == "wide" || form == "name" {
		form = "mermaid"
	}
	return draw(q.out, form, catalog.Packages[0])
}

// onePackage reads one package.
func (q *query) onePackage(ctx context.Context, args []string) error {
	p, err := api.NewRegistryClient(q.conn).GetPackage(ctx, &api.GetPackageRequest{Name: args[0]})
	if err != nil {
		return err
	}
	type channel struct {
		Name        string `json:"name"`
		Default     bool   `json:"default"`
		Head        string `json:"head"`
		Deprecation string `json:"deprecation,omitempty"`
	}
	t := &table{columns: []string{"CHANNEL", "DEFAULT", "HEAD", "DEPRECATED", "MESSAGE"}, wide: 4}
	rows := []channel{}
	for _, ch := range p.GetChannels() {
		row := channel{
			Name: ch.GetName(), Default: ch.GetName() == p.GetDefaultChannelName(), Head: ch.GetCsvName(),
			Deprecation: ch.GetDeprecation().GetMessage(),
		}
		standard := ""
		if row.Default {
			standard = "yes"
		}
		rows = append(rows, row)
		t.add(row.Name, row.Name, standard, row.Head, mark(row.Deprecation), row.Deprecation)
	}
	t.value = struct {
		Name           string    `json:"name"`
		DefaultChannel string    `json:"defaultChannel"`
		Deprecation    string    `json:"deprecation,omitempty"`
		Channels       []channel `json:"channels"`
	}{p.GetName(), p.GetDefaultChannelName(), p.GetDeprecation().GetMessage(), rows}
	if err := t.printAs(q.out, q.form); err != nil {
		return err
	}
	if text := p.GetDeprecation().GetMessage(); text != "" && (q.form == "table" || q.form == "wide") {
		fmt.Fprintf(q.out, "The package is deprecated: %s\n", bundles.OneLine(text))
	}
	return nil
}

// bundleValue is a bundle in the machine-readable output.
type bundleValue struct {
	Name        string             `json:"name"`
	Package     string             `json:"package"`
	Channel     string             `json:"channel"`
	Version     string             `json:"version"`
	Image       string             `json:"image,omitempty"`
	SkipRange   string             `json:"skipRange,omitempty"`
	Deprecation string             `json:"deprecation,omitempty"`
	Provides    []bundles.GVK      `json:"provides,omitempty"`
	Requires    []bundles.GVK      `json:"requires,omitempty"`
	Properties  []bundles.Property `json:"properties,omitempty"`
	// CSV and Objects are the manifests. A manifest that is not JSON is a string.
	CSV     json.RawMessage   `json:"csv,omitempty"`
	Objects []json.RawMessage `json:"objects,omitempty"`
}

func newBundleValue(b *api.Bundle) bundleValue {
	out := bundleValue{
		Name: b.GetCsvName(), Package: b.GetPackageName(), Channel: b.GetChannelName(), Version: b.GetVersion(),
		Image: b.GetBundlePath(), SkipRange: b.GetSkipRange(), Deprecation: b.GetDeprecation().GetMessage(),
		Provides: gvks(b.GetProvidedApis()), Requires: gvks(b.GetRequiredApis()),
	}
	for _, p := range b.GetProperties() {
		out.Properties = append(out.Properties, bundles.Property{Type: p.GetType(), Value: rawJSON(p.GetValue())})
	}
	if b.GetCsvJson() != "" {
		out.CSV = rawJSON(b.GetCsvJson())
	}
	for _, object := range b.GetObject() {
		out.Objects = append(out.Objects, rawJSON(object))
	}
	return out
}

func gvks(in []*api.GroupVersionKind) []bundles.GVK {
	var out []bundles.GVK
	for _, gvk := range in {
		out = append(out, bundles.GVK{Group: gvk.GetGroup(), Version: gvk.GetVersion(), Kind: gvk.GetKind()})
	}
	return out
}

// rawJSON returns a JSON text unchanged, and any other text as a string.
func rawJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return quoted
}

func (q *query) bundle(ctx context.Context, args []string) error {
	client := api.NewRegistryClient(q.conn)
	var (
		b   *api.Bundle
		err error
	)
	if len(args) == 3 {
		b, err = client.GetBundle(ctx, &api.GetBundleRequest{PkgName: args[0], ChannelName: args[1], CsvName: args[2]})
	} else {
		//nolint:staticcheck // it is deprecated and what every server and client uses
		b, err = client.GetBundleForChannel(ctx, &api.GetBundleInChannelRequest{PkgName: args[0], ChannelName: args[1]})
	}
	if err != nil {
		return err
	}
	value := newBundleValue(b)
	switch q.form {
	case "name":
		fmt.Fprintln(q.out, bundles.OneLine(value.Name))
		return nil
	case "table", "wide":
		return describeBundle(q.out, value, q.form == "wide")
	default:
		return inspect.PrintValue(q.out, q.form, value)
	}
}

// describeBundle prints a bundle in the human-readable format.
func describeBundle(out io.Writer, b bundleValue, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, bundles.OneLine(text))
		}
	}
	line("Name", b.Name)
	line("Version", b.Version)
	line("Package", b.Package)
	line("Channel", b.Channel)
	line("Deprecated", b.Deprecation)
	line("Image", b.Image)
	line("Skip range", b.SkipRange)
	var csv struct {
		Spec struct {
			DisplayName string `json:"displayName"`
			Provider    struct {
				Name string `json:"name"`
			} `json:"provider"`
			MinKubeVersion string `json:"minKubeVersion"`
		} `json:"spec"`
	}
	// A bundle without these fields has no such lines.
	_ = json.Unmarshal(b.CSV, &csv)
	line("Display name", csv.Spec.DisplayName)
	line("Provider", csv.Spec.Provider.Name)
	line("Kubernetes", csv.Spec.MinKubeVersion)
	for _, gvk := range b.Provides {
		line("Provides", gvk.String())
	}
	for _, gvk := range b.Requires {
		line("Requires", gvk.String())
	}
	line("Manifests", fmt.Sprintf("%s, ClusterServiceVersion of %d bytes", bundles.Count(len(b.Objects), "object"), len(b.CSV)))
	for _, p := range b.Properties {
		if wide {
			line("Property", p.Type+" "+string(p.Value))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

var errBadAPI = errors.New("write an API as GROUP/VERSION/KIND, as in apps/v1/Deployment")

// parseAPI parses group, version and kind. The group may be empty.
func parseAPI(text string) (bundles.GVK, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return bundles.GVK{}, fmt.Errorf("%w, found %q", errBadAPI, text)
	}
	return bundles.GVK{Group: parts[0], Version: parts[1], Kind: parts[2]}, nil
}

func (q *query) providers(ctx context.Context, args []string) error {
	gvk, err := parseAPI(args[0])
	if err != nil {
		return err
	}
	client := api.NewRegistryClient(q.conn)
	entries, err := receive(func() (grpc.ServerStreamingClient[api.ChannelEntry], error) {
		if q.latest {
			return client.GetLatestChannelEntriesThatProvide(ctx, &api.GetLatestProvidersRequest{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
		}
		return client.GetChannelEntriesThatProvide(ctx, &api.GetAllProvidersRequest{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
	})
	if err != nil {
		return err
	}
	return entriesTable(entries).printAs(q.out, q.form)
}

func (q *query) replaces(ctx context.Context, args []string) error {
	entries, err := receive(func() (grpc.ServerStreamingClient[api.ChannelEntry], error) {
		return api.NewRegistryClient(q.conn).GetChannelEntriesThatReplace(ctx, &api.GetAllReplacementsRequest{CsvName: args[0]})
	})
	if err != nil {
		return err
	}
	return entriesTable(entries).printAs(q.out, q.form)
}

// entriesTable returns a table of sorted entries of channels.
func entriesTable(in []*api.ChannelEntry) *table {
	type entry struct {
		Package  string `json:"package"`
		Channel  string `json:"channel"`
		Bundle   string `json:"bundle"`
		Replaces string `json:"replaces,omitempty"`
	}
	rows := []entry{}
	for _, e := range in {
		rows = append(rows, entry{e.GetPackageName(), e.GetChannelName(), e.GetBundleName(), e.GetReplaces()})
	}
	slices.SortFunc(rows, func(a, b entry) int {
		return slices.Compare([]string{a.Package, a.Channel, a.Bundle, a.Replaces}, []string{b.Package, b.Channel, b.Bundle, b.Replaces})
	})
	t := &table{columns: []string{"PACKAGE", "CHANNEL", "BUNDLE", "REPLACES"}, wide: 4, value: rows}
	for _, row := range rows {
		t.add(row.Package+"/"+row.Bundle, row.Package, row.Channel, row.Bundle, row.Replaces)
	}
	t.names = slices.Compact(t.names)
	return t
}

func (q *query) health(ctx context.Context, args []string) error {
	request := &healthpb.HealthCheckRequest{}
	if len(args) > 0 {
		request.Service = args[0]
	}
	reply, err := healthpb.NewHealthClient(q.conn).Check(ctx, request)
	if err != nil {
		return err
	}
	state := reply.GetStatus().String()
	switch q.form {
	case "json", "yaml":
		err = inspect.PrintValue(q.out, q.form, map[string]string{"status": state})
	default:
		_, err = fmt.Fprintln(q.out, state)
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return exitcode.ErrFound()
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
)

// listOptions are the flags of "registry list".
type listOptions struct {
	read    readOptions
	output  string
	channel string
}

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List packages, channels or bundles of a catalog",
		Long:  "List the packages, channels or bundles of a catalog, sorted.\n\n" + sourceHelp,
		Example: "  registry list packages ./catalog\n" +
			"  registry list channels ./catalog lantern -o wide\n" +
			"  registry list bundles oci:registry.example.org/catalog:latest lantern --channel stable -o name",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newListOf("packages", "List packages, with the heads of their default channels", packagesTable),
		newListOf("channels", "List channels, with their heads", channelsTable),
		newListOf("bundles", "List bundles; for each package, the highest version comes first", bundlesTable),
	)
	return cmd
}

// newListOf returns a command that prints one kind of object.
func newListOf(what, short string, tabulate func(*outline.Catalog) *table) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:               what + " SOURCE [PACKAGE]",
		Short:             short,
		Long:              short + ".\n\n" + sourceHelp,
		Args:              between(1, 2),
		ValidArgsFunction: o.read.completePackages(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := inspect.CheckOutput(cmd, o.output); err != nil {
				return err
			}
			catalog, err := o.read.outline(cmd.Context(), cmd.ErrOrStderr(), args[0], outline.Options{})
			if err != nil {
				return fmt.Errorf("listing %s: %w", what, err)
			}
			pkg := ""
			if len(args) == 2 {
				pkg = args[1]
			}
			catalog, err = filterCatalog(catalog, pkg, o.channel)
			if err != nil {
				return fmt.Errorf("listing %s: %w", what, err)
			}
			return tabulate(catalog).printAs(cmd.OutOrStdout(), o.output)
		},
	}
	o.read.addFlags(cmd)
	inspect.AddOutputFlag(cmd, &o.output, "table", tableForms...)
	if what == "bundles" {
		cmd.Flags().StringVar(&o.channel, "channel", "", "show only bundles in channels with this name")
	}
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

// The catalog has no object of a requested name.
var (
	errNoChannel = errors.New("no such channel")
)

// filterCatalog removes from a catalog what was not requested. Empty names select everything.
func filterCatalog(catalog *outline.Catalog, pkg, channel string) (*outline.Catalog, error) {
	if pkg != "" {
		p := catalog.Package(pkg)
		if p == nil {
			return nil, fmt.Errorf("%w: %q%s", inspect.ErrNoPackage, pkg, similar(catalog, pkg))
		}
		catalog = &outline.Catalog{Packages: []*outline.Package{p}}
	}
	if channel == "" {
		return catalog, nil
	}
	out := &outline.Catalog{}
	for _, p := range catalog.Packages {
		ch := p.Channel(channel)
		if ch == nil {
			continue
		}
		reduced := *p
		reduced.Channels = []*outline.Channel{ch}
		out.Packages = append(out.Packages, &reduced)
	}
	switch {
	case len(out.Packages) > 0:
		return out, nil
	case pkg == "":
		return nil, fmt.Errorf("no package of the catalog has it: %w: %q", errNoChannel, channel)
	}
	return nil, fmt.Errorf("package %q has %w: %q; there is %s", pkg, errNoChannel, channel, channelNames(catalog.Packages[0]))
}

// channelNames returns the names of some channels of a package.
func channelNames(p *outline.Package) string {
	var names []string
	for _, ch := range p.Channels[:min(len(p.Channels), maxSimilar)] {
		names = append(names, ch.Name)
	}
	return strings.Join(names, ", ")
}

// maxSimilar is the number of similar names in a message about a missing one.
const maxSimilar = 5

// similar returns a text with packages whose names contain the requested name or are part of it.
func similar(catalog *outline.Catalog, name string) string {
	var found []string
	for _, p := range catalog.Packages {
		if strings.Contains(p.Name, strings.ToLower(name)) || strings.Contains(name, p.Name) {
			found = append(found, p.Name)
		}
	}
	if len(found) == 0 || name == "" {
		return ""
	}
	return "; there is " + strings.Join(found[:min(len(found), maxSimilar)], ", ")
}

// packageRow is a package in the machine-readable output.
type packageRow struct {
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel"`
	Head           string `json:"head"`
	Version        string `json:"version"`
	Channels       int    `json:"channels"`
	Bundles        int    `json:"bundles"`
	DisplayName    string `json:"displayName,omitempty"`
	Provider       string `json:"provider,omitempty"`
	Deprecation    string `json:"deprecation,omitempty"`
}

func packagesTable(catalog *outline.Catalog) *table {
	t := &table{columns: []string{
		"PACKAGE", "DEFAULT CHANNEL", "HEAD", "VERSION", "DEPRECATED", "CHANNELS", "BUNDLES", "DISPLAY NAME", "PROVIDER", "MESSAGE",
	}, wide: 5}
	rows := []packageRow{}
	for _, p := range catalog.Packages {
		row := packageRow{
			Name: p.Name, DefaultChannel: p.DefaultChannel, Channels: len(p.Channels), Bundles: len(p.Bundles()), Deprecation: p.Deprecation,
			DisplayName: p.DisplayName, Provider: p.Provider,
		}
		if ch := p.Channel(p.DefaultChannel); ch != nil {
			row.Head, row.Version = ch.Head, headVersion(ch)
		}
		rows = append(rows, row)
		t.add(p.Name, p.Name, row.DefaultChannel, row.Head, row.Version, mark(p.Deprecation),
			strconv.Itoa(row.Channels), strconv.Itoa(row.Bundles), p.DisplayName, p.Provider, p.Deprecation)
	}
	t.value = rows
	return t
}

// headVersion returns the version of a channel's head.
func headVersion(ch *outline.Channel) string {
	if e := ch.Entry(ch.Head); e != nil {
		return e.Version
	}
	return ""
}

// mark returns the text of the column for deprecations.
func mark(deprecation string) string {
	if deprecation == "" {
		return ""
	}
	return "yes"
}

// channelRow is a channel in the machine-readable output.
type channelRow struct {
	Package     string `json:"package"`
	Name        string `json:"name"`
	Default     bool   `json:"default"`
	Head        string `json:"head"`
	Version     string `json:"version"`
	Entries     int    `json:"entries"`
	Deprecation string `json:"deprecation,omitempty"`
}

func channelsTable(catalog *outline.Catalog) *table {
	t := &table{columns: []string{"PACKAGE", "CHANNEL", "DEFAULT", "HEAD", "VERSION", "DEPRECATED", "ENTRIES", "MESSAGE"}, wide: 6}
	rows := []channelRow{}
	for _, p := range catalog.Packages {
		for _, ch := range p.Channels {
			row := channelRow{
				Package: p.Name, Name: ch.Name, Default: ch.Name == p.DefaultChannel, Head: ch.Head, Version: headVersion(ch),
				Entries: len(ch.Entries), Deprecation: ch.Deprecation,
			}
			standard := ""
			if row.Default {
				standard = "yes"
			}
			rows = append(rows, row)
			t.add(p.Name+"/"+ch.Name, p.Name, ch.Name, standard, ch.Head, row.Version, mark(ch.Deprecation),
				strconv.Itoa(row.Entries), ch.Deprecation)
		}
	}
	t.value = rows
	return t
}

// bundleRow is a bundle in the machine-readable output.
type bundleRow struct {
	Package     string    `json:"package"`
	Name        string    `json:"name"`
	Version     string    `json:"version"`
	Image       string    `json:"image,omitempty"`
	Deprecation string    `json:"deprecation,omitempty"`
	Channels    []edgeRow `json:"channels"`
}

// edgeRow is the position of a bundle in a channel.
type edgeRow struct {
	Name      string   `json:"name"`
	Head      bool     `json:"head"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

func bundlesTable(catalog *outline.Catalog) *table {
	t := &table{columns: []string{
		"PACKAGE", "BUNDLE", "VERSION", "CHANNELS", "DEPRECATED", "REPLACES", "SKIPS", "SKIP RANGE", "IMAGE", "MESSAGE",
	}, wide: 5}
	rows := []bundleRow{}
	for _, p := range catalog.Packages {
		for _, b := range p.Bundles() {
			row := bundleRow{Package: p.Name, Name: b.Name, Version: b.Version, Image: b.Image, Deprecation: b.Deprecation}
			var replaces, skips, ranges, channels []string
			for _, name := range b.Channels {
				ch := p.Channel(name)
				e := ch.Entry(b.Name)
				row.Channels = append(row.Channels, edgeRow{
					Name: name, Head: ch.Head == b.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange,
				})
				if ch.Head == b.Name {
					name += " (head)"
				}
				channels, replaces, ranges = append(channels, name), append(replaces, e.Replaces), append(ranges, e.SkipRange)
				skips = append(skips, e.Skips...)
			}
			rows = append(rows, row)
			t.add(p.Name+"/"+b.Name, p.Name, b.Name, b.Version, strings.Join(channels, ", "), mark(b.Deprecation),
				distinct(replaces), distinct(skips), distinct(ranges), b.Image, b.Deprecation)
		}
	}
	t.value = rows
	return t
}

// distinct joins texts, each once. It omits empty texts.
func distinct(texts []string) string {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}

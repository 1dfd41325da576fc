// Package search is the command that finds packages in the catalogs of a cluster.
package search

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
)

const help = `Find packages in catalogs. A package matches if its name, display name, keywords,
categories, provider, APIs and description together contain every WORD. If a catalog
refuses access or cannot search, the command searches PackageManifests. If
PackageManifests are missing too, it compares names where it may read the catalog.

Exit codes:
  0  packages were found
  1  the command failed
  2  no package was found, or a catalog cannot be read
  3  a permission is missing
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	program    string
	connection console.Connection
	output     console.Output
	global     string
	catalog    string
}

// New returns the command "search" of a program. name is how users call the program, and agent is its user agent for
// API servers.
func New(name, agent string) *cobra.Command {
	o := &options{program: name, connection: console.Connection{Agent: agent}}
	cmd := &cobra.Command{
		Use:               "search [WORD]...",
		Short:             "Find packages in the catalogs of the cluster",
		Long:              help,
		Example:           "  " + name + " search database backup",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.run,
	}
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace of the objects; empty: the namespace of the kubeconfig's context")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	cmd.Flags().StringVar(&o.catalog, "catalog", "", "catalog, as [NAMESPACE/]NAME; empty: all")
	global := func(*cobra.Command) (string, error) { return o.global, nil }
	console.Complete(cmd, "catalog", console.CompleteNamesIn(&o.connection, global, console.CatalogSources()))
	o.output.AddFlags(cmd)
	return cmd
}

// report is the output of the command.
type report struct {
	Packages []catalogquery.Match `json:"packages"`
	// Unreadable are the reasons why catalogs cannot be read.
	Unreadable []string `json:"unreadable,omitempty"`
}

func (o *options) run(cmd *cobra.Command, words []string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	if err := catalogquery.CheckWords(words); err != nil {
		return err
	}
	namespace, err := o.connection.Namespace()
	if err != nil {
		return err
	}
	answers, err := o.ask(cmd, namespace, words)
	if err != nil {
		return err
	}
	if len(answers) == 0 {
		return &console.Coded{Code: console.Negative, Err: catalogquery.NoCatalog(namespace, o.catalog, o.program)}
	}
	r := newReport(answers)
	if err := o.print(cmd.OutOrStdout(), &r); err != nil {
		return err
	}
	switch {
	case slices.ContainsFunc(answers, func(a answer) bool { return isRefused(a.Err) }):
		return console.Verdict(console.Forbidden)
	case len(r.Packages) == 0 || len(r.Unreadable) > 0:
		return console.Verdict(console.Negative)
	}
	return nil
}

// ask searches the selected catalogs.
func (o *options) ask(cmd *cobra.Command, namespace string, words []string) ([]answer, error) {
	cfg, err := o.connection.RESTConfig()
	if err != nil {
		return nil, err
	}
	kinds, err := scheme.New()
	if err != nil {
		return nil, err
	}
	cluster, err := inputs.NewCluster(cfg, kinds)
	if err != nil {
		return nil, err
	}
	s := &searcher{cluster: cluster, namespace: namespace, global: o.global, catalog: o.catalog, words: words}
	s.progress = func(what string) func() { return progress.Start(cmd.ErrOrStderr(), o.output.ForMachines(), what) }
	answers, notes, err := s.search(cmd.Context())
	for _, note := range notes {
		_, _ = io.WriteString(cmd.ErrOrStderr(), note+"\n")
	}
	return answers, err
}

// searcher searches the catalogs that a namespace can use.
type searcher struct {
	cluster                    *inputs.Cluster
	namespace, global, catalog string
	words                      []string
	// progress shows what is read, until done is called.
	progress func(what string) (done func())
}

// search returns the answers of the catalogs, with notes on the search.
func (s *searcher) search(ctx context.Context) (answers []answer, notes []string, err error) {
	f := &fallback{words: s.words, list: func() (catalogquery.Manifests, error) {
		return catalogquery.ListManifests(ctx, s.cluster.Reader(), s.namespace)
	}}
	sources, notes, err := s.cluster.Catalogs(ctx, s.namespace, s.global)
	switch {
	case isRefused(err):
		answers, err = f.all(s.catalog, err)
	case err != nil:
		return nil, nil, err
	default:
		sources = catalogquery.Select(sources, s.catalog)
		defer s.progress("Searching " + inputs.DescribeCatalogs(sources))()
		answers = f.complete(catalogquery.Each(ctx, s.cluster, sources, func(ctx context.Context, conn *grpc.ClientConn) (catalogquery.Found, error) {
			return catalogquery.Search(ctx, conn, s.words)
		}))
	}
	return answers, append(notes, f.notes()...), err
}

// newReport returns the report of the answers: the matches sorted by package and catalog.
func newReport(answers []answer) report {
	r := report{Packages: []catalogquery.Match{}}
	for _, one := range answers {
		if one.Err != nil {
			r.Unreadable = append(r.Unreadable, one.Err.Error())
		}
		for _, match := range one.Value.Matches {
			match.Catalog = one.Catalog.String()
			r.Packages = append(r.Packages, match)
		}
	}
	slices.SortStableFunc(r.Packages, func(x, y catalogquery.Match) int { return strings.Compare(x.Package, y.Package) })
	return r
}

// print writes a report.
func (o *options) print(out io.Writer, r *report) error {
	if o.output.ForMachines() {
		return o.output.Document(out, r)
	}
	if _, err := io.WriteString(out, o.text(out, r)); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (o *options) text(out io.Writer, r *report) string {
	paint := o.output.Paint(out)
	wide := o.output.Form == console.Wide
	width := console.Width
	titles := []string{"PACKAGE", "CATALOG", "CHANNEL", "VERSION", "DISPLAY NAME"}
	if wide {
		width, titles = 0, append(titles, "PROVIDER", "DEPRECATED")
	}
	table := console.Table{Whole: 4}
	cells := make([]console.Cell, 0, len(titles))
	for _, title := range titles {
		cells = append(cells, console.Cell{Text: title, Style: paint.Bold})
	}
	table.AddCells(cells...)
	for _, m := range r.Packages {
		name := m.DisplayName
		if m.Deprecation != "" && !wide {
			name = "(deprecated) " + name
		}
		row := []string{m.Package, m.Catalog, m.Channel, m.Version, name}
		if wide {
			row = append(row, m.Provider, m.Deprecation)
		}
		table.Add(row...)
	}
	text := table.Text("", width)
	if len(r.Packages) == 0 {
		text = "No package was found.\n"
	}
	unread := make([]string, 0, len(r.Unreadable))
	for _, reason := range r.Unreadable {
		unread = append(unread, console.Wrap(paint.Bad("not read: "), "  ", reason))
	}
	return text + strings.Join(unread, "")
}

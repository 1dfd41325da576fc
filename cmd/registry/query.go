package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
)

// queryOptions are the flags of "registry query".
type queryOptions struct {
	connection connectionFlags
	output     string
	timeout    time.Duration
	quiet      bool
	latest     bool
}

// verb is a query to a server.
type verb struct {
	name string
	// arguments is the text in the help. least and most bound their number.
	arguments   string
	least, most int
	short       string
	ask         func(q *query, ctx context.Context, args []string) error
}

// verbs returns all queries, in the order of the help.
func verbs() []verb {
	return []verb{
		{"packages", "", 0, 0, "all packages", (*query).packages},
		{"channels", "[PACKAGE]", 0, 1, "channels with their heads", (*query).channels},
		{"bundles", "[PACKAGE]", 0, 1, "bundles with their channels", (*query).bundles},
		{"package", "PACKAGE", 1, 1, "one package with its channels", (*query).onePackage},
		{"bundle", "PACKAGE CHANNEL [BUNDLE]", 2, 3, "one bundle, or the head of the channel, with its manifests", (*query).bundle},
		{"graph", "PACKAGE", 1, 1, "the upgrade graph, with -o mermaid, dot, svg, json or yaml", (*query).graph},
		{"providers", "GROUP/VERSION/KIND", 1, 1, "channel entries that provide an API; with --latest, only heads", (*query).providers},
		{"replaces", "BUNDLE", 1, 1, "channel entries that replace or skip a bundle", (*query).replaces},
		{"health", "[SERVICE]", 0, 1, "whether the server is ready", (*query).health},
		{"info", "", 0, 0, "the content and the build of the server (chandlery.registry.v1)", (*query).info},
		{"search", "WORD...", 1, 16, "packages by words in names, texts and APIs (chandlery.registry.v1)", (*query).search},
		{"deprecations", "[PACKAGE]", 0, 1, "deprecated packages, channels and bundles (chandlery.registry.v1)", (*query).deprecations},
	}
}

func newQueryCommand() *cobra.Command {
	var o queryOptions
	cmd := &cobra.Command{
		Use:   "query ADDRESS WHAT [ARGUMENT...]",
		Short: "Query a catalog server",
		Long: "Query a catalog server. ADDRESS is host:port; the default port is 50051. The server can be Chandlery's\n" +
			"registry or any other implementation of api.Registry. Queries marked chandlery.registry.v1 need Chandlery's\n" +
			"registry. WHAT is one of these queries:\n\n" + describeVerbs() + "\n\n" +
			"Exit codes:\n" +
			"  0  the server answered\n" +
			"  1  the query failed, or the health query found that the server is not ready",
		Example: "  registry query localhost:50051 packages\n" +
			"  registry query localhost:50051 bundle lantern stable -o yaml\n" +
			"  registry query catalog.example.org:443 --tls providers ship.example.com/v1alpha1/Lantern",
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := chooseVerb(cmd, args)
			return err
		},
		ValidArgsFunction: completeVerbs,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := chooseVerb(cmd, args)
			if err != nil {
				return err
			}
			return o.run(cmd, chosen, args)
		},
	}
	flags := cmd.Flags()
	o.connection.addFlags(flags)
	inspect.AddOutputFlag(cmd, &o.output, "table", append(slices.Clone(tableForms), "mermaid", "dot", "svg")...)
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "time to wait for the answer; 0: no limit")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress, which appears only on a terminal")
	flags.BoolVar(&o.latest, "latest", false, "for the query providers, show only channel heads")
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func describeVerbs() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(v.name+" "+v.arguments), v.short)
	}
	// Writing to a strings.Builder does not fail.
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

var errBadQuery = errors.New("invalid query")

// chooseVerb returns the query that the arguments select.
func chooseVerb(cmd *cobra.Command, args []string) (verb, error) {
	if len(args) < 2 || args[0] == "" {
		return verb{}, fmt.Errorf("%w: name an address and a query: %s; see '%s --help'", errBadQuery, cmd.UseLine(), cmd.CommandPath())
	}
	for _, v := range verbs() {
		if v.name != args[1] {
			continue
		}
		if n := len(args) - 2; n < v.least || n > v.most {
			return verb{}, fmt.Errorf("%w: write it as 'registry query ADDRESS %s'", errBadQuery, strings.TrimSpace(v.name+" "+v.arguments))
		}
		return v, nil
	}
	return verb{}, fmt.Errorf("%w: %q is not known; see '%s --help'", errBadQuery, args[1], cmd.CommandPath())
}

func completeVerbs(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, v := range verbs() {
		out = append(out, cobra.CompletionWithDesc(v.name, v.short))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (o *queryOptions) run(cmd *cobra.Command, chosen verb, args []string) error {
	if err := inspect.CheckOutput(cmd, o.output); err != nil {
		return err
	}
	drawn := !slices.Contains(tableForms, o.output)
	if drawn && chosen.name != "graph" {
		return fmt.Errorf("%w: only graph can be had as %s", inspect.ErrBadOutput, o.output)
	}
	conn, err := o.connection.dial(args[0])
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", args[0], err)
	}
	// All answers have been received by then.
	defer func() { _ = conn.Close() }()
	ctx := cmd.Context()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	q := &query{
		printer: printer{out: cmd.OutOrStdout(), form: o.output}, conn: conn,
		terminal: cmd.ErrOrStderr(), quiet: o.quiet, latest: o.latest,
	}
	if err := chosen.ask(q, ctx, args[2:]); err != nil {
		return o.explain(args[0], chosen.name, err)
	}
	return nil
}

// Package plan is the command that shows what would be installed and updated.
package plan

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
)

// options are the flags of the command.
type options struct {
	connection console.Connection
	output     console.Output
	files      []string
	namespace  string
	global     string
	catalogs   []string
	quiet      bool
	images     imageOptions
}

const help = `Print the installations and updates that the supervisor would make: from which catalog
and channel, in which order, and why. Also print the Subscriptions whose operators it
cannot install or update, and why. The command does not change the cluster.

With -n NAMESPACE, the command reads the Subscriptions of a namespace of the cluster.
With -f FILE, it reads Subscriptions from files, and assumes that their namespace
contains nothing else. With both, it assumes that you have applied the files to the
namespace. From a directory, -f reads all *.yaml, *.yml and *.json files. The files can
also contain InstallPlans, OperatorGroups, CatalogSources and installed
ClusterServiceVersions. If the status of an object in a file names objects that are in no
file, the command ignores this status.

--catalog [[NAMESPACE/]NAME=]SOURCE sets the content of a catalog. SOURCE is a
directory, an index file, or host:port of a server. Without a name, SOURCE is the content
of every catalog. The command reads catalogs that no flag names from the cluster, at
their spec.address or through a port-forward. With -f, and --catalog for every catalog,
it does not contact a cluster.

--images shows the images of the steps. With --check, the command requests each image
from the sources that the supervisor would use, verifies the signatures of bundle images,
and shows the results. It also checks the images that the manifests in bundle images
name. It uses the image settings, pull secrets and signature rules of the supervisor's
Deployment and the CatalogSources, and OpenShift's mirrors. If you set a flag for image
registries, or use no cluster, it uses these flags and the credentials of docker or
podman instead.

The output marks steps that wait for approval, and also shows the steps after them. It
assumes that the catalogs do not change and that every installation succeeds.

Exit codes:
  0  every Subscription is up to date, or its operator can be installed
  1  the command failed
  2  the operator of a Subscription cannot be installed, its catalog cannot be read, or
     --check finds an image that no source has or that a rule refuses
  3  a permission is missing
  4  the API server cannot be reached`

// New returns the command "plan" of a program. name is how users call the program, and agent is its
// user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{
		connection: console.Connection{Agent: agent},
		images:     imageOptions{agent: agent},
		output:     console.Output{Also: []string{"mermaid", "dot", "svg"}},
	}
	cmd := &cobra.Command{
		Use:   "plan [-f FILE]... [-n NAMESPACE]",
		Short: "Show future installations and updates; change nothing",
		Long:  help,
		Example: "  " + name + " plan -f subscription.yaml --catalog ./catalog\n" +
			"  " + name + " plan -n shop\n" +
			"  " + name + " plan -n shop -f subscription.yaml -o svg > path.svg\n" +
			"  " + name + " plan -n shop --images --check\n" +
			"  kubectl get subscriptions,csv,operatorgroups -n shop -o yaml | " + name + " plan -f - --catalog olm/community=./catalog",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file with Subscriptions in YAML or JSON, or directory with such files; -: standard input; may be repeated")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the cluster to read; empty: none")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.StringArrayVar(&o.catalogs, "catalog", nil, "content of a catalog, as [[NAMESPACE/]NAME=]SOURCE; may be repeated")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress, which appears only on a terminal")
	o.images.addFlags(flags)
	console.Complete(cmd, "namespace", o.connection.CompleteNamespaces)
	console.Complete(cmd, "catalog", o.completeCatalogs)
	o.output.AddFlags(cmd)
	return cmd
}

// completeCatalogs completes the names of the catalogs in the files. It reads only local files. A
// file follows the name.
func (o *options) completeCatalogs(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []cobra.Completion
	for _, name := range inputs.CatalogNames(o.files) {
		out = append(out, name+"=")
	}
	return out, cobra.ShellCompDirectiveNoSpace
}

func (o *options) run(cmd *cobra.Command) error {
	if err := o.output.Validate(); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	if err := o.images.validate(&o.output); err != nil {
		return err
	}
	overrides, err := inputs.ParseCatalogOverrides(o.catalogs)
	if err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	ctx := cmd.Context()
	requests, err := inputs.Gather(ctx, inputs.Options{
		Files: o.files, Stdin: cmd.InOrStdin(), Namespace: o.namespace, Global: o.global, CatalogOverrides: overrides,
		Connect:  o.connect,
		Progress: func(what string) func() { return progress.Start(cmd.ErrOrStderr(), o.quiet, what) },
		Now:      metav1.NewTime(clock.RealClock{}.Now()),
	})
	if apimeta.IsNoMatchError(err) {
		return fmt.Errorf("%w; to do without a cluster leave --namespace out and use --filename and --catalog", err)
	}
	if err != nil {
		return err //nolint:wrapcheck // names the file, object or flag
	}
	results, err := dryRuns(ctx, requests)
	if err != nil {
		return err
	}
	if o.images.list {
		done := progress.Start(cmd.ErrOrStderr(), o.quiet, o.images.progress())
		results, err = o.images.add(ctx, o.global, requests, results)
		done()
		if err != nil {
			return err
		}
	}
	if err := o.print(cmd.OutOrStdout(), results); err != nil {
		return err
	}
	if slices.ContainsFunc(results, (*dryrun.Result).Fails) {
		return console.Verdict(console.Negative)
	}
	return nil
}

// connect connects to the cluster.
func (o *options) connect() (*inputs.Cluster, error) {
	cfg, err := o.connection.RESTConfig()
	if err != nil {
		return nil, err //nolint:wrapcheck // says where it looked
	}
	kinds, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped where it arises
	}
	return inputs.NewCluster(cfg, kinds) //nolint:wrapcheck // wrapped where it arises
}

func dryRuns(ctx context.Context, requests []*inputs.Gathered) ([]*dryrun.Result, error) {
	results := make([]*dryrun.Result, 0, len(requests))
	for i := range requests {
		result, err := dryrun.Run(ctx, requests[i].Request)
		if err != nil {
			return nil, err //nolint:wrapcheck // names the namespace
		}
		results = append(results, result)
	}
	return results, nil
}

// print writes the results in the selected form.
func (o *options) print(out io.Writer, results []*dryrun.Result) error {
	if o.output.ForMachines() {
		return o.output.Document(out, map[string]any{"namespaces": results}) //nolint:wrapcheck // says what it was doing
	}
	if len(results) > 1 && slices.Contains(o.output.Also, o.output.Form) {
		return fmt.Errorf("--output %s draws one namespace, and the files have Subscriptions of %d; give them one at a time", o.output.Form, len(results))
	}
	for i, result := range results {
		if err := o.printOne(out, result, i > 0); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) printOne(out io.Writer, result *dryrun.Result, apart bool) error {
	var text strings.Builder
	if apart {
		text.WriteByte('\n')
	}
	switch o.output.Form {
	case "mermaid":
		text.WriteString(result.Diagram().Mermaid())
	case "dot":
		text.WriteString(result.Diagram().DOT())
	case "svg":
		text.WriteString(result.Diagram().SVG())
	default:
		if err := result.Table(&text); err != nil {
			return err //nolint:wrapcheck // says what it was doing
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

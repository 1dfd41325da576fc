package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

const removeHelp = `Delete a CatalogSource. The command first shows which Subscriptions lose their updates.

Exit codes:
  0  the command succeeded
  1  the command failed
  2  the catalog does not exist
  3  a permission is missing
  4  the API server cannot be reached`

// catalogRemover is the command "catalog remove".
type catalogRemover struct {
	shared

	dryRun, yes bool
}

func newRemove(name, agent string) *cobra.Command {
	r := &catalogRemover{shared: shared{connection: console.Connection{Agent: agent}}}
	cmd := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove a catalog",
		Long:              removeHelp,
		Example:           "  " + name + " catalog remove community --dry-run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: console.CompleteNamesIn(&r.connection, r.namespace, console.CatalogSources()),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	r.addFlags(cmd)
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "show the result; change nothing")
	cmd.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask for confirmation; required without a terminal")
	return cmd
}

func (r *catalogRemover) run(cmd *cobra.Command, name string) error {
	if err := r.output.Validate(); err != nil {
		return err
	}
	namespace, err := r.namespace(cmd)
	if err != nil {
		return err
	}
	c, err := r.connection.Client()
	if err != nil {
		return err
	}
	source, err := wait.Reader{Client: c, Namespace: namespace}.Catalog(cmd.Context(), name)
	if err != nil {
		return err
	}
	if source == nil {
		return &console.Coded{Code: console.Negative, Err: fmt.Errorf("CatalogSource %s/%s does not exist; check the name and --namespace", namespace, name)}
	}
	p, err := r.plan(cmd.Context(), c, namespace, name)
	if err != nil {
		return err
	}
	if !r.output.ForMachines() {
		if err := write(cmd.OutOrStdout(), p.text()); err != nil {
			return err
		}
	}
	if r.dryRun {
		return r.finish(cmd.OutOrStdout(), p)
	}
	if err := (console.Question{Text: "Remove it?", Refused: "nothing was removed", Yes: r.yes, Required: true}).Ask(cmd); err != nil {
		return r.output.WithDocument(cmd.OutOrStdout(), p, err)
	}
	if err := c.Delete(cmd.Context(), source, client.Preconditions{UID: &source.UID}); err != nil {
		p.Outcome = outcomeFailed
		return r.output.WithDocument(cmd.OutOrStdout(), p, fmt.Errorf("deleting CatalogSource %s/%s: %w", source.Namespace, source.Name, err))
	}
	p.Removed, p.Outcome = true, outcomeRemoved
	return r.finish(cmd.OutOrStdout(), p)
}

// finish prints what the command did.
func (r *catalogRemover) finish(out io.Writer, p *removal) error {
	if r.output.ForMachines() {
		return r.output.Document(out, p)
	}
	text := "would be removed (dry run)"
	if p.Removed {
		text = "was removed"
	}
	return write(out, fmt.Sprintf("CatalogSource %s/%s %s\n", p.Namespace, p.Name, text))
}

// removal is what the command removes, and the document of the command.
type removal struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Subscriptions are those that use the catalog, as NAMESPACE/NAME.
	Subscriptions []string `json:"subscriptions"`
	// Notes name what could not be read.
	Notes   []string `json:"notes,omitempty"`
	Removed bool     `json:"removed"`
	// Outcome is what the command did: planned, removed or failed.
	Outcome outcome `json:"outcome"`
}

// plan returns the removal of a catalog. All Subscriptions can use a global catalog, and those of its namespace another one.
func (r *catalogRemover) plan(ctx context.Context, c client.Reader, namespace, name string) (*removal, error) {
	p := &removal{Namespace: namespace, Name: name, Subscriptions: []string{}, Outcome: outcomePlanned}
	scope := "all namespaces"
	var subscriptions operatorsv1alpha1.SubscriptionList
	var options []client.ListOption
	if namespace != r.global {
		scope, options = "namespace "+namespace, append(options, client.InNamespace(namespace))
	}
	err := c.List(ctx, &subscriptions, options...)
	if namespace == r.global && apierrors.IsForbidden(err) {
		p.Notes = append(p.Notes, "Subscriptions of other namespaces can use the catalog too; you lack permission to list them")
		scope = "namespace " + namespace
		err = c.List(ctx, &subscriptions, client.InNamespace(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Subscriptions of %s: %w", scope, err)
	}
	for i := range subscriptions.Items {
		sub := &subscriptions.Items[i]
		if sub.Spec != nil && sub.Spec.CatalogSource == name && sub.Spec.CatalogSourceNamespace == namespace {
			p.Subscriptions = append(p.Subscriptions, sub.Namespace+"/"+sub.Name)
		}
	}
	return p, nil
}

// text returns the text about which Subscriptions use the catalog.
func (p *removal) text() string {
	catalog, none := p.Namespace+"/"+p.Name, "No Subscription"
	if len(p.Notes) > 0 {
		none += " of namespace " + p.Namespace
	}
	lines := []string{none + " uses catalog " + catalog + ".\n"}
	if len(p.Subscriptions) > 0 {
		lines[0] = console.Wrap("", "  ", "These Subscriptions use catalog "+catalog+", and get no updates without it: "+strings.Join(p.Subscriptions, ", "))
	}
	for _, note := range p.Notes {
		lines = append(lines, console.Wrap("", "  ", note))
	}
	return strings.Join(lines, "")
}

package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
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
	users, err := usersOf(cmd.Context(), c, namespace, name)
	if err != nil {
		return err
	}
	if !r.output.ForMachines() {
		if err := write(cmd.OutOrStdout(), usersText(namespace+"/"+name, users)); err != nil {
			return err
		}
	}
	if err := r.remove(cmd, c, source); err != nil {
		return err
	}
	return r.finish(cmd.OutOrStdout(), namespace, name, users)
}

// remove deletes a CatalogSource after the confirmation.
func (r *catalogRemover) remove(cmd *cobra.Command, c client.Client, source *operatorsv1alpha1.CatalogSource) error {
	if r.dryRun {
		return nil
	}
	if err := (console.Question{Text: "Remove it?", Refused: "nothing was removed", Yes: r.yes, Required: true}).Ask(cmd); err != nil {
		return err
	}
	if err := c.Delete(cmd.Context(), source, client.Preconditions{UID: &source.UID}); err != nil {
		return fmt.Errorf("deleting CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	}
	return nil
}

// finish prints what the command did.
func (r *catalogRemover) finish(out io.Writer, namespace, name string, users []string) error {
	if r.output.ForMachines() {
		return r.output.Document(out, map[string]any{"namespace": namespace, "name": name, "subscriptions": users, "removed": !r.dryRun})
	}
	text := "was removed"
	if r.dryRun {
		text = "would be removed (dry run)"
	}
	return write(out, fmt.Sprintf("CatalogSource %s/%s %s\n", namespace, name, text))
}

// usersOf returns the Subscriptions of all namespaces that use a catalog, as NAMESPACE/NAME.
func usersOf(ctx context.Context, c client.Client, namespace, name string) ([]string, error) {
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := c.List(ctx, &subscriptions); err != nil {
		return nil, fmt.Errorf("listing the Subscriptions of all namespaces: %w", err)
	}
	users := []string{}
	for i := range subscriptions.Items {
		sub := &subscriptions.Items[i]
		if sub.Spec != nil && sub.Spec.CatalogSource == name && sub.Spec.CatalogSourceNamespace == namespace {
			users = append(users, sub.Namespace+"/"+sub.Name)
		}
	}
	return users, nil
}

func usersText(catalog string, users []string) string {
	if len(users) == 0 {
		return "No Subscription uses catalog " + catalog + ".\n"
	}
	return console.Wrap("", "  ", "These Subscriptions use catalog "+catalog+", and get no updates without it: "+strings.Join(users, ", "))
}

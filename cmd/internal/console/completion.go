package console

import (
	"context"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// completionPatience bounds how long a completion waits for the cluster.
const completionPatience = 2 * time.Second

// completionLimit is the largest number of completed names.
const completionLimit = 500

// Subscriptions returns the resource of Subscriptions.
func Subscriptions() schema.GroupVersionResource {
	return operatorsv1alpha1.SchemeGroupVersion.WithResource("subscriptions")
}

// InstallPlans returns the resource of InstallPlans.
func InstallPlans() schema.GroupVersionResource {
	return operatorsv1alpha1.SchemeGroupVersion.WithResource("installplans")
}

// CatalogSources returns the resource of CatalogSources.
func CatalogSources() schema.GroupVersionResource {
	return operatorsv1alpha1.SchemeGroupVersion.WithResource("catalogsources")
}

// Complete sets the completion of a flag that was just added.
func Complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) //nolint:forbidigo // the flag is not there, or has been given values: a mistake of the programmer
	}
}

// completeContexts completes the contexts of the kubeconfig.
func (c *Connection) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, _ := c.clientConfig()
	raw, err := config.RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, 0, len(raw.Contexts))
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteNamespaces completes the namespaces of the cluster.
func (c *Connection) CompleteNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.names(cmd.Context(), "", typed, nil, corev1.SchemeGroupVersion.WithResource("namespaces"))
}

// CompleteNames completes the names of objects in the selected namespace, without the given ones.
func (c *Connection) CompleteNames(resources ...schema.GroupVersionResource) cobra.CompletionFunc {
	return CompleteNamesIn(c, func(*cobra.Command) (string, error) { return c.Namespace() }, resources...)
}

// CompleteNamesIn completes the names of objects in a namespace that flags may select, without the given ones.
func CompleteNamesIn(c *Connection, in func(*cobra.Command) (string, error), resources ...schema.GroupVersionResource) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		namespace, err := in(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.names(cmd.Context(), namespace, typed, given, resources...)
	}
}

// names reads the names of objects. It returns no names on any error, because a completion cannot show errors.
func (c *Connection) names(
	ctx context.Context, namespace, typed string, given []string, resources ...schema.GroupVersionResource,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	Quiet()
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	cfg, err := c.RESTConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg.Timeout = completionPatience
	cfg.WarningHandler = rest.NoWarnings{}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, resource := range resources {
		list, err := objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: completionLimit})
		if err != nil {
			continue
		}
		for i := range list.Items {
			if name := list.Items[i].Name; strings.HasPrefix(name, typed) && !slices.Contains(given, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

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

// completionPatience bounds what a person who presses the tab key waits for a cluster.
const completionPatience = 2 * time.Second

// completionLimit bounds how many names a shell is offered.
const completionLimit = 500

// Subscriptions is the resource whose names commands complete most.
func Subscriptions() schema.GroupVersionResource {
	return operatorsv1alpha1.SchemeGroupVersion.WithResource("subscriptions")
}

// InstallPlans is the resource of plans.
func InstallPlans() schema.GroupVersionResource {
	return operatorsv1alpha1.SchemeGroupVersion.WithResource("installplans")
}

// Complete says what completes the value of a flag that has just been added.
func Complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) //nolint:forbidigo // the flag is not there, or has been given values: a mistake of the programmer
	}
}

// completeContexts offers the contexts of the kubeconfig.
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

// CompleteNamespaces offers the namespaces of the cluster.
func (c *Connection) CompleteNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.names(cmd.Context(), "", typed, nil, corev1.SchemeGroupVersion.WithResource("namespaces"))
}

// CompleteNames offers the names of objects in the namespace that is meant, without
// those that have been given.
func (c *Connection) CompleteNames(resources ...schema.GroupVersionResource) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		namespace, err := c.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.names(cmd.Context(), namespace, typed, given, resources...)
	}
}

// names asks the cluster for the names of objects. Whatever goes wrong, there are no
// names then: a shell that completes has no place for errors.
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

package compattest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/compat/rules"
)

// runExternal runs the tests in the cluster of a kubeconfig, and then deletes the CustomResourceDefinitions that they
// left. If the tests need real nodes and the cluster has none, no case runs.
func runExternal(m *testing.M, path string, needsNodes bool) int {
	ctx := context.Background() //nolint:forbidigo // A test binary has no caller to take a context from.
	remove, err := useExternal(ctx, path, needsNodes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "using the cluster of $COMPAT_KUBECONFIG:", err)
		return 1
	}
	code := m.Run()
	if err := remove(); err != nil {
		fmt.Fprintln(os.Stderr, "deleting the CustomResourceDefinitions of the tests:", err)
		return max(code, 1)
	}
	return code
}

// useExternal makes the cluster of a kubeconfig the target. It returns a function that deletes what the tests left.
func useExternal(ctx context.Context, path string, needsNodes bool) (remove func() error, err error) {
	target.config, err = clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	target.kubeconfig, target.kubectl = path, "kubectl"
	c, err := newClient()
	if err != nil {
		return nil, err
	}
	if needsNodes {
		var list corev1.NodeList
		if err := c.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		if !slices.ContainsFunc(list.Items, isReal) {
			target.missing = "needs real nodes, and the cluster of $COMPAT_KUBECONFIG has none"
		}
	}
	target.flags, err = flagsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	var before apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(ctx, &before); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	return func() error { return removeDefinitions(ctx, c, before.Items) }, nil
}

// isReal reports whether a node runs pods. Nodes of kwok do not.
func isReal(n corev1.Node) bool {
	_, simulated := n.Labels["kwok.x-k8s.io/node"]
	return !simulated
}

// flagsOf returns the flags of the supervisor in the cluster: $COMPAT_FLAGS, or else the arguments of its Deployment.
func flagsOf(ctx context.Context, c client.Client) ([]string, error) {
	if text, is := os.LookupEnv("COMPAT_FLAGS"); is {
		return strings.Fields(text), nil
	}
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/name": "chandlery-supervisor"}); err != nil {
		return nil, fmt.Errorf("listing the Deployment of the supervisor: %w", err)
	}
	var flags []string
	for i := range list.Items {
		for _, container := range list.Items[i].Spec.Template.Spec.Containers {
			flags = append(flags, container.Args...)
		}
	}
	return flags, nil
}

// skipUnavailable skips a case that cannot run in the cluster.
func skipUnavailable(t *testing.T, rule rules.Rule) {
	t.Helper()
	if target.missing != "" {
		t.Skip(target.missing)
	}
	if target.bin != "" || target.olm {
		return
	}
	for _, flag := range rules.Flags(rule.ID) {
		if !hasFlag(target.flags, flag) {
			t.Skipf("needs %s of the supervisor", flag)
		}
	}
}

// hasFlag reports whether a flag is among arguments. It may be "--name" or "--name=value".
func hasFlag(args []string, flag string) bool {
	name, value, hasValue := strings.Cut(flag, "=")
	for i, arg := range args {
		switch {
		case arg == flag, !hasValue && arg == name+"=true":
			return true
		case hasValue && arg == name && i+1 < len(args) && args[i+1] == value:
			return true
		}
	}
	return false
}

// removeDefinitions deletes the CustomResourceDefinitions that the tests created, or whose operator they installed.
func removeDefinitions(ctx context.Context, c client.Client, before []apiextensionsv1.CustomResourceDefinition) error {
	former := map[types.UID]bool{}
	for i := range before {
		former[before[i].UID] = true
	}
	var after apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(ctx, &after); err != nil {
		return fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	for i := range after.Items {
		definition := &after.Items[i]
		if former[definition.UID] || !isOfTests(definition) {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, definition)); err != nil {
			return fmt.Errorf("deleting %s: %w", definition.Name, err)
		}
	}
	return nil
}

// isOfTests reports whether a case created a definition, or installed the operator that brought it.
func isOfTests(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for key, value := range definition.Annotations {
		if strings.HasPrefix(key, api.PrefixInstalledAlongside) && strings.HasPrefix(value, namespacePrefix) {
			return true
		}
	}
	return strings.HasSuffix(definition.Spec.Group, ".example") ||
		slices.ContainsFunc(definition.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == "compat.test" || entry.Manager == "nodes.test"
		})
}

package console

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// another is the remedy for a kubeconfig that cannot be used.
const another = "name another with --kubeconfig or $" + clientcmd.RecommendedConfigPathEnvVar

// unusable returns the error for a missing API server. It names the file, the setting that named
// the file, the wrong field and the remedy. It must not wrap an error of the file system that looks
// like a network error.
func (c *Connection) unusable(err error, rules *clientcmd.ClientConfigLoadingRules) error {
	return &Coded{Code: Failed, Err: fmt.Errorf("finding the API server: %w", c.problem(err, rules))}
}

func (c *Connection) problem(err error, rules *clientcmd.ClientConfigLoadingRules) error {
	if wrong := wrongFile(rules); wrong != nil {
		return wrong
	}
	merged, loading := rules.Load()
	if loading != nil {
		return fmt.Errorf("%s cannot be used: %w; correct it, or %s", origin(rules), loading, another)
	}
	name, field := c.overrides.CurrentContext, "--context"
	if name == "" {
		name, field = merged.CurrentContext, "its current-context"
	}
	_, known := merged.Contexts[name]
	switch {
	case clientcmdapi.IsConfigEmpty(merged):
		return fmt.Errorf("%s is empty; %s", origin(rules), another)
	case name == "":
		return fmt.Errorf("%s has no current-context; choose one with --context%s", origin(rules), contexts(merged))
	case !known:
		return fmt.Errorf("%s has no context %q, which %s names%s", origin(rules), name, field, contexts(merged))
	default:
		return fmt.Errorf("context %q of %s cannot be used: %w; correct it, or choose another with --context", name, origin(rules), err)
	}
}

// wrongFile returns the problem of a configuration file; nil for none. As in kubectl, missing files
// of $KUBECONFIG are ignored unless all are missing.
func wrongFile(rules *clientcmd.ClientConfigLoadingRules) error {
	there := false
	for _, path := range rules.GetLoadingPrecedence() {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		there = true
		if reason := (*fs.PathError)(nil); errors.As(err, &reason) {
			return fmt.Errorf("%s%s cannot be read: %w; make it readable, or %s", path, namer(rules), reason.Err, another)
		}
		if _, err := clientcmd.Load(text); err != nil {
			return fmt.Errorf("%s%s is no kubeconfig: %s; correct it, or %s", path, namer(rules), strings.Join(strings.Fields(err.Error()), " "), another)
		}
	}
	switch {
	case there:
		return nil
	case namer(rules) == "":
		return fmt.Errorf("there is no %s, and this is no pod; name a kubeconfig with --kubeconfig or $%s", origin(rules), clientcmd.RecommendedConfigPathEnvVar)
	default:
		return fmt.Errorf("%s does not exist; %s", origin(rules), another)
	}
}

// origin returns the files of the configuration.
func origin(rules *clientcmd.ClientConfigLoadingRules) string {
	return strings.Join(rules.GetLoadingPrecedence(), " and ") + namer(rules)
}

// namer returns, in brackets, the flag or variable that named the files; empty for the default.
func namer(rules *clientcmd.ClientConfigLoadingRules) string {
	switch {
	case rules.ExplicitPath != "":
		return " (--kubeconfig)"
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		return " ($" + clientcmd.RecommendedConfigPathEnvVar + ")"
	default:
		return ""
	}
}

// contexts lists some contexts of a configuration.
func contexts(config *clientcmdapi.Config) string {
	const most = 8
	names := slices.Sorted(maps.Keys(config.Contexts))
	if len(names) == 0 {
		return ", and it has no other"
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return "; it has " + strings.Join(names, ", ")
}

// Package depcheck holds the rules for dependencies between the module's packages, and the test
// that enforces them. docs/architecture.md describes them. The linter enforces the direct imports;
// this package enforces indirect dependencies.
package depcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/golist"
)

// Module is the path of the module, which every path in a Rule is relative to.
const Module = "github.com/chandlery/chandlery"

// Rule forbids the packages below From to depend, directly or not, on the packages below any of
// Never, except those below But. Paths of the module are relative to it, and others are complete.
type Rule struct {
	From string
	// With limits the rule to this package and the packages that depend on it. Empty for no limit.
	With   string
	Never  []string
	But    []string
	Reason string
}

// Rules returns the direction of dependencies, from the contract outwards.
func Rules() []Rule {
	return []Rule{
		{
			From: "proto", Never: []string{"."}, But: []string{"proto"},
			Reason: "the contract depends on nothing of ours",
		},
		{
			From: "bundles", Never: []string{"."}, But: []string{"bundles", "proto"},
			Reason: "the catalog domain is pure",
		},
		{
			From: "bundles/fbc", Never: []string{"k8s.io", "sigs.k8s.io/controller-runtime"}, But: []string{"k8s.io/apimachinery"},
			Reason: "loading a catalog needs no Kubernetes client",
		},
		{
			From: "bundles/index", Never: []string{"proto"},
			Reason: "programs make indexes that link another package of the contract's messages",
		},
		{
			From: "internal", Never: []string{"."}, But: []string{"internal"},
			Reason: "what server and supervisor share depends on neither",
		},
		{
			From: "server", Never: []string{"."}, But: []string{"server", "bundles", "internal", "proto"},
			Reason: "server and supervisor meet through the contract only",
		},
		{
			From: "server", Never: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
			Reason: "the registry stays free of Kubernetes clients",
		},
		{
			From: "supervisor", Never: []string{"."}, But: []string{"supervisor", "bundles", "internal", "proto"},
			Reason: "server and supervisor meet through the contract only",
		},
		{
			From: "cmd/registry", Never: []string{"supervisor", "test", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
			Reason: "the registry stays free of Kubernetes clients",
		},
		{
			From: "cmd/supervisor", Never: []string{"server", "test"},
			Reason: "the supervisor talks to a registry through the contract only",
		},
		{
			From: "cmd/internal/command", Never: []string{"server", "test"},
			Reason: "commands talk to a registry through the contract only",
		},
		{
			From: "cmd/kubectl-chandlery",
			// The dry run uses the answers of the Subscription controller.
			Never: []string{"server", "test", "supervisor/controllers"}, But: []string{"supervisor/controllers/subscription"},
			Reason: "the plugin looks at a cluster, and runs no controllers",
		},
		{
			From: "supervisor/resolution", Never: clients(),
			Reason: "resolution is pure",
		},
		{
			From: "supervisor/resolution/content", Never: clients(),
			Reason: "the content of a catalog is plain values",
		},
		{
			From: ".", With: "proto/api", Never: []string{operatorRegistry + "/pkg/api"},
			Reason: "both register the proto package api, and a program that links both panics when it starts",
		},
		{
			From: "cmd/catalog", Never: []string{"proto", "server/registry", "server/extension", "supervisor", "test"},
			Reason: "authoring uses operator-registry in full, which registers the proto package api",
		},
		{
			From: ".", Never: []string{operatorRegistry + "/alpha/action"}, But: []string{operatorRegistry + "/alpha/action/migrations"},
			Reason: "its image library needs gpgme, a library of C",
		},
		{
			From: ".", Never: []string{"github.com/stretchr/testify", "github.com/onsi/ginkgo"},
			Reason: "tests use the standard library",
		},
	}
}

// operatorRegistry is the module of the libraries for catalogs.
const operatorRegistry = "github.com/operator-framework/operator-registry"

// clients returns the packages that call API servers and catalogs. Pure packages use none of them.
// The linter prevents pure packages from importing Kubernetes. operator-registry's property package
// links its types.
func clients() []string {
	return []string{
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic", "k8s.io/client-go/metadata", "k8s.io/client-go/discovery",
		"k8s.io/client-go/informers", "k8s.io/client-go/tools/cache", "sigs.k8s.io/controller-runtime", "google.golang.org/grpc",
	}
}

// ControllerRules returns a rule for each controller that forbids the others. Controllers interact through API objects
// and through packages outside their folders, never directly.
func ControllerRules(all []string) []Rule {
	rules := make([]Rule, 0, len(all))
	for _, one := range all {
		others := slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == one })
		rules = append(rules, Rule{From: one, Never: others, Reason: "controllers meet through API objects"})
	}
	return rules
}

// Violations returns a line for each violation of a rule, in the order of the packages and the rules.
func Violations(packages []golist.Package, rules []Rule) []string {
	var found []string
	for _, p := range packages {
		for _, rule := range rules {
			if !below(p.ImportPath, rule.From) || !rule.appliesTo(p) {
				continue
			}
			for _, dep := range p.Deps {
				if belowAny(dep, rule.Never) && !belowAny(dep, rule.But) {
					found = append(found, fmt.Sprintf("%s depends on %s: %s", p.ImportPath, dep, rule.Reason))
				}
			}
		}
	}
	return found
}

// appliesTo reports whether a package depends on the package to which the rule is limited.
func (r *Rule) appliesTo(p golist.Package) bool {
	return r.With == "" || below(p.ImportPath, r.With) ||
		slices.ContainsFunc(p.Deps, func(dep string) bool { return below(dep, r.With) })
}

// below reports whether the package is root or is below it. A root whose first element has no dot
// (and the root ".", the whole module) is relative to the module.
func below(path, root string) bool {
	root = absolute(root)
	return path == root || strings.HasPrefix(path, root+"/")
}

func belowAny(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return below(path, root) })
}

func absolute(root string) string {
	if root == "." {
		return Module
	}
	if first, _, _ := strings.Cut(root, "/"); strings.Contains(first, ".") {
		return root
	}
	return Module + "/" + root
}

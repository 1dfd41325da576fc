package inputs

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// CatalogOverride is a value of --catalog: it names where the content of a catalog is read.
type CatalogOverride struct {
	// Namespace and Name are those of the CatalogSource. An empty namespace matches any namespace; if both are empty,
	// any CatalogSource matches.
	Namespace, Name string
	// Source is a directory, an index file or HOST:PORT.
	Source string
}

// ParseCatalogOverride parses [[NAMESPACE/]NAME=]SOURCE.
func ParseCatalogOverride(text string) (CatalogOverride, error) {
	name, source, named := strings.Cut(text, "=")
	if _, err := os.Stat(text); err == nil || !named {
		name, source = "", text
	}
	g := CatalogOverride{Name: name, Source: source}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		g.Namespace, g.Name = namespace, rest
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return g, fmt.Errorf("--catalog %s: %q cannot be a namespace: %s", text, namespace, strings.Join(problems, "; "))
		}
	}
	if problems := validation.IsDNS1123Subdomain(g.Name); (name != "" || source != text) && len(problems) > 0 {
		return g, fmt.Errorf("--catalog %s: %q cannot be the name of a CatalogSource: %s", text, g.Name, strings.Join(problems, "; "))
	}
	if source == "" {
		return g, fmt.Errorf("--catalog %s names no source; write [[NAMESPACE/]NAME=]SOURCE with a directory, an index file or host:port", text)
	}
	return g, nil
}

// ParseCatalogOverrides parses the values of a flag. A value without a name must be the only one.
func ParseCatalogOverrides(texts []string) ([]CatalogOverride, error) {
	var out []CatalogOverride
	for _, text := range texts {
		g, err := ParseCatalogOverride(text)
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			if other.Namespace == g.Namespace && other.Name == g.Name && g.Name != "" {
				return nil, fmt.Errorf("--catalog %s: %s has a source already, %s", text, g.Name, other.Source)
			}
		}
		out = append(out, g)
	}
	for _, g := range out {
		if g.Name == "" && len(out) > 1 {
			return nil, fmt.Errorf("--catalog %s has no name, and there are others; write NAME=%s", g.Source, g.Source)
		}
	}
	return out, nil
}

// overrideFor returns the source for a catalog: the one that names it most exactly.
func overrideFor(all []CatalogOverride, key resolution.CatalogKey) (CatalogOverride, bool) {
	best, rank := CatalogOverride{}, 0
	for _, g := range all {
		fits := 0
		switch {
		case g.Name == "":
			fits = 1
		case g.Namespace == "" && g.Name == key.Name:
			fits = 2
		case g.Namespace == key.Namespace && g.Name == key.Name:
			fits = 3
		}
		if fits > rank {
			best, rank = g, fits
		}
	}
	return best, rank > 0
}

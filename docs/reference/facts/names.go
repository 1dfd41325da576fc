package facts

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ofOurs matches the names of annotations, labels and finalizers that operator managers use. A name
// that ends with a slash, a dot or a dash is a prefix.
var ofOurs = regexp.MustCompile(`^(chandlery\.dev/[A-Za-z.-]*|olm\.[A-Za-z][A-Za-z./-]*|` +
	`(catalogsource\.|olm\.)?(operators\.coreos\.com|operatorframework\.io)/[A-Za-z.-]*|` +
	`operators\.operatorframework\.io[A-Za-z0-9./-]*|olmcahash)$`)

// Names returns the names of annotations, labels, finalizers and the like in the code, each with
// the sorted packages that use it.
func (c *Code) Names() map[string][]string {
	found := map[string]map[string]bool{}
	for _, p := range c.packages {
		p.each(func(n ast.Node) {
			e, ok := n.(ast.Expr)
			if !ok {
				return
			}
			if text, ok := p.text(e); ok && ofOurs.MatchString(text) && !apiVersion.MatchString(text) {
				if found[text] == nil {
					found[text] = map[string]bool{}
				}
				found[text][p.path] = true
			}
		})
	}
	names := map[string][]string{}
	for name, packages := range found {
		if removed, ok := strings.CutSuffix(name, "-"); ok && found[removed] != nil {
			continue // the form in which kubectl removes the name
		}
		names[name] = slices.Sorted(maps.Keys(packages))
	}
	return names
}

// apiVersion matches the version of an API, which otherwise looks like an annotation.
var apiVersion = regexp.MustCompile(`/v\d+((alpha|beta)\d+)?$`)

package search

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// answer is the answer of a catalog to a search.
type answer = catalogquery.Answer[catalogquery.Found]

// fallback searches PackageManifests in place of catalogs that the user may not read, and of those whose servers can only
// list packages.
type fallback struct {
	words []string
	// list returns the PackageManifests of the namespace.
	list func() (catalogquery.Manifests, error)
	// refusal is the error that refuses a catalog in whose place PackageManifests were searched; nil if there is none.
	refusal error
	// namesOnly are the catalogs of which only the names of packages were compared.
	namesOnly []string
	// unlisted is why PackageManifests cannot be searched in place of these catalogs; nil if they lack the catalogs.
	unlisted error
}

// isRefused reports whether the user lacks a permission.
func isRefused(err error) bool { return console.CodeOf(err) == console.Forbidden }

// all returns the answers of the catalogs with a name; of all if the name is empty. refused is the error that refuses the
// list of CatalogSources.
func (f *fallback) all(name string, refused error) ([]answer, error) {
	manifests, err := f.list()
	if err != nil {
		return nil, catalogquery.RefusedError(refused, err)
	}
	f.refusal = refused
	var answers []answer
	for _, catalog := range manifests.Catalogs() {
		if name == "" || name == catalog.Name || name == catalog.String() {
			answers = append(answers, answer{Catalog: catalog, Value: catalogquery.Found{Matches: manifests.Search(catalog, f.words)}})
		}
	}
	return answers, nil
}

// complete replaces the answers of catalogs that the user may not connect to, and of those whose servers can only list
// packages. A catalog without PackageManifests keeps its answer: the server of PackageManifests has not read it.
func (f *fallback) complete(answers []answer) []answer {
	list := sync.OnceValues(f.list)
	out := make([]answer, 0, len(answers))
	for _, one := range answers {
		if isRefused(one.Err) || one.Value.NamesOnly {
			manifests, failure := list()
			one = f.replace(one, manifests, failure)
		}
		out = append(out, one)
	}
	return out
}

func (f *fallback) replace(one answer, manifests catalogquery.Manifests, failure error) answer {
	switch {
	case failure == nil && len(manifests.Search(one.Catalog, nil)) > 0:
		f.refusal = cmp.Or(one.Err, f.refusal)
		return answer{Catalog: one.Catalog, Value: catalogquery.Found{Matches: manifests.Search(one.Catalog, f.words)}}
	case one.Err == nil:
		f.namesOnly, f.unlisted = append(f.namesOnly, one.Catalog.String()), failure
	case failure != nil:
		one.Err = catalogquery.RefusedError(one.Err, failure)
	}
	return one
}

// notes returns why PackageManifests were searched, and in which catalogs only names were compared.
func (f *fallback) notes() []string {
	var notes []string
	if f.refusal != nil {
		notes = append(notes, fmt.Sprintf("Searched PackageManifests in place of catalogs: %v", f.refusal))
	}
	if len(f.namesOnly) > 0 {
		reason := "PackageManifests lack the catalog"
		if f.unlisted != nil {
			reason = fmt.Sprintf("PackageManifests cannot be read: %v", f.unlisted)
		}
		notes = append(notes, fmt.Sprintf("Compared only package names in %s: the server has no search, and %s", strings.Join(f.namesOnly, ", "), reason))
	}
	return notes
}

package search

import (
	"fmt"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// answer is the answer of a catalog to a search.
type answer = catalogquery.Answer[[]catalogquery.Match]

// fallback searches PackageManifests in place of catalogs that the user may not read.
type fallback struct {
	words []string
	// list returns the PackageManifests of the namespace.
	list func() (catalogquery.Manifests, error)
	// reason is why PackageManifests were searched; nil if they were not.
	reason error
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
	f.reason = refused
	var answers []answer
	for _, catalog := range manifests.Catalogs() {
		if name == "" || name == catalog.Name || name == catalog.String() {
			answers = append(answers, answer{Catalog: catalog, Value: manifests.Search(catalog, f.words)})
		}
	}
	return answers, nil
}

// refused replaces the answers of catalogs that the user may not connect to. A catalog without PackageManifests keeps its
// error: the server has not read it.
func (f *fallback) refused(answers []answer) []answer {
	var manifests catalogquery.Manifests
	var failure error
	listed := false
	out := make([]answer, 0, len(answers))
	for _, one := range answers {
		if isRefused(one.Err) {
			if !listed {
				manifests, failure = f.list()
				listed = true
			}
			one = f.replace(one, manifests, failure)
		}
		out = append(out, one)
	}
	return out
}

func (f *fallback) replace(one answer, manifests catalogquery.Manifests, failure error) answer {
	switch {
	case failure != nil:
		one.Err = catalogquery.RefusedError(one.Err, failure)
	case len(manifests.Search(one.Catalog, nil)) > 0:
		f.reason = one.Err
		one.Value, one.Err = manifests.Search(one.Catalog, f.words), nil
	}
	return one
}

// notes returns why PackageManifests were searched.
func (f *fallback) notes() []string {
	if f.reason == nil {
		return nil
	}
	return []string{fmt.Sprintf("Searched PackageManifests in place of catalogs: %v", f.reason)}
}

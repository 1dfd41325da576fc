package search

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// TestFallback searches PackageManifests in place of catalogs that the user may not read, and of those whose servers can
// only list packages.
func TestFallback(t *testing.T) {
	t.Parallel()
	var lamp, torch catalogquery.Manifest
	lamp.Metadata.Name, lamp.Status.CatalogSource, lamp.Status.CatalogSourceNamespace = "lamp", "wares", "olm"
	lamp.Status.Provider.Name = "Oil Inc."
	torch.Metadata.Name, torch.Status.CatalogSource, torch.Status.CatalogSourceNamespace = "torch", "own", "shop"
	pods, manifests := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "packagemanifests"}
	refused := apierrors.NewForbidden(pods, "", errors.New("no role"))
	names := func(packages ...string) catalogquery.Found {
		found := catalogquery.Found{NamesOnly: true}
		for _, name := range packages {
			found.Matches = append(found.Matches, catalogquery.Match{Package: name})
		}
		return found
	}
	const inPlace = "Searched PackageManifests in place of catalogs: pods is forbidden: no role"
	wares, own := types.NamespacedName{Namespace: "olm", Name: "wares"}, types.NamespacedName{Namespace: "shop", Name: "own"}
	for name, tt := range map[string]struct {
		words   []string
		catalog string
		answers []answer // nil if the list of CatalogSources is refused
		failure error
		want    string
		code    console.Code
		notes   []string
	}{
		"List":       {want: "olm/wares:lamp shop/own:torch", notes: []string{inPlace}},
		"Catalog":    {catalog: "own", want: "shop/own:torch", notes: []string{inPlace}},
		"Words":      {words: []string{"lamp"}, want: "olm/wares:lamp shop/own", notes: []string{inPlace}},
		"ListFails":  {failure: apierrors.NewForbidden(manifests, "", nil), code: console.Forbidden},
		"ListLacks":  {failure: errors.New("no API"), code: console.Forbidden},
		"Forward":    {answers: []answer{{Catalog: wares, Err: refused}, {Catalog: own}}, want: "olm/wares:lamp shop/own", notes: []string{inPlace}},
		"OtherError": {answers: []answer{{Catalog: wares, Err: errors.New("away")}}, want: "olm/wares", code: console.Failed},
		"Unread":     {answers: []answer{{Catalog: types.NamespacedName{Namespace: "olm", Name: "new"}, Err: refused}}, want: "olm/new", code: console.Forbidden},
		"Both":       {answers: []answer{{Catalog: wares, Err: refused}}, failure: errors.New("no API"), want: "olm/wares", code: console.Forbidden},
		"OnlyNames":  {words: []string{"oil"}, answers: []answer{{Catalog: wares, Value: names()}, {Catalog: own}}, want: "olm/wares:lamp shop/own"},
		"BothKinds": {
			answers: []answer{{Catalog: own, Err: refused}, {Catalog: wares, Value: names()}},
			want:    "shop/own:torch olm/wares:lamp", notes: []string{inPlace},
		},
		"NamesUnread": {
			answers: []answer{{Catalog: types.NamespacedName{Namespace: "olm", Name: "new"}, Value: names("lantern")}}, want: "olm/new:lantern",
			notes: []string{"Compared only package names in olm/new: the server has no search, and PackageManifests lack the catalog"},
		},
		"NamesNoAPI": {
			answers: []answer{{Catalog: wares, Value: names("lamp")}, {Catalog: own, Value: names()}}, failure: errors.New("no API"), want: "olm/wares:lamp shop/own",
			notes: []string{"Compared only package names in olm/wares, shop/own: the server has no search, and PackageManifests cannot be read: no API"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fallback{words: tt.words, list: func() (catalogquery.Manifests, error) {
				return catalogquery.Manifests{lamp, torch}, tt.failure
			}}
			answers, err := f.complete(tt.answers), error(nil)
			if tt.answers == nil {
				answers, err = f.all(tt.catalog, refused)
			}
			var got []string
			for _, one := range answers {
				words := []string{one.Catalog.String()}
				for _, match := range one.Value.Matches {
					words = append(words, match.Package)
				}
				got = append(got, strings.Join(words, ":"))
				err = errors.Join(err, one.Err)
			}
			if text := strings.Join(got, " "); text != tt.want || console.CodeOf(err) != tt.code {
				t.Errorf("got %q, want %q; error %v, want code %d", text, tt.want, err, tt.code)
			}
			if diff := cmp.Diff(tt.notes, f.notes()); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

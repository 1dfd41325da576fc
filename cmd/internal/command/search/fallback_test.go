package search

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// TestFallback searches PackageManifests in place of catalogs that the user may not read.
func TestFallback(t *testing.T) {
	t.Parallel()
	var lamp, torch catalogquery.Manifest
	lamp.Metadata.Name, lamp.Status.CatalogSource, lamp.Status.CatalogSourceNamespace = "lamp", "wares", "olm"
	torch.Metadata.Name, torch.Status.CatalogSource, torch.Status.CatalogSourceNamespace = "torch", "own", "shop"
	pods, manifests := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "packagemanifests"}
	refused := apierrors.NewForbidden(pods, "", errors.New("no role"))
	wares, own := types.NamespacedName{Namespace: "olm", Name: "wares"}, types.NamespacedName{Namespace: "shop", Name: "own"}
	for name, tt := range map[string]struct {
		words   []string
		catalog string
		answers []answer // nil if the list of CatalogSources is refused
		failure error
		want    string
		code    console.Code
		noted   bool
	}{
		"List":       {want: "olm/wares:lamp shop/own:torch", noted: true},
		"Catalog":    {catalog: "own", want: "shop/own:torch", noted: true},
		"Words":      {words: []string{"lamp"}, want: "olm/wares:lamp shop/own", noted: true},
		"ListFails":  {failure: apierrors.NewForbidden(manifests, "", nil), code: console.Forbidden},
		"ListLacks":  {failure: errors.New("no API"), code: console.Forbidden},
		"Forward":    {answers: []answer{{Catalog: wares, Err: refused}, {Catalog: own}}, want: "olm/wares:lamp shop/own", noted: true},
		"OtherError": {answers: []answer{{Catalog: wares, Err: errors.New("away")}}, want: "olm/wares", code: console.Failed},
		"Unread":     {answers: []answer{{Catalog: types.NamespacedName{Namespace: "olm", Name: "new"}, Err: refused}}, want: "olm/new", code: console.Forbidden},
		"Both":       {answers: []answer{{Catalog: wares, Err: refused}}, failure: errors.New("no API"), want: "olm/wares", code: console.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fallback{words: tt.words, list: func() (catalogquery.Manifests, error) {
				return catalogquery.Manifests{lamp, torch}, tt.failure
			}}
			answers, err := f.refused(tt.answers), error(nil)
			if tt.answers == nil {
				answers, err = f.all(tt.catalog, refused)
			}
			var got []string
			for _, one := range answers {
				words := []string{one.Catalog.String()}
				for _, match := range one.Value {
					words = append(words, match.Package)
				}
				got = append(got, strings.Join(words, ":"))
				err = errors.Join(err, one.Err)
			}
			notes := f.notes()
			if text := strings.Join(got, " "); text != tt.want || console.CodeOf(err) != tt.code || (len(notes) > 0) != tt.noted {
				t.Errorf("got %q, want %q; error %v, want code %d; note %q", text, tt.want, err, tt.code, notes)
			}
		})
	}
}

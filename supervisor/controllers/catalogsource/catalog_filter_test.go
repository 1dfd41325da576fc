package catalogsource

import (
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

func TestReadSelection(t *testing.T) {
	for name, test := range map[string]struct {
		reason, text string
		want         string
		wantErr      string
	}{
		"Block":    {reason: "as people write it", text: "packages:\n- name: lamp\n  versions: '>=1.0.0'\n", want: `{"packages":[{"name":"lamp","versions":">=1.0.0"}]}`},
		"Flow":     {reason: "on one line", text: `{heads: true}`, want: `{"heads":true}`},
		"Variable": {reason: "Kubernetes replaces none", text: `{packages: [{name: "a$(HOME)"}]}`, want: `{"packages":[{"name":"a\u0024(HOME)"}]}`},
		"ImageSet": {
			reason: "the entry for the image",
			text:   "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {operators: [{catalog: other, full: true}, {catalog: shops/shop:1, packages: [{name: lamp}]}]}",
			want:   `{"packages":[{"name":"lamp","heads":true}]}`,
		},
		"Whole": {
			reason: "nothing is left out",
			text:   "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {operators: [{catalog: other, full: true}]}",
		},
		"Field":  {reason: "named", text: `{"pkgs":[]}`, wantErr: `reading the selection: json: unknown field "pkgs"`},
		"Lines":  {reason: "on one line", text: "packages: [{name: a, versions: x1}, {name: b, versions: x1}]", wantErr: `write a range such as >=1.0.0 <1.2.0 package "b"`},
		"Empty":  {reason: "it would say nothing", wantErr: "the selection is empty"},
		"Large":  {reason: "an argument is bounded", text: `{"packages":[{"name":"` + strings.Repeat("a", maxSelection) + `"}]}`, wantErr: "it takes more than 65536 bytes"},
		"Scalar": {reason: "neither", text: "Lamp!", wantErr: "reading the selection: wrong type: it must be an object, found string"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readSelection(test.text, "shops/shop:1")
			if (err == nil) != (test.wantErr == "") || err != nil && (!strings.Contains(err.Error(), test.wantErr) || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.wantErr)
			}
			if got != test.want {
				t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
			}
		})
	}
}

func TestSelectionIn(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		data   map[string]string
		want   string
		err    error
	}{
		"Only":  {reason: "whatever it is called", data: map[string]string{"x.yaml": "a"}, want: "a"},
		"Named": {reason: "among others", data: map[string]string{"x": "a", "selection": "b"}, want: "b"},
		"Many":  {reason: "none is named", data: map[string]string{"x": "a", "y": "b"}, err: errManySelections},
		"None":  {reason: "nothing is there", err: errNoSelection},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := selectionIn(&corev1.ConfigMap{Data: test.data})
			if got != test.want || err != test.err { //nolint:errorlint // these very errors
				t.Errorf("%s: got %q, %v", test.reason, got, err)
			}
		})
	}
}

// TestFilterOfAddress checks the message for an annotation without effect.
func TestFilterOfAddress(t *testing.T) {
	source := shop(annotated(api.AnnotationCatalogFilter, "part"))
	source.Spec.Image, source.Spec.Address = "", "here:1"
	got := deriveStatus(source, catalogs.State{}, false, &reconcileResult{}, metav1.NewTime(noon))
	const want = `annotation chandlery.dev/catalog-filter is "part" and has no effect on a catalog at spec.address; ` +
		"remove it, or name the image of the catalog in spec.image"
	if got.Message != want || got.Reason != operatorsv1alpha1.CatalogSourceSpecInvalidError {
		t.Errorf("got %s: %s", got.Reason, got.Message)
	}
}

package image

import (
	"archive/tar"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// annotated returns a file annotations.yaml.
func annotated(lines ...string) entry {
	return entry{name: "metadata/annotations.yaml", text: "annotations:\n  " + strings.Join(lines, "\n  ") + "\n"}
}

func TestExtractBundle(t *testing.T) {
	format := map[string]string{labelManifests: "manifests/", labelMediaType: "registry+v1"}
	manifest := entry{name: "manifests/c", text: "1"}
	for what, tc := range map[string]struct {
		reason string
		labels map[string]string
		layers [][]entry
		dir    string
		want   map[string]string
	}{
		"Labelled": {
			reason: "the label names the directory", labels: format, layers: [][]entry{{manifest, annotated("x: y")}}, dir: "/manifests",
		},
		"LabelledElsewhere": {
			reason: "wherever that is", labels: map[string]string{labelManifests: "/a/b/"},
			layers: [][]entry{{{name: "a/b/c", text: "1"}, {name: "manifests/d", text: "2"}}}, dir: "/a/b",
		},
		"Annotated": {
			reason: "without labels the file counts", layers: [][]entry{{annotated(labelManifests+": manifests/", labelMediaType+": registry+v1")}, {manifest}}, dir: "/manifests",
		},
		"AnnotatedElsewhere": {
			reason: "wherever it points to", dir: "/deploy/olm",
			layers: [][]entry{{manifest, annotated(labelManifests + ": deploy/olm/")}, {{name: "deploy/olm/c", text: "1"}}},
		},
		"AnnotatedAbove": {
			reason: "a later layer has the last word", dir: "/new",
			layers: [][]entry{{annotated(labelManifests + ": old/"), {name: "old/c", text: "0"}}, {annotated(labelManifests + ": new/"), {name: "new/c", text: "1"}}},
		},
		"LabelWins": {
			reason: "labels say more than the file", labels: format, layers: [][]entry{{manifest, annotated(labelManifests + ": other/")}}, dir: "/manifests",
		},
		"Nothing": {
			reason: "without either there is a rule", layers: [][]entry{{manifest}}, dir: "/manifests",
		},
		"EmptyFile": {
			reason: "nor does the file have to say it", layers: [][]entry{{manifest, {name: "metadata/annotations.yaml", text: ""}}}, dir: "/manifests",
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := serve(t, (*httptest.Server).Start)
			var layers [][]byte
			for _, entries := range tc.layers {
				layers = append(layers, layer(t, entries...))
			}
			reference := r.push(t, "bundle:v1", build(t, tc.labels, layers...))
			to := newPulled(t)
			got, err := client(t, nil).Extract(t.Context(), reference, Bundle(), to.dir, to.scratch)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(map[string]string{"c": "1"}, to.files(t)); diff != "" || got.Dir != tc.dir || got.Files != 1 {
				t.Errorf("%s: %+v (-want +got):\n%s", tc.reason, got, diff)
			}
			to.clean(t)
		})
	}
}

func TestExtractBundleRefuses(t *testing.T) {
	manifest := entry{name: "manifests/c", text: "1"}
	for what, tc := range map[string]struct {
		labels  map[string]string
		entries []entry
		want    Reason
		text    string
	}{
		"Catalog":        {labels: map[string]string{labelCatalog: "/configs"}, entries: []entry{manifest}, want: ReasonNoTree, text: "it holds a catalog, not a bundle"},
		"Database":       {labels: map[string]string{labelDatabase: "/x"}, entries: []entry{manifest}, want: ReasonNoTree, text: "an SQLite catalog"},
		"Neither":        {entries: []entry{{name: "bin/x", text: "1"}}, want: ReasonNoTree, text: "directory /manifests is not in the image, and it has no label " + labelManifests},
		"Helm":           {labels: map[string]string{labelManifests: "manifests/", labelMediaType: "helm"}, entries: []entry{manifest}, want: ReasonFormat, text: `is of format "helm"`},
		"AnnotatedPlain": {entries: []entry{manifest, annotated(labelMediaType + ": plain+v0")}, want: ReasonFormat, text: `is of format "plain+v0"`},
		"LabelNowhere":   {labels: map[string]string{labelManifests: "olm/"}, entries: []entry{manifest}, want: ReasonNoTree, text: "directory /olm is not in the image"},
		"FileNowhere":    {entries: []entry{manifest, annotated(labelManifests + ": olm/")}, want: ReasonNoTree, text: "directory /olm is not in the image"},
		"BadFile":        {entries: []entry{manifest, {name: "metadata/annotations.yaml", text: "annotations: ["}}, want: ReasonInvalid, text: "/metadata/annotations.yaml cannot be decoded"},
		"LongFile":       {entries: []entry{manifest, {name: "metadata/annotations.yaml", text: strings.Repeat("#", maxAnnotations+1)}}, want: ReasonTooLarge, text: "annotations.yaml has more than"},
		"FolderAsFile":   {entries: []entry{manifest, {name: "metadata/annotations.yaml", kind: tar.TypeDir}}, want: ReasonInvalid, text: "/metadata/annotations.yaml is no file"},
		"Upwards":        {entries: []entry{{name: "manifests/../../x", text: "1"}}, want: ReasonInvalid, text: "leads upwards"},
	} {
		t.Run(what, func(t *testing.T) {
			r := serve(t, (*httptest.Server).Start)
			reference := r.push(t, "bundle:v1", build(t, tc.labels, layer(t, tc.entries...)))
			to := newPulled(t)
			_, err := client(t, nil).Extract(t.Context(), reference, Bundle(), to.dir, to.scratch)
			expect(t, what, err, reference, tc.want, tc.text)
			to.clean(t)
		})
	}
}

// TestFind looks for an existing and a missing image by digest.
func TestFind(t *testing.T) {
	r := serve(t, (*httptest.Server).Start)
	img := simple(t, "1")
	reference := r.push(t, "a:v1", img)
	digest := digestOf(t, img)
	for _, one := range []string{reference, r.host() + "/a@" + digest} {
		if got, err := client(t, nil).Find(t.Context(), one); err != nil || got != digest {
			t.Errorf("%s: got %s, %v", one, got, err)
		}
	}
	missing := r.host() + "/a@sha256:" + strings.Repeat("a", 64)
	_, err := client(t, nil).Find(t.Context(), missing)
	expect(t, "a digest that is not there", err, missing, ReasonNotFound, "404")
	r.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	_, err = client(t, nil).Find(t.Context(), r.host()+"/a@"+digest)
	expect(t, "a digest that is not for everybody", err, r.host()+"/a@"+digest, ReasonUnauthorized, "403")
}

func digestOf(t *testing.T, img v1.Image) string {
	t.Helper()
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

package plansteps_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

func TestManifestWarnings(t *testing.T) {
	const csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},"spec":{"install":{"strategy":"deployment","spec":{"deployments":[
		{"name":"lamp","spec":{"selector":{},"template":{"spec":{"containers":[{"name":"a",
			"env":[{"name":"A","value":"1"},{"value":"no name"},{"name":"A","value":"2"},{"name":"A","value":"3"}],
			"ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":"x"},{"containerPort":"x"},{"containerPort":80,"protocol":"UDP"},{"containerPort":80}]}]}}}}]}}}}`
	b := plansteps.Bundle{Name: "lamp.v1", Package: "lamp", Objects: []string{
		strings.Replace(csv, `"spec":`, `"spec":{},"spec":`, 1),
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key"},"data":{"a":"b","a":"c","a":"d"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`,
	}}
	// A port that is not a number is refused because of its type.
	steps, err := plansteps.Steps("yard", plansteps.Bundle{Name: b.Name, Package: b.Package, Objects: append([]string{strings.ReplaceAll(b.Objects[0], `{"containerPort":"x"},`, "")}, b.Objects[1:]...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := plansteps.ManifestWarnings(steps, []plansteps.Bundle{b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const path = "spec.install.spec.deployments[0].spec.template.spec.containers[0]"
	want := map[int][]string{}
	for i, s := range steps {
		switch s.Resource.Name {
		case "lamp.v1":
			want[i] = []string{
				`duplicate field "spec"`, path + `.env[2]: hides previous definition of "A"`, path + `.env[3]: hides previous definition of "A"`,
				path + `.ports[4]: duplicate port definition with ` + path + `.ports[0]`,
			}
			if m := s.Resource.Manifest; strings.Count(m, `"name":"A"`) != 1 || !strings.Contains(m, `"value":"3"`) || strings.Count(m, `"containerPort":80`) != 2 {
				t.Errorf("the step has %s", m)
			}
		case "key":
			want[i] = []string{`duplicate field "data.a"`}
		}
	}
	if diff := cmp.Diff(want, plansteps.ManifestWarningsOf(map[string]string{api.AnnotationManifestWarnings: text})); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if text, err := plansteps.ManifestWarnings(steps, []plansteps.Bundle{{Name: b.Name, Objects: b.Objects[2:]}}, nil); text != "" || err != nil {
		t.Errorf("a bundle without duplicates: %q, %v", text, err)
	}
}

func TestManifestWarningsAreBounded(t *testing.T) {
	key := strings.Repeat("k", 40<<10)
	object := func(name string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"` + key + `":"a","` + key + `":"b"}}`
	}
	b := plansteps.Bundle{Name: "lamp.v1", Package: "lamp", Objects: []string{
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"}}`, object("a"), object("b"), object("c"),
	}}
	steps, err := plansteps.Steps("yard", b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := plansteps.ManifestWarnings(steps, []plansteps.Bundle{b}, nil); err != nil || len(text) < len(key) || len(text) > 64<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

package imagesources

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/openshiftobjects"
)

// TestMirrorSets checks which sources images have while objects of OpenShift change, step by step.
func TestMirrorSets(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	mirrors := func(field, mirror, policy string) map[string]any {
		set := map[string]any{"source": "source.test", "mirrors": []any{mirror}}
		if policy != "" {
			set["mirrorSourcePolicy"] = policy
		}
		return map[string]any{field: []any{set}}
	}
	digests := openshiftobjects.Specs{"ImageDigestMirrorSet": {"b": mirrors("imageDigestMirrors", "b.test", ""), "a": mirrors("imageDigestMirrors", "a.test", "")}}
	all := openshiftobjects.Specs{
		"ImageDigestMirrorSet":     {"a": mirrors("imageDigestMirrors", "a.test", "NeverContactSource")},
		"ImageTagMirrorSet":        {"t": mirrors("imageTagMirrors", "t.test", "")},
		"ImageContentSourcePolicy": {"i": mirrors("repositoryDigestMirrors", "i.test", "")},
	}
	broken := openshiftobjects.Specs{"ImageTagMirrorSet": {"t": map[string]any{"imageTagMirrors": "x"}}}
	c := &openshiftobjects.Reader{}
	s := New(sources.Paths{}, nil)
	s.AwaitMirrors()
	for i, step := range []struct {
		reason        string
		outcome       discovery.Outcome
		specs         openshiftobjects.Specs
		err           error
		problem       string
		digest, byTag string
	}{
		{reason: "it is not known", outcome: discovery.Unreachable, problem: "the mirrors in objects of OpenShift cannot be read", digest: "error", byTag: "error"},
		{reason: "it must not be read", outcome: discovery.Installed, err: errors.New("forbidden"), problem: "listing ImageDigestMirrorSet: forbidden; allow", digest: "error", byTag: "error"},
		{reason: "no OpenShift", outcome: discovery.NotInstalled, digest: "source.test", byTag: "source.test"},
		{reason: "digests", outcome: discovery.Installed, specs: digests, digest: "a.test b.test source.test", byTag: "source.test"},
		{reason: "all kinds", outcome: discovery.Installed, specs: all, digest: "a.test i.test", byTag: "t.test"},
		{reason: "a broken object", outcome: discovery.Installed, specs: broken, problem: "ImageTagMirrorSet t: spec.imageTagMirrors cannot be decoded", digest: "a.test i.test", byTag: "t.test"},
		{reason: "the last known ones stay", outcome: discovery.Unreachable, problem: "; the last known mirrors stay in use", digest: "a.test i.test", byTag: "t.test"},
		{reason: "disabled", outcome: discovery.Skipped, digest: "source.test", byTag: "source.test"},
	} {
		c.Specs, c.Err = step.specs, step.err
		s.Found(t.Context(), c, openshiftobjects.Checked(step.outcome))
		if got := s.Problem(); !strings.Contains(got, step.problem) || (got == "") != (step.problem == "") {
			t.Errorf("%d: %s: problem %q", i, step.reason, got)
		}
		for image, want := range map[string]string{"source.test/a" + digest: step.digest, "source.test/a:v1": step.byTag} {
			if got := asked(t, s, image); got != want {
				t.Errorf("%d: %s: %s is asked of %q, want %q", i, step.reason, image, got, want)
			}
		}
	}
}

// routeOf returns the sources of an image.
func routeOf(t *testing.T, router image.Router, reference string) (image.Route, error) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	return router.Route(ref)
}

// asked returns the registries that are asked for an image.
func asked(t *testing.T, router image.Router, reference string) string {
	t.Helper()
	route, err := routeOf(t, router, reference)
	if err != nil {
		return "error"
	}
	var hosts []string
	for i := range route.Sources {
		hosts = append(hosts, route.Sources[i].Reference.Context().RegistryStr())
	}
	return strings.Join(hosts, " ")
}

// merge is objects of OpenShift, and the places that a node asks for images. testdata/merges.json has what the
// machine config operator makes of the objects: github.com/openshift/runtime-utils/pkg/registries at
// v0.0.0-20230921210328-7bdb5b9c177b writes registries.conf, and github.com/containers/image/v5 v5.22.0 reads it.
type merge struct {
	Name    string `json:"name"`
	Objects []struct {
		Kind string           `json:"kind"`
		Name string           `json:"name"`
		Sets []map[string]any `json:"sets"`
	} `json:"objects"`
	Asked map[string][]string `json:"asked"`
}

// TestMergesOfOpenShift compares the places that the supervisor asks with those that nodes ask.
func TestMergesOfOpenShift(t *testing.T) {
	text, err := os.ReadFile("testdata/merges.json")
	if err != nil {
		t.Fatal(err)
	}
	var merges []merge
	if err := json.Unmarshal(text, &merges); err != nil {
		t.Fatal(err)
	}
	if len(merges) != 12 {
		t.Fatalf("there are %d merges, want 12", len(merges))
	}
	fields := map[string]string{}
	for _, kind := range mirrorKinds() {
		fields[kind.gvk.Kind] = kind.field
	}
	for _, m := range merges {
		t.Run(m.Name, func(t *testing.T) {
			specs := openshiftobjects.Specs{}
			for _, o := range m.Objects {
				if specs[o.Kind] == nil {
					specs[o.Kind] = map[string]any{}
				}
				var sets []any
				for _, set := range o.Sets {
					sets = append(sets, set)
				}
				specs[o.Kind][o.Name] = map[string]any{fields[o.Kind]: sets}
			}
			s := New(sources.Paths{}, nil)
			s.Found(t.Context(), &openshiftobjects.Reader{Specs: specs}, openshiftobjects.Checked(discovery.Installed))
			if problem := s.Problem(); problem != "" {
				t.Fatal(problem)
			}
			for reference, want := range m.Asked {
				if diff := cmp.Diff(want, places(t, s, reference)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", reference, diff)
				}
			}
		})
	}
}

// places returns the references that are asked for an image.
func places(t *testing.T, router image.Router, reference string) []string {
	t.Helper()
	route, err := routeOf(t, router, reference)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for i := range route.Sources {
		list = append(list, route.Sources[i].Reference.Name())
	}
	return list
}

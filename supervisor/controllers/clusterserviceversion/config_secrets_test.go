package clusterserviceversion

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestPullSecrets(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   []corev1.LocalObjectReference
		err    string
	}{
		"Names":   {"names alone", `["a", "b"]`, []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}, ""},
		"Pods":    {"as pods have them", `[{"name": "a"}, "b"]`, []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}, ""},
		"Empty":   {"no name", `[""]`, nil, "must be the name of a Secret"},
		"Nothing": {"nor here", `[{}]`, nil, "imagePullSecrets[0].name: Required value"},
		"Unknown": {"what is not known is not passed over", `[{"name": "a", "namespace": "b"}]`, nil, "imagePullSecrets[0].namespace: unknown field"},
		"Number":  {"nor what is no name", `[1]`, nil, `must be a name or {"name": NAME}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sub := subscription("kettle", installed("kettle.v1"))
			sub.Annotations = map[string]string{api.AnnotationConfig: `{"imagePullSecrets": ` + tc.text + `}`}
			s, err := settingsOf(&sub)
			if (tc.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s\nsettingsOf(...): %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, s.overrides.ImagePullSecrets); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDocumentedSettings applies the example of the manual.
func TestDocumentedSettings(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile(`(?s)` + api.AnnotationConfig + `: \|\s*(\{.*?\})\s*` + "```").FindSubmatch(text)
	if example == nil {
		t.Fatal("docs/operations.md has no example")
	}
	sub := subscription("kettle", installed("kettle.v1"))
	sub.Annotations = map[string]string{api.AnnotationConfig: string(example[1])}
	if _, err := settingsOf(&sub); err != nil {
		t.Error(err)
	}
}

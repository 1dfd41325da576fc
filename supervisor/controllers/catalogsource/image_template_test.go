package catalogsource

import (
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestTemplate(t *testing.T) {
	version := semver.Version{Major: 1, Minor: 36, Patch: 3}
	for template, want := range map[string]string{
		"shop:v{kube_major_version}.{kube_minor_version}": "shop:v1.36",
		"shop:{kube_patch_version}":                       "shop:3",
		"shop:1":                                          "shop:1",
		"shop:{odd}":                                      "",
		"":                                                "",
	} {
		source := shop(annotated(api.AnnotationCatalogImageTemplate, template))
		if got := templateImage(source, version); got != want {
			t.Errorf("template %q: %q, want %q", template, got, want)
		}
		var conditions []metav1.Condition
		setTemplateConditions(&conditions, source, version, metav1.NewTime(noon))
		switch {
		case template == "" && len(conditions) != 0, template != "" && len(conditions) != 2:
			t.Errorf("template %q: conditions %+v", template, conditions)
		case len(conditions) == 2 && want == "" && !strings.Contains(conditions[0].Message, "cannot construct catalog image reference"):
			t.Errorf("template %q: %+v", template, conditions[0])
		}
		later := append([]metav1.Condition(nil), conditions...)
		setTemplateConditions(&later, source, version, metav1.NewTime(noon.Add(time.Hour)))
		if diff := cmp.Diff(conditions, later); diff != "" {
			t.Errorf("nothing happened and conditions changed:\n%s", diff)
		}
	}
}

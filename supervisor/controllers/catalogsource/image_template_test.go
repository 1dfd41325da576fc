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

// TestTemplateMessage compares both conditions with those that OLM sets.
func TestTemplateMessage(t *testing.T) {
	const (
		improper   = "one or more template(s) has improper syntax"
		unresolved = `variable(s) "{kube_minor_version}", "{kube_major_version}" could not be resolved`
	)
	known := semver.Version{Major: 1, Minor: 36, Patch: 3}
	for name, tc := range map[string]struct {
		template string
		version  semver.Version
		resolved string
		causes   string
	}{
		"Variable":  {"shop:{odd}", known, "shop:{odd}", improper},
		"Object":    {"shop:{group:,version:v1,kind:ConfigMap,name:gone}", known, "shop:{group:,version:v1,kind:ConfigMap,name:gone}", improper},
		"Unclosed":  {"shop:{kube_major_version", known, "shop:{kube_major_version", improper},
		"Letters":   {"Shop:{kube_major_version}", known, "Shop:1", improper},
		"NoVersion": {"shop:{kube_minor_version}.{kube_major_version}", semver.Version{}, "shop:missing.missing", unresolved},
		"Both":      {"shop:{odd}{kube_minor_version}{kube_major_version}", semver.Version{}, "shop:{odd}missingmissing", unresolved + " and " + improper},
	} {
		var conditions []metav1.Condition
		source := shop(annotated(api.AnnotationCatalogImageTemplate, tc.template))
		setTemplateConditions(&conditions, source, tc.version, metav1.NewTime(noon))
		want := []string{"False UnableToResolve cannot construct catalog image reference, because " + tc.causes, "False UnableToResolve " + tc.resolved}
		var got []string
		for _, c := range conditions {
			got = append(got, string(c.Status)+" "+c.Reason+" "+c.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", name, diff)
		}
		if image := templateImage(source, tc.version); image != "" {
			t.Errorf("%s: the image is %q, want none", name, image)
		}
	}
}

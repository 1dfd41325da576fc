package migration

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestCatalogNamespaceOf checks where the namespace of the global catalogs is read.
func TestCatalogNamespaceOf(t *testing.T) {
	for name, tt := range map[string]struct {
		container corev1.Container
		want      string
	}{
		"Default":   {corev1.Container{Command: []string{"/bin/catalog"}, Args: []string{"--debug"}}, "olm"},
		"Separate":  {corev1.Container{Command: []string{"/bin/catalog"}, Args: []string{"--namespace", "shared", "--debug"}}, "shared"},
		"Joined":    {corev1.Container{Command: []string{"/bin/catalog", "-namespace=shared"}}, "shared"},
		"Last":      {corev1.Container{Args: []string{"--namespace=a", "--namespace", "shared"}}, "shared"},
		"NoValue":   {corev1.Container{Args: []string{"--namespace"}}, "olm"},
		"Longer":    {corev1.Container{Args: []string{"--namespaces=a"}}, "olm"},
		"Variable":  {corev1.Container{Env: []corev1.EnvVar{{Name: "NAMESPACE_VARIABLE", Value: "shared"}}}, "shared"},
		"FlagFirst": {corev1.Container{Args: []string{"--namespace=flag"}, Env: []corev1.EnvVar{{Name: "NAMESPACE_VARIABLE", Value: "shared"}}}, "flag"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{tt.container}
			if got := containerSetting(d, "namespace", "NAMESPACE_VARIABLE", defaultCatalogNamespace); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestCatalogNamespaces checks when a takeover would lose the global catalogs.
func TestCatalogNamespaces(t *testing.T) {
	for name, tt := range map[string]struct {
		found         CatalogNamespaces
		blocker, risk string
	}{
		"Same":           {found: CatalogNamespaces{"shared", "shared"}},
		"Different":      {found: CatalogNamespaces{"shared", "olm"}, blocker: "start the supervisors with --global-catalog-namespace=shared"},
		"NoOLM":          {found: CatalogNamespaces{"", "olm"}},
		"Unknown":        {found: CatalogNamespaces{"shared", ""}, risk: "start the supervisors with --global-catalog-namespace=shared"},
		"UnknownDefault": {found: CatalogNamespaces{"olm", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			blocker, risk := tt.found.blocker(), tt.found.risk()
			if !strings.Contains(blocker, tt.blocker) || tt.blocker == "" && blocker != "" {
				t.Errorf("blocked by %q", blocker)
			}
			if !strings.Contains(risk, tt.risk) || tt.risk == "" && risk != "" {
				t.Errorf("risk %q", risk)
			}
		})
	}
}

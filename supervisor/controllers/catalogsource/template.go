package catalogsource

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
)

var templateVariable = regexp.MustCompile(`\{[^{}]*\}`)

// resolveTemplate replaces the Kubernetes version variables of a template. unknown lists the
// remaining variables.
func resolveTemplate(template string, version semver.Version) (resolved string, unknown []string) {
	resolved = strings.NewReplacer(
		"{kube_major_version}", strconv.FormatUint(version.Major, 10),
		"{kube_minor_version}", strconv.FormatUint(version.Minor, 10),
		"{kube_patch_version}", strconv.FormatUint(version.Patch, 10),
	).Replace(template)
	unknown = templateVariable.FindAllString(resolved, -1)
	slices.Sort(unknown)
	return resolved, slices.Compact(unknown)
}

// templateImage returns the image that the template of a CatalogSource resolves to. It is empty
// without a template or with unknown variables.
func templateImage(source *operatorsv1alpha1.CatalogSource, version semver.Version) string {
	template := strings.TrimSpace(source.Annotations[api.AnnotationCatalogImageTemplate])
	resolved, unknown := resolveTemplate(template, version)
	if len(unknown) > 0 {
		return ""
	}
	return resolved
}

// setTemplateConditions sets the conditions for the template.
func setTemplateConditions(conditions *[]metav1.Condition, source *operatorsv1alpha1.CatalogSource, version semver.Version, now metav1.Time) {
	template := strings.TrimSpace(source.Annotations[api.AnnotationCatalogImageTemplate])
	if template == "" {
		apimeta.RemoveStatusCondition(conditions, api.ConditionTemplatesResolved)
		apimeta.RemoveStatusCondition(conditions, api.ConditionResolvedImage)
		return
	}
	resolved, unknown := resolveTemplate(template, version)
	status, reason, message := metav1.ConditionTrue, api.ReasonAllTemplatesResolved, "catalog image reference was successfully resolved"
	if len(unknown) > 0 {
		status, reason = metav1.ConditionFalse, api.ReasonUnableToResolve
		message = fmt.Sprintf("cannot construct catalog image reference %q because one or more variable(s) are unknown: %s; use {kube_major_version}, {kube_minor_version} and {kube_patch_version}",
			template, strings.Join(unknown, ", "))
	}
	setCondition(conditions, metav1.Condition{Type: api.ConditionTemplatesResolved, Status: status, Reason: reason, Message: message}, now)
	setCondition(conditions, metav1.Condition{Type: api.ConditionResolvedImage, Status: status, Reason: reason, Message: resolved}, now)
}

// maxMessage is the maximum length of a message, in bytes. Registries and container runtimes can
// return whole pages, and the API limits conditions.
const maxMessage = 4096

// setCondition sets a condition. Its transition time changes only with its status.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now metav1.Time) {
	c.Message, c.LastTransitionTime = bundles.Clip(c.Message, maxMessage), now
	if old := apimeta.FindStatusCondition(*conditions, c.Type); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	apimeta.SetStatusCondition(conditions, c)
}

// withConditions returns conditions with the wanted ones, which apply to a generation.
func withConditions(conditions, wanted []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	for _, c := range wanted {
		c.ObservedGeneration = generation
		setCondition(&conditions, c, now)
	}
	return conditions
}

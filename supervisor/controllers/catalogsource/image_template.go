package catalogsource

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/blang/semver/v4"
	refs "github.com/distribution/reference"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apiserver/kubeversion"
)

// templateVariable matches the variables of a template.
var templateVariable = regexp.MustCompile(`\{kube_(?:major|minor|patch)_version\}`)

// missingValue is what OLM writes for a variable without a value.
const missingValue = "missing"

// resolveTemplate replaces the variables of a template. problem is OLM's sentence if the result names no image.
func resolveTemplate(template string, version semver.Version) (resolved, problem string) {
	known := !version.Equals(semver.Version{})
	values := map[string]uint64{"{kube_major_version}": version.Major, "{kube_minor_version}": version.Minor, "{kube_patch_version}": version.Patch}
	var unresolved []string
	resolved = templateVariable.ReplaceAllStringFunc(template, func(variable string) string {
		if !known {
			unresolved = append(unresolved, variable)
			return missingValue
		}
		return strconv.FormatUint(values[variable], 10)
	})
	_, err := refs.Parse(resolved)
	if err == nil && len(unresolved) == 0 {
		return resolved, ""
	}
	return resolved, olmtext.TemplateUnresolved(unresolved, err != nil)
}

// templateImage returns the image that the template of a CatalogSource resolves to. It is empty
// without a template and for a template that cannot be resolved.
func templateImage(source *operatorsv1alpha1.CatalogSource, version semver.Version) string {
	template := strings.TrimSpace(source.Annotations[api.AnnotationCatalogImageTemplate])
	resolved, problem := resolveTemplate(template, version)
	if problem != "" {
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
	status, reason, message := metav1.ConditionTrue, api.ReasonAllTemplatesResolved, olmtext.TemplateResolved
	resolved, problem := resolveTemplate(template, version)
	if problem != "" {
		status, reason, message = metav1.ConditionFalse, api.ReasonUnableToResolve, problem
	}
	setCondition(conditions, metav1.Condition{Type: api.ConditionTemplatesResolved, Status: status, Reason: reason, Message: message}, now)
	setCondition(conditions, metav1.Condition{Type: api.ConditionResolvedImage, Status: status, Reason: reason, Message: resolved}, now)
}

// versionAge is how long the API server's version is cached. It changes when the cluster is
// upgraded.
const versionAge = 5 * time.Minute

// serverVersion caches the version of the API server.
type serverVersion struct {
	discover discovery.ServerVersionInterface
	clock    clock.PassiveClock

	mu   sync.Mutex
	last *semver.Version
	at   time.Time
}

// get returns the version; the zero version if the API server returns an unknown text.
func (s *serverVersion) get() (semver.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); s.last == nil || now.Sub(s.at) > versionAge {
		info, err := s.discover.ServerVersion()
		if err != nil && s.last == nil {
			return semver.Version{}, fmt.Errorf("asking the API server for its version: %w", err)
		}
		if err == nil {
			version, _ := kubeversion.Parse(info.GitVersion)
			s.last = &version
		}
		s.at = now
	}
	return *s.last, nil
}

package catalogsource

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apiserver/kubeversion"
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
	status, reason, message := metav1.ConditionTrue, api.ReasonAllTemplatesResolved, olmtext.TemplateResolved
	if len(unknown) > 0 {
		status, reason = metav1.ConditionFalse, api.ReasonUnableToResolve
		message = olmtext.TemplateUnresolved
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

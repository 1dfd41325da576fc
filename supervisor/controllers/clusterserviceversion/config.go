package clusterserviceversion

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// settings are the changes that a Subscription and its catalog make to the Deployments of a version. The
// zero settings change nothing.
type settings struct {
	config    operatorsv1alpha1.SubscriptionConfig
	overrides configoverrides.Overrides
	// source names their place in the Subscription; empty without settings.
	source string
	// pullSecrets are those of the catalog for its operators.
	pullSecrets catalogPullSecrets
}

// settingsOf returns the settings in a Subscription; nil has none.
func settingsOf(sub *operatorsv1alpha1.Subscription) (settings, error) {
	var s settings
	if sub == nil {
		return s, nil
	}
	s.source = sourceOf(sub)
	if sub.Spec.Config != nil {
		s.config = *sub.Spec.Config
	}
	var err error
	if s.overrides, err = configoverrides.Parse(sub); err != nil {
		return settings{}, err //nolint:wrapcheck // it names the Subscription and its annotation
	}
	return s, nil
}

// sourceOf returns the place of the settings in a Subscription; empty without settings.
func sourceOf(sub *operatorsv1alpha1.Subscription) string {
	var fields []string
	if sub.Spec.Config != nil && !equality.Semantic.DeepEqual(*sub.Spec.Config, operatorsv1alpha1.SubscriptionConfig{}) {
		fields = append(fields, "spec.config")
	}
	if _, annotated := sub.Annotations[api.AnnotationConfig]; annotated {
		fields = append(fields, "annotation "+api.AnnotationConfig)
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of Subscription %s/%s", strings.Join(fields, " and "), sub.Namespace, sub.Name)
}

// subscriptionOf returns the Subscription for which csv is installed; nil when there is none. The
// one whose status names csv as installed comes first, then the one whose status names it as
// current. Then comes one for its package without an installed version, or with one that csv
// replaces. Its first Deployment then has the final settings, although status.currentCSV may name
// csv only later.
func subscriptionOf(csv *operatorsv1alpha1.ClusterServiceVersion, subs []operatorsv1alpha1.Subscription) *operatorsv1alpha1.Subscription {
	for _, fits := range []func(*operatorsv1alpha1.Subscription) bool{
		func(s *operatorsv1alpha1.Subscription) bool { return s.Status.InstalledCSV == csv.Name },
		func(s *operatorsv1alpha1.Subscription) bool { return s.Status.CurrentCSV == csv.Name },
		func(s *operatorsv1alpha1.Subscription) bool {
			_, labelled := csv.Labels[plansteps.ComponentLabel(s.Spec.Package, csv.Namespace)]
			return labelled && (s.Status.InstalledCSV == "" || s.Status.InstalledCSV == csv.Spec.Replaces)
		},
	} {
		if sub := firstByName(subs, fits); sub != nil {
			return sub
		}
	}
	return nil
}

func firstByName(subs []operatorsv1alpha1.Subscription, fits func(*operatorsv1alpha1.Subscription) bool) *operatorsv1alpha1.Subscription {
	var found *operatorsv1alpha1.Subscription
	for i := range subs {
		sub := &subs[i]
		if sub.Spec != nil && fits(sub) && (found == nil || sub.Name < found.Name) {
			found = sub
		}
	}
	return found
}

// apply applies the settings to the spec of a Deployment.
func (s settings) apply(spec *appsv1.DeploymentSpec) {
	if s.overrides.Replicas != nil {
		spec.Replicas = s.overrides.Replicas
	}
	pod := &spec.Template.Spec
	configurePod(pod, &s.config)
	for i := range pod.Containers {
		configureContainer(&pod.Containers[i], &s.config)
		overrideContainer(&pod.Containers[i], &s.overrides)
	}
	// The annotation names containers, so it may change init containers too.
	for i := range pod.InitContainers {
		overrideContainer(&pod.InitContainers[i], &s.overrides)
	}
	for _, secret := range s.overrides.ImagePullSecrets {
		addMissing(&pod.ImagePullSecrets, secret)
	}
	for _, name := range s.pullSecrets.names {
		addMissing(&pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if s.overrides.PriorityClassName != "" {
		pod.PriorityClassName = s.overrides.PriorityClassName
	}
	if s.overrides.TopologySpreadConstraints != nil {
		pod.TopologySpreadConstraints = s.overrides.TopologySpreadConstraints
	}
	spec.Template.Labels = withMissing(spec.Template.Labels, s.overrides.PodLabels)
	if s.overrides.PodSecurityContext != nil {
		pod.SecurityContext = s.overrides.PodSecurityContext.DeepCopy()
	}
}

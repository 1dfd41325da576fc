package clusterserviceversion

import (
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
)

// configurePod applies the settings of a pod as a whole.
func configurePod(pod *corev1.PodSpec, config *operatorsv1alpha1.SubscriptionConfig) {
	for _, volume := range config.Volumes {
		put(&pod.Volumes, volume, func(v corev1.Volume) bool { return v.Name == volume.Name })
	}
	for _, toleration := range config.Tolerations {
		addMissing(&pod.Tolerations, toleration)
	}
	if config.NodeSelector != nil {
		pod.NodeSelector = maps.Clone(config.NodeSelector)
	}
	pod.Affinity = affinity(pod.Affinity, config.Affinity)
}

// configureContainer applies the settings of spec.config for all containers. Init containers do not change: they
// prepare what the version was built with.
func configureContainer(c *corev1.Container, config *operatorsv1alpha1.SubscriptionConfig) {
	for _, env := range config.Env {
		put(&c.Env, env, func(e corev1.EnvVar) bool { return e.Name == env.Name })
	}
	for _, source := range config.EnvFrom {
		addMissing(&c.EnvFrom, source)
	}
	for _, mount := range config.VolumeMounts {
		put(&c.VolumeMounts, mount, func(m corev1.VolumeMount) bool { return m.Name == mount.Name })
	}
	if config.Resources != nil {
		c.Resources = *config.Resources.DeepCopy()
	}
}

// overrideContainer applies the annotation's settings of a container or init container. They replace those of
// spec.config.
func overrideContainer(c *corev1.Container, overrides *configoverrides.Overrides) {
	c.Args = append(c.Args, overrides.Args[c.Name]...)
	own := overrides.Containers[c.Name]
	if own.Resources != nil {
		c.Resources = *own.Resources.DeepCopy()
	}
	if own.SecurityContext != nil {
		c.SecurityContext = own.SecurityContext.DeepCopy()
	}
}

// affinity returns the affinity of a pod with the wanted changes. A kind that want lacks stays, an
// empty kind is removed, and an empty affinity removes all.
func affinity(have, want *corev1.Affinity) *corev1.Affinity {
	if want == nil {
		return have
	}
	if equality.Semantic.DeepEqual(*want, corev1.Affinity{}) {
		return nil
	}
	merged := corev1.Affinity{}
	if have != nil {
		merged = *have.DeepCopy()
	}
	override(&merged.NodeAffinity, want.NodeAffinity)
	override(&merged.PodAffinity, want.PodAffinity)
	override(&merged.PodAntiAffinity, want.PodAntiAffinity)
	if merged == (corev1.Affinity{}) {
		return nil
	}
	return &merged
}

// override replaces a kind of affinity by a wanted one; an empty one removes it.
func override[T any](field **T, want *T) {
	if want == nil {
		return
	}
	*field = want
	if equality.Semantic.DeepEqual(*want, *new(T)) {
		*field = nil
	}
}

// put replaces the first item that is the same, or appends the item.
func put[T any](items *[]T, item T, same func(T) bool) {
	if i := slices.IndexFunc(*items, same); i >= 0 {
		(*items)[i] = item
		return
	}
	*items = append(*items, item)
}

// addMissing appends an item unless an equal one exists.
func addMissing[T any](items *[]T, item T) {
	if !slices.ContainsFunc(*items, func(have T) bool { return equality.Semantic.DeepEqual(have, item) }) {
		*items = append(*items, item)
	}
}

// withMissing returns annotations or labels, with those of others for keys that they lack.
func withMissing(have, others map[string]string) map[string]string {
	if len(others) == 0 {
		return have
	}
	out := maps.Clone(others)
	maps.Copy(out, have)
	return out
}

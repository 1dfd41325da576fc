package deployment

import (
	"cmp"
	"maps"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/kubeversion"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

const (
	containerImage     = "registry-server"
	containerConfigMap = "configmap-registry-server"
	metricsPort        = 9090
	// restrictedUser is the user ID that catalog images are built for.
	restrictedUser = 1001
	// lostNodeTolerance is how long, in seconds, a replica stays on a node that is NotReady. A
	// replica has no state, so a longer wait has no benefit. A short one spares the replicas of a
	// node that recovers at once.
	lostNodeTolerance = 5
	// drainSeconds is how long a terminating replica continues to serve while clients stop using
	// it.
	drainSeconds = 5
	// graceSeconds is the time for draining and for calls in progress.
	graceSeconds = 30
)

// podTemplate returns the pod template of a catalog.
func podTemplate(in *Input, s *Settings) (*corev1.PodTemplateSpec, error) {
	spec := podSpec(in, s)
	sum, err := hash(spec)
	if err != nil {
		return nil, err
	}
	labels := ReplicaLabels(in.Source.Name)
	labels[api.LabelPodSpecHash] = sum
	if catalogs.IsConfigMap(in.Source) {
		labels[api.LabelConfigMapVersion] = in.ConfigMapVersion
	}
	if ServesTLS(in.Source, s) {
		labels[api.LabelServeTLS] = "true"
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: copiedAnnotations(in.Source)},
		Spec:       spec,
	}, nil
}

func podSpec(in *Input, s *Settings) corev1.PodSpec {
	config, load := podConfig(in.Source), workloadOf(in, s)
	limit := ""
	if RunsRegistry(in.Source, s) {
		limit = s.MemoryLimit
	}
	bounded := func(c corev1.Container) corev1.Container { return withSecurity(withLimit(c, limit), restricted(in)) }
	spec := corev1.PodSpec{
		ServiceAccountName: catalogs.AccountName(in.Source),
		// Replicas do not access the API server.
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		NodeSelector:                  map[string]string{corev1.LabelOSStable: linux},
		Affinity:                      affinity(config.Affinity, in.Source.Name),
		Tolerations:                   withShortTolerations(config.Tolerations),
		PriorityClassName:             cmp.Or(in.Source.Annotations[api.AnnotationPriorityClass], ptr.Deref(config.PriorityClassName, "")),
		TopologySpreadConstraints:     spread(in.Source.Name),
		TerminationGracePeriodSeconds: new(int64(graceSeconds)),
		Containers:                    []corev1.Container{bounded(load.serving)},
		Volumes:                       load.volumes,
	}
	for _, c := range load.init {
		spec.InitContainers = append(spec.InitContainers, bounded(c))
	}
	if config.NodeSelector != nil {
		spec.NodeSelector = maps.Clone(config.NodeSelector)
	}
	if sharesAccount(in.Source) {
		spec.ImagePullSecrets = pullSecretsOf(in.Source)
	}
	if restricted(in) {
		spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		if s.SetWorkloadUserID {
			spec.SecurityContext.RunAsNonRoot, spec.SecurityContext.RunAsUser = new(true), new(int64(restrictedUser))
		}
	}
	return spec
}

// podConfig returns the pod settings of a CatalogSource.
func podConfig(source *operatorsv1alpha1.CatalogSource) *operatorsv1alpha1.GrpcPodConfig {
	if source.Spec.GrpcPodConfig == nil || catalogs.IsConfigMap(source) {
		return &operatorsv1alpha1.GrpcPodConfig{}
	}
	return source.Spec.GrpcPodConfig
}

// server returns the serving container with the settings that all catalogs share.
func server(in *Input) corev1.Container {
	c := corev1.Container{
		Name:                     containerImage,
		Ports:                    []corev1.ContainerPort{{Name: portName, ContainerPort: catalogs.Port, Protocol: corev1.ProtocolTCP}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Resources:                requests(),
		// A start is detected within a second. Indexing a large catalog may take minutes.
		StartupProbe:   probe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 300}),
		ReadinessProbe: probe(corev1.Probe{PeriodSeconds: 5, FailureThreshold: 2}),
		// An overloaded replica is slow, but alive.
		LivenessProbe: probe(corev1.Probe{PeriodSeconds: 10, FailureThreshold: 6}),
	}
	if catalogs.IsConfigMap(in.Source) {
		c.Name = containerConfigMap
	}
	if kubeversion.AtLeast(in.Version, 1, 30) {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}
	}
	if target := podConfig(in.Source).MemoryTarget; target != nil {
		c.Resources.Requests[corev1.ResourceMemory] = target.DeepCopy()
		c.Env = []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: resource.NewQuantity(target.Value(), resource.BinarySI).String() + "B"}}
	}
	return c
}

// requests returns the resource requests of a container.
func requests() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
	}}
}

// probe completes p with a request to the gRPC health service.
func probe(p corev1.Probe) *corev1.Probe {
	p.GRPC = &corev1.GRPCAction{Port: catalogs.Port, Service: new("")}
	p.TimeoutSeconds, p.SuccessThreshold = 5, 1
	return &p
}

// catalogPullPolicy returns Always for a reference by tag, because the tag may have moved.
func catalogPullPolicy(i digest.Image) corev1.PullPolicy {
	if i.IsFixed() {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

// registryPullPolicy returns IfNotPresent for an image with a version tag or a digest. A node can
// then start a replica while the image's registry is unreachable.
func registryPullPolicy(reference string) corev1.PullPolicy {
	untagged := !image.IsDigest(reference) && digest.Repository(reference) == reference
	if untagged || strings.HasSuffix(reference, ":latest") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// withLimit returns a container with a memory limit, but at least its request. An invalid limit, or one
// of 0, is none.
func withLimit(c corev1.Container, text string) corev1.Container {
	limit, err := resource.ParseQuantity(text)
	if err != nil || limit.Sign() <= 0 {
		return c
	}
	if request := c.Resources.Requests.Memory(); request.Cmp(limit) > 0 {
		limit = request.DeepCopy()
	}
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
	return c
}

// withShortTolerations adds tolerations that limit how long a replica stays on an unreachable node,
// unless the user has set them.
func withShortTolerations(given []corev1.Toleration) []corev1.Toleration {
	all := append([]corev1.Toleration(nil), given...)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if tolerates(given, &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}) {
			continue
		}
		all = append(all, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: new(int64(lostNodeTolerance)),
		})
	}
	return all
}

// spread distributes replicas over nodes and zones. The constraints are soft: a second replica on
// the same node is better than none, and a rollout must proceed with few nodes. Only replicas of
// the same revision count, so that terminating replicas do not affect the placement.
func spread(name string) []corev1.TopologySpreadConstraint {
	var all []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		all = append(all, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: ReplicaLabels(name)}, MatchLabelKeys: []string{"pod-template-hash"},
		})
	}
	return all
}

// affinity returns the given affinity with an anti-affinity of replicas, unless it has one. It
// outweighs the scheduler's preference for nodes that have the image.
func affinity(given *corev1.Affinity, name string) *corev1.Affinity {
	all := &corev1.Affinity{}
	if given != nil {
		all = given.DeepCopy()
	}
	if all.PodAntiAffinity == nil {
		all.PodAntiAffinity = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100,
				PodAffinityTerm: corev1.PodAffinityTerm{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: ReplicaLabels(name)},
				},
			}},
		}
	}
	return all
}

// restricted reports whether pods must meet the restricted Pod Security Standard.
func restricted(in *Input) bool {
	if catalogs.IsConfigMap(in.Source) {
		// Chandlery's registry needs no further privileges.
		return true
	}
	if config := in.Source.Spec.GrpcPodConfig; config != nil && config.SecurityContextConfig != "" {
		return config.SecurityContextConfig == operatorsv1alpha1.Restricted
	}
	return in.NamespaceLabels[labelEnforcedSecurity] == "restricted"
}

// withSecurity returns a container that meets the restricted Pod Security Standard, if required.
func withSecurity(c corev1.Container, restricted bool) corev1.Container {
	if restricted {
		c.SecurityContext = c.SecurityContext.DeepCopy()
		c.SecurityContext.AllowPrivilegeEscalation = new(false)
		c.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return c
}

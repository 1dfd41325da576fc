package deployment

import (
	"cmp"
	"maps"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
	"github.com/chandlery/chandlery/supervisor/kubeversion"
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
	if IsConfigMap(in.Source) {
		labels[api.LabelConfigMapVersion] = in.ConfigMapVersion
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: copiedAnnotations(in.Source)},
		Spec:       spec,
	}, nil
}

func podSpec(in *Input, s *Settings) corev1.PodSpec {
	spec := corev1.PodSpec{
		ServiceAccountName: AccountName(in.Source),
		// Replicas do not access the API server.
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		NodeSelector:                  map[string]string{corev1.LabelOSStable: linux},
		TerminationGracePeriodSeconds: new(int64(graceSeconds)),
		Containers:                    []corev1.Container{server(in)},
	}
	if RunsRegistry(in.Source, s) {
		serveContent(&spec, in, s)
	} else {
		spec.Containers[0].Image = in.Image.Reference()
		spec.Containers[0].ImagePullPolicy = catalogPullPolicy(in.Image)
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}
	}
	if sharesAccount(in.Source) {
		spec.ImagePullSecrets = pullSecretsOf(in.Source)
	}
	configure(&spec, in.Source)
	if RunsRegistry(in.Source, s) {
		limitMemory(&spec, s.MemoryLimit)
	}
	spread(&spec, in.Source.Name)
	if restricted(in) {
		restrict(&spec, s.SetWorkloadUserID)
	}
	return spec
}

// server returns the serving container with the settings that all catalogs share.
func server(in *Input) corev1.Container {
	c := corev1.Container{
		Name:                     containerImage,
		Ports:                    []corev1.ContainerPort{{Name: portName, ContainerPort: catalogs.Port, Protocol: corev1.ProtocolTCP}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		// A start is detected within a second. Indexing a large catalog may take minutes.
		StartupProbe:   probe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 300}),
		ReadinessProbe: probe(corev1.Probe{PeriodSeconds: 5, FailureThreshold: 2}),
		// An overloaded replica is slow, but alive.
		LivenessProbe: probe(corev1.Probe{PeriodSeconds: 10, FailureThreshold: 6}),
	}
	if IsConfigMap(in.Source) {
		c.Name = containerConfigMap
	}
	if kubeversion.AtLeast(in.Version, 1, 30) {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}
	}
	return c
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

// configure applies the pod settings of the CatalogSource.
func configure(spec *corev1.PodSpec, source *operatorsv1alpha1.CatalogSource) {
	config := source.Spec.GrpcPodConfig
	if config == nil || IsConfigMap(source) {
		config = &operatorsv1alpha1.GrpcPodConfig{}
	}
	if config.NodeSelector != nil {
		spec.NodeSelector = maps.Clone(config.NodeSelector)
	}
	spec.Affinity = config.Affinity.DeepCopy()
	spec.Tolerations = withShortTolerations(config.Tolerations)
	if config.PriorityClassName != nil {
		spec.PriorityClassName = *config.PriorityClassName
	}
	spec.PriorityClassName = cmp.Or(source.Annotations[api.AnnotationPriorityClass], spec.PriorityClassName)
	if target := config.MemoryTarget; target != nil {
		serving := &spec.Containers[0]
		serving.Resources.Requests[corev1.ResourceMemory] = target.DeepCopy()
		limit := resource.NewQuantity(target.Value(), resource.BinarySI).String() + "B"
		serving.Env = append(serving.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: limit})
	}
}

// limitMemory sets the memory limit of each container, but at least to its request. All containers
// of the pod run Chandlery's registry.
func limitMemory(spec *corev1.PodSpec, text string) {
	limit, err := resource.ParseQuantity(text)
	if err != nil || limit.Sign() <= 0 {
		return
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			bound := limit.DeepCopy()
			if request := containers[i].Resources.Requests.Memory(); request.Cmp(bound) > 0 {
				bound = request.DeepCopy()
			}
			containers[i].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: bound}
		}
	}
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
func spread(spec *corev1.PodSpec, name string) {
	selector := &metav1.LabelSelector{MatchLabels: ReplicaLabels(name)}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
			MatchLabelKeys: []string{"pod-template-hash"},
		})
	}
	if spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	// The additional anti-affinity outweighs the scheduler's preference for nodes that have the
	// image.
	spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight:          100,
			PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector},
		}},
	}
}

// restricted reports whether pods must meet the restricted Pod Security Standard.
func restricted(in *Input) bool {
	if IsConfigMap(in.Source) {
		// Chandlery's registry needs no further privileges.
		return true
	}
	if config := in.Source.Spec.GrpcPodConfig; config != nil && config.SecurityContextConfig != "" {
		return config.SecurityContextConfig == operatorsv1alpha1.Restricted
	}
	return in.NamespaceLabels[labelEnforcedSecurity] == "restricted"
}

func restrict(spec *corev1.PodSpec, setUser bool) {
	spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if setUser {
		spec.SecurityContext.RunAsNonRoot, spec.SecurityContext.RunAsUser = new(true), new(int64(restrictedUser))
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			security := containers[i].SecurityContext
			security.AllowPrivilegeEscalation = new(false)
			security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		}
	}
}

package controllermanager

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	serviceaccounttokens "k8s.io/kubernetes/pkg/serviceaccount"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// Settings of the controllers, as kube-controller-manager has them by default.
const (
	workers           = 5
	namespaceWorkers  = 10
	collectorWorkers  = 20
	syncPeriod        = 5 * time.Minute
	maxBackOff        = 15 * time.Minute
	endpointsPerSlice = 100
	// An autoscaler does nothing while its metric is within the tolerance of the target. It reduces replicas only
	// after the stabilization window, and ignores the processor time of pods during their initialization.
	autoscalerPeriod         = 15 * time.Second
	autoscalerStabilization  = 5 * time.Minute
	autoscalerInitialization = 5 * time.Minute
	autoscalerTolerance      = 0.1
	autoscalerReadinessDelay = 30 * time.Second
	// startupGracePeriod is the time that a new node has for its first heartbeat.
	startupGracePeriod = time.Minute
	// Nodes are tainted at evictionRate per second. If more than unhealthyZoneThreshold of the nodes of a zone are
	// NotReady, the rate is secondaryEvictionRate, or 0 in a cluster with at most largeClusterThreshold nodes.
	evictionRate           = 0.1
	secondaryEvictionRate  = 0.01
	largeClusterThreshold  = 50
	unhealthyZoneThreshold = 0.55
)

// constructor creates a controller and returns the function that runs it until ctx ends.
type constructor func(ctx context.Context, m *manager) (func(ctx context.Context), error)

// constructors are the controllers by their names in kube-controller-manager.
var constructors = map[string]constructor{
	names.ClusterRoleAggregationController:          as("clusterrole-aggregation-controller", newClusterRoleAggregation),
	names.CronJobController:                         as("cronjob-controller", newCronJob),
	names.DaemonSetController:                       as("daemon-set-controller", newDaemonSet),
	names.DeploymentController:                      as("deployment-controller", newDeployment),
	names.DisruptionController:                      as("disruption-controller", newDisruption),
	names.EndpointsController:                       as("endpoint-controller", newEndpoints),
	names.EndpointSliceController:                   as("endpointslice-controller", newEndpointSlice),
	names.GarbageCollectorController:                as("generic-garbage-collector", newGarbageCollector),
	names.HorizontalPodAutoscalerController:         as("horizontal-pod-autoscaler", newHorizontalPodAutoscaler),
	names.JobController:                             as("job-controller", newJob),
	names.NamespaceController:                       newNamespace,
	names.NodeLifecycleController:                   as("node-controller", newNodeLifecycle),
	names.PersistentVolumeClaimProtectionController: as("pvc-protection-controller", newPersistentVolumeClaimProtection),
	names.ReplicaSetController:                      as("replicaset-controller", newReplicaSet),
	names.ResourceQuotaController:                   as("resourcequota-controller", newResourceQuota),
	names.RootCACertificatePublisherController:      as("root-ca-cert-publisher", newRootCACertificatePublisher),
	names.ServiceAccountController:                  as("service-account-controller", newServiceAccount),
	names.ServiceAccountTokenController:             newServiceAccountToken,
	names.StatefulSetController:                     as("statefulset-controller", newStatefulSet),
	names.TaintEvictionController:                   as("node-controller", newTaintEviction),
	names.TTLAfterFinishedController:                as("ttl-after-finished-controller", newTTLAfterFinished),
}

// controllerNames returns the names of all controllers, sorted.
func controllerNames() []string { return slices.Sorted(maps.Keys(constructors)) }

// as gives a constructor a client with the permissions of a service account.
func as(account string, create func(context.Context, *manager, kubernetes.Interface) (func(context.Context), error)) constructor {
	return func(ctx context.Context, m *manager) (func(context.Context), error) {
		client, err := m.client(account)
		if err != nil {
			return nil, err
		}

		return create(ctx, m, client)
	}
}

// runner is a controller with a number of workers.
type runner interface {
	Run(ctx context.Context, workers int)
}

// run returns the function that runs a controller, or the error of its constructor.
func run(r runner, count int, err error) (func(context.Context), error) {
	return func(ctx context.Context) { r.Run(ctx, count) }, err
}

func newClusterRoleAggregation(_ context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	return run(clusterroleaggregation.NewClusterRoleAggregation(m.typed.Rbac().V1().ClusterRoles(), client.RbacV1()), workers, nil)
}

func newCronJob(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	batch := m.typed.Batch().V1()
	c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)

	return run(c, workers, err)
}

func newDaemonSet(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	apps, core := m.typed.Apps().V1(), m.typed.Core().V1()
	c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client,
		flowcontrol.NewBackOff(time.Second, maxBackOff))

	return run(c, workers, err)
}

func newDeployment(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	apps := m.typed.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), m.typed.Core().V1().Pods(), client)

	return run(c, workers, err)
}

// scales returns a client for the numbers of replicas of all kinds.
func (m *manager) scales(config *rest.Config, client kubernetes.Interface) (scale.ScalesGetter, error) {
	return scale.NewForConfig(config, m.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery()))
}

func newDisruption(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	config, err := m.clients.Config("disruption-controller")
	if err != nil {
		return nil, err
	}

	scales, err := m.scales(config, client)
	if err != nil {
		return nil, err
	}

	core, apps := m.typed.Core().V1(), m.typed.Apps().V1()

	return run(disruption.NewDisruptionController(ctx, core.Pods(), m.typed.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, m.mapper, scales, client.Discovery()), workers, nil)
}

func newEndpoints(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	core := m.typed.Core().V1()

	return run(endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0), workers, nil)
}

func newEndpointSlice(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	core := m.typed.Core().V1()

	return run(endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), m.typed.Discovery().V1().EndpointSlices(),
		endpointsPerSlice, client, 0), workers, nil)
}

func newGarbageCollector(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	config, err := m.clients.Config("generic-garbage-collector")
	if err != nil {
		return nil, err
	}
	// A deletion takes two requests.
	config.QPS *= 2

	deletions, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	reads, err := m.rootMetadata()
	if err != nil {
		return nil, err
	}

	graph := garbagecollector.NewDependencyGraphBuilder(ctx, reads, m.mapper, garbagecollector.DefaultIgnoredResources(), m.metadata, m.informersStarted)

	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, deletions, m.mapper, graph)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context) {
		both(
			func() { collector.Run(ctx, collectorWorkers, discoveryPeriod) },
			func() { collector.Sync(ctx, client.Discovery(), discoveryPeriod) })
	}, nil
}

func newHorizontalPodAutoscaler(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	config, err := m.clients.Config("horizontal-pod-autoscaler")
	if err != nil {
		return nil, err
	}

	scales, err := m.scales(config, client)
	if err != nil {
		return nil, err
	}

	resources, err := resourceclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	external, err := external_metrics.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	custom := custom_metrics.NewForConfig(config, m.mapper, custom_metrics.NewAvailableAPIsGetter(client.Discovery()))

	return run(podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), m.mapper,
		metrics.NewRESTMetricsClient(resources, custom, external), m.typed.Autoscaling().V2().HorizontalPodAutoscalers(), m.typed.Core().V1().Pods(),
		autoscalerPeriod, autoscalerStabilization, autoscalerTolerance, autoscalerInitialization, autoscalerReadinessDelay), workers, nil)
}

func newJob(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	// Workloads and groups of pods belong to a feature that is disabled by default.
	c, err := job.NewController(ctx, client, m.typed.Core().V1().Pods(), m.typed.Batch().V1().Jobs(), nil, nil)

	return run(c, workers, err)
}

func newNamespace(ctx context.Context, m *manager) (func(context.Context), error) {
	config, err := m.clients.Config("namespace-controller")
	if err != nil {
		return nil, err
	}
	// A namespace with many objects takes many requests at once.
	config.QPS *= 20
	config.Burst *= 100

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	deletions, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	return run(namespace.NewNamespaceController(ctx, client, deletions, client.Discovery().ServerPreferredNamespacedResources,
		m.typed.Core().V1().Namespaces(), syncPeriod, corev1.FinalizerKubernetes), namespaceWorkers, nil)
}

func newNodeLifecycle(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	core := m.typed.Core().V1()

	c, err := nodelifecycle.NewNodeLifecycleController(ctx, m.typed.Coordination().V1().Leases(), core.Pods(), core.Nodes(), m.typed.Apps().V1().DaemonSets(),
		client, m.options.nodeMonitorPeriod, startupGracePeriod, m.options.nodeMonitorGracePeriod,
		evictionRate, secondaryEvictionRate, largeClusterThreshold, unhealthyZoneThreshold)
	if err != nil {
		return nil, err
	}

	return c.Run, nil
}

func newPersistentVolumeClaimProtection(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	core := m.typed.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(), client)

	return run(c, 1, err)
}

func newReplicaSet(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	return run(replicaset.NewReplicaSetController(ctx, m.typed.Apps().V1().ReplicaSets(), m.typed.Core().V1().Pods(), client,
		replicaset.BurstReplicas), workers, nil)
}

func newResourceQuota(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	configuration, err := quotainstall.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(m.typed.ForResource), m.typed)
	if err != nil {
		return nil, err
	}

	discover := client.Discovery().ServerPreferredNamespacedResources

	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     m.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(syncPeriod),
		InformerFactory:           m.metadata,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resync),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          m.informersStarted,
		Registry:                  generic.NewRegistry(configuration.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context) {
		both(
			func() { c.Run(ctx, workers) },
			func() { c.Sync(ctx, discover, discoveryPeriod) })
	}, nil
}

func newRootCACertificatePublisher(_ context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	rootCA, err := os.ReadFile(m.options.rootCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the flag --root-ca-file: %w", err)
	}

	core := m.typed.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, rootCA)

	return run(c, 1, err)
}

func newServiceAccount(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	core := m.typed.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client,
		serviceaccount.DefaultServiceAccountsControllerOptions())

	return run(c, 1, err)
}

// newServiceAccountToken has the permissions of the process, because no service account may create tokens for all.
func newServiceAccountToken(ctx context.Context, m *manager) (func(context.Context), error) {
	rootCA, err := os.ReadFile(m.options.rootCAFile)
	if err != nil {
		return nil, fmt.Errorf("read the flag --root-ca-file: %w", err)
	}

	key, err := keyutil.PrivateKeyFromFile(m.options.serviceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the flag --service-account-private-key-file: %w", err)
	}

	generator, err := serviceaccounttokens.JWTTokenGenerator(serviceaccounttokens.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}

	client, err := m.root.Client("tokens-controller")
	if err != nil {
		return nil, err
	}

	core := m.typed.Core().V1()
	c, err := serviceaccount.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA})

	return run(c, workers, err)
}

func newStatefulSet(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	apps, core := m.typed.Apps().V1(), m.typed.Core().V1()

	return run(statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
		apps.ControllerRevisions(), client), workers, nil)
}

func newTaintEviction(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	c, err := tainteviction.New(ctx, client, m.typed.Core().V1().Pods(), m.typed.Core().V1().Nodes(), names.TaintEvictionController)
	if err != nil {
		return nil, err
	}

	return c.Run, nil
}

func newTTLAfterFinished(ctx context.Context, m *manager, client kubernetes.Interface) (func(context.Context), error) {
	return run(ttlafterfinished.New(ctx, m.typed.Batch().V1().Jobs(), client), workers, nil)
}

// both runs two functions at once until both return.
func both(first, second func()) {
	var running sync.WaitGroup

	running.Go(first)
	running.Go(second)
	running.Wait()
}

package api

// What you may set.
const (
	// AnnotationPin holds the operator [at a version](../operations.md#a-pinned-version), older or newer.
	//
	//	On:     Subscription
	//	Value:  name of a ClusterServiceVersion
	//	Set by: users
	AnnotationPin = "chandlery.dev/pin"
	// AnnotationOnDelete uninstalls the operator [with its Subscription](../operations.md#uninstalling).
	//
	//	On:     Subscription
	//	Value:  `uninstall`
	//	Set by: users; supervisor on Subscriptions of dependencies
	AnnotationOnDelete = "chandlery.dev/on-delete"
	// AnnotationConfig sets [what `spec.config` has no field for](../operations.md#clusterserviceversions).
	//
	//	On:     Subscription
	//	Value:  a JSON object
	//	Set by: users
	AnnotationConfig = "chandlery.dev/config"
	// AnnotationSkipCleanup keeps the custom resources of a version in its
	// [clean-up](../operations.md#clean-up).
	//
	//	On:     ClusterServiceVersion
	//	Value:  `true`
	//	Set by: users
	AnnotationSkipCleanup = "chandlery.dev/skip-cleanup"
	// AnnotationCertificate marks [a certificate](../operations.md#webhooks-and-apis-of-operators) that the
	// supervisor uses and never writes.
	//
	//	On:     Secret `SERVICE-cert` of an operator
	//	Value:  `provided`; `issued` by cert-manager for the supervisor
	//	Set by: users; cert-manager
	AnnotationCertificate = "chandlery.dev/certificate"
	// AnnotationReplicas sets the number of replicas instead of `--catalog-replicas`. A
	// HorizontalPodAutoscaler [overrides it](../operations.md#catalogs-in-a-cluster).
	//
	//	On:     CatalogSource
	//	Value:  a number
	//	Set by: users
	AnnotationReplicas = "chandlery.dev/replicas"
	// AnnotationKeepConfigMap keeps the ConfigMap of a catalog when the CatalogSource
	// [is deleted](../operations.md#catalogs-in-a-cluster).
	//
	//	On:     CatalogSource
	//	Value:  `true`
	//	Set by: users
	AnnotationKeepConfigMap = "chandlery.dev/keep-config-map"
	// AnnotationCatalogFilter makes replicas of Chandlery's registry serve
	// [a part of the catalog](../selections.md#in-a-cluster).
	//
	//	On:     CatalogSource
	//	Value:  a selection, or name of a ConfigMap with one
	//	Set by: users
	AnnotationCatalogFilter = "chandlery.dev/catalog-filter"
	// AnnotationImageConfig names [mirrors and certificates](../registries.md#for-one-catalog) for the digest and the
	// bundle images of a catalog.
	//
	//	On:     CatalogSource
	//	Value:  name of a ConfigMap
	//	Set by: users
	AnnotationImageConfig = "chandlery.dev/image-config"
	// AnnotationImageVerify adds [rules for signatures](../registries.md#signatures) of the images of a catalog.
	//
	//	On:     CatalogSource
	//	Value:  the name of a ConfigMap
	//	Set by: users
	AnnotationImageVerify = "chandlery.dev/image-verify"
	// AnnotationImagePull says [who pulls the bundle images](../registries.md#pulls-by-nodes) of a catalog, if
	// `--image-pull` is `auto`.
	//
	//	On:     CatalogSource
	//	Value:  `auto`, `supervisor` or `node`
	//	Set by: users
	AnnotationImagePull = "chandlery.dev/image-pull"
	// AnnotationOperatorPullSecrets names [pull secrets for the operators](../registries.md#images-of-operators) of a
	// catalog.
	//
	//	On:     CatalogSource; Deployment of a ClusterServiceVersion
	//	Value:  Secrets, as `NAME,NAME`
	//	Set by: users; supervisor on Deployments
	AnnotationOperatorPullSecrets = "chandlery.dev/operator-pull-secrets" //nolint:gosec // names of Secrets, not what they hold
	// AnnotationTLS connects to `spec.address` [with TLS](../operations.md#tls-to-catalogs), and names the authorities
	// to trust.
	//
	//	On:     CatalogSource
	//	Value:  `system`, `configmap/NAME` or `secret/NAME`, with an optional `/KEY` instead of `ca.crt`
	//	Set by: users
	AnnotationTLS = "chandlery.dev/tls"
	// AnnotationTLSClientCertificate names the Secret with the client certificate for `spec.address`.
	//
	//	On:     CatalogSource
	//	Value:  name of a Secret with `tls.crt` and `tls.key`
	//	Set by: users
	AnnotationTLSClientCertificate = "chandlery.dev/tls-client-certificate"
	// AnnotationTLSServerName is the name to verify instead of the host of `spec.address`.
	//
	//	On:     CatalogSource
	//	Value:  a host name or IP address
	//	Set by: users
	AnnotationTLSServerName = "chandlery.dev/tls-server-name"
	// AnnotationServeTLS makes replicas of Chandlery's registry serve
	// [TLS on port 50052](../operations.md#tls-to-catalogs), instead of `--catalog-tls`.
	//
	//	On:     CatalogSource
	//	Value:  `true` or `false`
	//	Set by: users
	AnnotationServeTLS = "chandlery.dev/serve-tls"
	// AnnotationCatalogImageTemplate names the image of a catalog by the version of the cluster. `spec.image` is
	// used if that fails.
	//
	//	On:     CatalogSource
	//	Value:  an image with `{kube_major_version}`, `{kube_minor_version}`, `{kube_patch_version}`
	//	Set by: users
	AnnotationCatalogImageTemplate = "olm.catalogImageTemplate"
	// AnnotationPriorityClass overrides `spec.grpcPodConfig.priorityClassName`.
	//
	//	On:     CatalogSource
	//	Value:  name of a PriorityClass
	//	Set by: users
	AnnotationPriorityClass = "operatorframework.io/priorityclass"
	// AnnotationExcludeGlobal excludes the catalogs of the global namespace from resolution.
	//
	//	On:     OperatorGroup
	//	Value:  `true`
	//	Set by: users
	AnnotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"
	// AnnotationUnpackTimeout is the time limit for pulling a bundle image, instead of
	// `--bundle-unpack-timeout`.
	//
	//	On:     OperatorGroup
	//	Value:  a duration, `0` for no limit
	//	Set by: users
	AnnotationUnpackTimeout = "operatorframework.io/bundle-unpack-timeout"
	// AnnotationUnpackRetry is the shortest time between two pulls of a bundle image.
	//
	//	On:     OperatorGroup
	//	Value:  a duration
	//	Set by: users
	AnnotationUnpackRetry = "operatorframework.io/bundle-unpack-min-retry-interval"
	// AnnotationProvidedAPIs lists the APIs that the operators of a group provide, or with
	// `spec.staticProvidedAPIs` may provide.
	//
	//	On:     OperatorGroup
	//	Value:  `Kind.version.group,…`
	//	Set by: supervisor; users with `spec.staticProvidedAPIs`
	AnnotationProvidedAPIs = "olm.providedAPIs"
)

// Origin of a version.
const (
	// AnnotationProperties holds the properties of the bundle of a version, for the resolution of updates.
	//
	//	On:     ClusterServiceVersion
	//	Value:  a JSON object
	//	Set by: supervisor
	AnnotationProperties = "operatorframework.io/properties"
	// LabelCatalog is the name of the catalog of a version, if it fits a label.
	//
	//	On:     ClusterServiceVersion
	//	Set by: supervisor
	LabelCatalog = "chandlery.dev/catalog"
	// LabelCatalogNamespace is the namespace of the catalog of a version.
	//
	//	On:     ClusterServiceVersion
	//	Set by: supervisor
	LabelCatalogNamespace = "chandlery.dev/catalog-namespace"
	// AnnotationGeneratedBy names the plan that created a Subscription for a dependency.
	//
	//	On:     Subscription
	//	Value:  name of an InstallPlan
	//	Set by: supervisor
	AnnotationGeneratedBy = "olm.generated-by"
	// PrefixComponent begins the label of all components of an operator, which the Operator lists.
	//
	//	On:     Subscription, InstallPlan, ClusterServiceVersion and their objects
	//	Name:   operators.coreos.com/PACKAGE.NAMESPACE
	//	Set by: supervisor
	PrefixComponent = "operators.coreos.com/"
	// PrefixInstalledAlongside begins the annotations that name the versions with which a definition was installed.
	//
	//	On:     CustomResourceDefinition
	//	Name:   operatorframework.io/installed-alongside-HASH
	//	Value:  `NAMESPACE/NAME` of a ClusterServiceVersion
	//	Set by: supervisor
	PrefixInstalledAlongside = "operatorframework.io/installed-alongside-"
)

// Webhooks and APIs of versions.
const (
	// AnnotationCAHash is a hash of the certificate authority. When it changes, the pods are replaced.
	//
	//	On:     Secret with a certificate, pods of a Deployment
	//	Set by: supervisor
	AnnotationCAHash = "olmcahash"
	// LabelPodAnnotations marks a Deployment whose pods have the annotations of the version.
	//
	//	On:     Deployment of a ClusterServiceVersion
	//	Value:  `all`
	//	Set by: supervisor
	LabelPodAnnotations = "chandlery.dev/pod-annotations"
	// AnnotationStorageVersion is the version in which objects are stored once the conversion webhook of a
	// ClusterServiceVersion answers.
	//
	//	On:     CustomResourceDefinition
	//	Value:  `NAMESPACE/NAME:VERSION`
	//	Set by: supervisor
	AnnotationStorageVersion = "chandlery.dev/storage-version"
	// AnnotationConversion names the ClusterServiceVersion whose webhook converts objects once it answers.
	//
	//	On:     CustomResourceDefinition
	//	Value:  `NAMESPACE/NAME`
	//	Set by: supervisor
	AnnotationConversion = "chandlery.dev/conversion"
	// AnnotationServedVersions lists the versions that are served once their conversion is set up.
	//
	//	On:     CustomResourceDefinition
	//	Value:  `NAMESPACE/NAME:VERSION,VERSION`
	//	Set by: supervisor
	AnnotationServedVersions = "chandlery.dev/served-versions"
)

// Catalogs.
const (
	// AnnotationUnavailableSince is when the catalog of a package stopped serving. The package is the last known one.
	//
	//	On:     PackageManifest
	//	Value:  a time
	//	Set by: supervisor
	AnnotationUnavailableSince = "chandlery.dev/catalog-unavailable-since"
	// AnnotationImage is the image that the CatalogSource names.
	//
	//	On:     Deployment of a catalog
	//	Set by: supervisor
	AnnotationImage = "chandlery.dev/image"
	// AnnotationImageDigest is the digest that the replicas run, absent while they run a tag.
	//
	//	On:     Deployment of a catalog
	//	Set by: supervisor
	AnnotationImageDigest = "chandlery.dev/image-digest"
	// AnnotationCatalogDir is the directory of the catalog in its image, by a label of the image.
	//
	//	On:     Deployment of a catalog
	//	Set by: supervisor
	AnnotationCatalogDir = "chandlery.dev/catalog-dir"
	// AnnotationPullSecrets names the pull secrets of the CatalogSource, which the ServiceAccount has.
	//
	//	On:     pods of a catalog
	//	Value:  Secrets, as `NAME,NAME`
	//	Set by: supervisor
	AnnotationPullSecrets = "chandlery.dev/pull-secrets" //nolint:gosec // names of Secrets, not what they hold
	// AnnotationAppliedHash is a hash of the applied object, to detect fields that are no longer set.
	//
	//	On:     objects of catalogs, webhooks and API services
	//	Set by: supervisor
	AnnotationAppliedHash = "chandlery.dev/applied-hash"
)

// State of the supervisor.
const (
	// AnnotationTransitions is the [transition log](../command-line.md#history).
	//
	//	On:     Subscription
	//	Value:  a JSON list
	//	Set by: supervisor
	AnnotationTransitions = "chandlery.dev/transitions"
	// AnnotationShownConditions lists the conditions that the status copies from `spec.conditions`, to remove
	// them with the originals.
	//
	//	On:     OperatorCondition
	//	Value:  condition types, as `TYPE,TYPE`
	//	Set by: supervisor
	AnnotationShownConditions = "chandlery.dev/shown-conditions"
	// PrefixServes begins the annotations that name the Subscriptions of a plan, to restore removed owner
	// references.
	//
	//	On:     InstallPlan
	//	Name:   chandlery.dev/serves-UID
	//	Value:  the name of the Subscription with the UID
	//	Set by: supervisor
	PrefixServes = "chandlery.dev/serves-"
	// AnnotationVersions names the package of each version that a plan installs.
	//
	//	On:     InstallPlan that installs several versions
	//	Value:  a JSON object: the version of each package
	//	Set by: supervisor
	AnnotationVersions = "chandlery.dev/versions"
	// AnnotationApproval is the last known [approval](../operations.md#approval) of the plan's Subscriptions.
	//
	//	On:     InstallPlan
	//	Value:  `Automatic` or `Manual`
	//	Set by: supervisor
	AnnotationApproval = "chandlery.dev/approval"
	// AnnotationManifestWarnings holds warnings about duplicate keys and list entries in manifests, for the
	// Event of the step.
	//
	//	On:     InstallPlan
	//	Value:  a JSON object of lists, by the index of the step
	//	Set by: supervisor
	AnnotationManifestWarnings = "chandlery.dev/manifest-warnings"
	// AnnotationReverts names the version to which a Subscription is pinned. Its definitions may replace newer
	// ones if no object loses data.
	//
	//	On:     InstallPlan
	//	Value:  name of a ClusterServiceVersion
	//	Set by: supervisor
	AnnotationReverts = "chandlery.dev/reverts"
	// LabelGroupAccount states whether the version's OperatorGroup names a service account, for its
	// [clean-up](../security.md#custom-resources). It is absent while the group targets no namespace.
	//
	//	On:     ClusterServiceVersion
	//	Value:  `named` or `none`
	//	Set by: supervisor
	LabelGroupAccount = "chandlery.dev/operator-group-account"
	// AnnotationFormerChannel is the channel of a version. Only earlier builds wrote it, and the supervisor removes it.
	//
	//	On:     ClusterServiceVersion
	//	Value:  name of a channel
	//	Set by: earlier builds
	AnnotationFormerChannel = "chandlery.dev/channel"
	// AnnotationFormerDigest is the digest of the bundle of a version. Only earlier builds wrote it, and the supervisor
	// removes it.
	//
	//	On:     ClusterServiceVersion
	//	Value:  digest
	//	Set by: earlier builds
	AnnotationFormerDigest = "chandlery.dev/bundle-digest"
	// AnnotationWithdrawn marks a version that never worked and is deleted so that an older one runs again.
	// Custom resources stay.
	//
	//	On:     ClusterServiceVersion
	//	Value:  `to-return` or `to-install`
	//	Set by: supervisor
	AnnotationWithdrawn = "chandlery.dev/withdrawn"
	// AnnotationUninstalls names the generated Subscriptions that are uninstalled with this one.
	//
	//	On:     Subscription that is being deleted
	//	Value:  `NAME,NAME`
	//	Set by: supervisor
	AnnotationUninstalls = "chandlery.dev/uninstalls"
	// AnnotationCause states [why an object does not continue](conditions.md#installplan).
	//
	//	On:     InstallPlan, ClusterServiceVersion
	//	Value:  JSON with `reason`, `step`, `remedy` and `final`
	//	Set by: supervisor
	AnnotationCause = "chandlery.dev/cause"
	// AnnotationTrimmed marks an object of the cache that [lacks a part](../security.md#memory). It is never
	// written to the cluster.
	//
	//	On:     objects in the supervisor's memory
	//	Value:  empty
	//	Set by: supervisor
	AnnotationTrimmed = "chandlery.dev/trimmed"
)

// PodAnnotationsAll is the value of LabelPodAnnotations.
const PodAnnotationsAll = "all"

// Values of AnnotationWithdrawn.
const (
	// WithdrawnToReturn is the value where the older version exists and continues with the definitions
	// as they are.
	WithdrawnToReturn = "to-return"
	// WithdrawnToInstall is the value where the older version is installed afterwards. Its definitions may
	// replace the existing ones, conversions included.
	WithdrawnToInstall = "to-install"
)

package api

// What you may set.
const (
	// AnnotationPin holds the operator at a version, or moves it to that version, older or newer. See
	// [a pinned version](../operations.md#a-pinned-version).
	//
	//	On:     Subscription
	//	Value:  the name of a ClusterServiceVersion
	//	Set by: users
	AnnotationPin = "chandlery.dev/pin"
	// AnnotationOnDelete uninstalls the operator when its Subscription is deleted. Without it the operator
	// stays. See [uninstalling](../operations.md#uninstalling).
	//
	//	On:     Subscription
	//	Value:  `uninstall`
	//	Set by: users; supervisor on Subscriptions of dependencies
	AnnotationOnDelete = "chandlery.dev/on-delete"
	// AnnotationConfig sets what `spec.config` has no field for. See
	// [settings](../operations.md#clusterserviceversions).
	//
	//	On:     Subscription
	//	Value:  a JSON object
	//	Set by: users
	AnnotationConfig = "chandlery.dev/config"
	// AnnotationSkipCleanup leaves custom resources in place when the version that owns their kind is
	// deleted. See [clean-up](../operations.md#clean-up).
	//
	//	On:     ClusterServiceVersion
	//	Value:  `true`
	//	Set by: users
	AnnotationSkipCleanup = "chandlery.dev/skip-cleanup"
	// AnnotationCertificate marks a certificate that the supervisor uses and never writes. See
	// [webhooks](../operations.md#webhooks-and-apis-of-operators).
	//
	//	On:     Secret `SERVICE-cert` of an operator
	//	Value:  `provided`
	//	Set by: users
	AnnotationCertificate = "chandlery.dev/certificate"
	// AnnotationReplicas sets the number of replicas of a catalog, instead of `--catalog-replicas`. It has no
	// effect while a HorizontalPodAutoscaler [sets the number](../operations.md#catalogs-in-a-cluster).
	//
	//	On:     CatalogSource
	//	Value:  a number
	//	Set by: users
	AnnotationReplicas = "chandlery.dev/replicas"
	// AnnotationCatalogFilter makes replicas that run the registry of this project serve
	// [a part of the catalog](../selections.md#in-a-cluster). The image stays the same.
	//
	//	On:     CatalogSource
	//	Value:  a selection, or the name of a ConfigMap that holds one
	//	Set by: users
	AnnotationCatalogFilter = "chandlery.dev/catalog-filter"
	// AnnotationCatalogImageTemplate names the image of a catalog, with the version of the cluster filled in.
	// `spec.image` is used where the template cannot be resolved.
	//
	//	On:     CatalogSource
	//	Value:  an image with `{kube_major_version}`, `{kube_minor_version}`, `{kube_patch_version}`
	//	Set by: users
	AnnotationCatalogImageTemplate = "olm.catalogImageTemplate"
	// AnnotationPriorityClass sets the priority of the pods of a catalog. It overrides
	// `spec.grpcPodConfig.priorityClassName`.
	//
	//	On:     CatalogSource
	//	Value:  the name of a PriorityClass
	//	Set by: users
	AnnotationPriorityClass = "operatorframework.io/priorityclass"
	// AnnotationExcludeGlobal excludes the catalogs of the global namespace from the resolution of the
	// group's namespace.
	//
	//	On:     OperatorGroup
	//	Value:  `true`
	//	Set by: users
	AnnotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"
	// AnnotationUnpackTimeout limits how long the supervisor pulls a bundle image, instead of
	// `--bundle-unpack-timeout`.
	//
	//	On:     OperatorGroup
	//	Value:  a duration, `0` for no limit
	//	Set by: users
	AnnotationUnpackTimeout = "operatorframework.io/bundle-unpack-timeout"
	// AnnotationUnpackRetry is the shortest time between two attempts to pull a bundle image.
	//
	//	On:     OperatorGroup
	//	Value:  a duration
	//	Set by: users
	AnnotationUnpackRetry = "operatorframework.io/bundle-unpack-min-retry-interval"
	// AnnotationProvidedAPIs lists the APIs that the operators of a group provide. With
	// `spec.staticProvidedAPIs` it limits which operators may be installed.
	//
	//	On:     OperatorGroup
	//	Value:  `Kind.version.group`, separated by commas
	//	Set by: supervisor; users with `spec.staticProvidedAPIs`
	AnnotationProvidedAPIs = "olm.providedAPIs"
)

// Origin of a version.
const (
	// AnnotationProperties holds the properties of the bundle of a version. Resolution of its updates
	// reads them.
	//
	//	On:     ClusterServiceVersion
	//	Value:  a JSON object
	//	Set by: supervisor
	AnnotationProperties = "operatorframework.io/properties"
	// AnnotationCatalog names the catalog of a version.
	//
	//	On:     ClusterServiceVersion
	//	Value:  `NAMESPACE/NAME`
	//	Set by: supervisor
	AnnotationCatalog = "chandlery.dev/catalog"
	// AnnotationChannel names the channel of a version.
	//
	//	On:     ClusterServiceVersion
	//	Value:  the name of a channel
	//	Set by: supervisor
	AnnotationChannel = "chandlery.dev/channel"
	// AnnotationBundleDigest identifies the content of a bundle. By it the supervisor detects other content
	// under the same name.
	//
	//	On:     ClusterServiceVersion
	//	Value:  a digest
	//	Set by: supervisor
	AnnotationBundleDigest = "chandlery.dev/bundle-digest"
	// AnnotationGeneratedBy names the plan that created a Subscription because another operator requires
	// its package.
	//
	//	On:     Subscription
	//	Value:  the name of an InstallPlan
	//	Set by: supervisor
	AnnotationGeneratedBy = "olm.generated-by"
	// PrefixComponent begins the label of all components of an operator. The Operator with the name
	// `PACKAGE.NAMESPACE` lists them.
	//
	//	On:     Subscription, InstallPlan, ClusterServiceVersion and their objects
	//	Name:   operators.coreos.com/PACKAGE.NAMESPACE
	//	Set by: supervisor
	PrefixComponent = "operators.coreos.com/"
	// PrefixAlongside begins the annotations that name the versions with which a definition was
	// installed.
	//
	//	On:     CustomResourceDefinition
	//	Name:   operatorframework.io/installed-alongside-HASH
	//	Value:  `NAMESPACE/NAME` of a ClusterServiceVersion
	//	Set by: supervisor
	PrefixAlongside = "operatorframework.io/installed-alongside-"
)

// Webhooks and APIs of versions.
const (
	// AnnotationCAHash is a hash of the certificate authority. The supervisor replaces the pods when it changes.
	//
	//	On:     Secret with a certificate, pods of a Deployment
	//	Value:  a hash
	//	Set by: supervisor
	AnnotationCAHash = "olmcahash"
	// AnnotationStorageVersion is the version to store objects in once the conversion webhook of a
	// ClusterServiceVersion answers.
	//
	//	On:     CustomResourceDefinition
	//	Value:  `NAMESPACE/NAME:VERSION`
	//	Set by: supervisor
	AnnotationStorageVersion = "chandlery.dev/storage-version"
	// AnnotationConversion names the ClusterServiceVersion whose webhook will convert the objects. Until the
	// webhook answers, objects are not converted.
	//
	//	On:     CustomResourceDefinition
	//	Value:  `NAMESPACE/NAME`
	//	Set by: supervisor
	AnnotationConversion = "chandlery.dev/conversion"
	// AnnotationServedVersions lists the versions that will be served as soon as their conversion is set up.
	//
	//	On:     CustomResourceDefinition
	//	Value:  `NAMESPACE/NAME:VERSION,VERSION`
	//	Set by: supervisor
	AnnotationServedVersions = "chandlery.dev/served-versions"
)

// Catalogs.
const (
	// AnnotationImage is the image of a catalog as its CatalogSource states it.
	//
	//	On:     Deployment of a catalog
	//	Value:  an image
	//	Set by: supervisor
	AnnotationImage = "chandlery.dev/image"
	// AnnotationImageDigest is the digest that the replicas of a catalog run. It is absent while they run the
	// image by its tag.
	//
	//	On:     Deployment of a catalog
	//	Value:  a digest
	//	Set by: supervisor
	AnnotationImageDigest = "chandlery.dev/image-digest"
	// AnnotationCatalogDir is the directory of the catalog in its image, as a label of the image states it.
	//
	//	On:     Deployment of a catalog
	//	Value:  a path
	//	Set by: supervisor
	AnnotationCatalogDir = "chandlery.dev/catalog-dir"
	// AnnotationPullSecrets names the pull secrets of the CatalogSource. They reach the pod through its
	// ServiceAccount.
	//
	//	On:     pods of a catalog
	//	Value:  names of Secrets, separated by commas
	//	Set by: supervisor
	AnnotationPullSecrets = "chandlery.dev/pull-secrets" //nolint:gosec // names of Secrets, not what they hold
	// AnnotationAppliedHash is a hash of the applied object. By it the supervisor detects fields that it
	// no longer sets.
	//
	//	On:     objects of catalogs, webhooks and API services
	//	Value:  a hash
	//	Set by: supervisor
	AnnotationAppliedHash = "chandlery.dev/applied-hash"
)

// State of the supervisor.
const (
	// AnnotationTransitions is the transition log: the newest 64 phases of the plans of a Subscription, which
	// `supervisor history` prints. If you remove it, a new log begins.
	//
	//	On:     Subscription
	//	Value:  a JSON list
	//	Set by: supervisor
	AnnotationTransitions = "chandlery.dev/transitions"
	// AnnotationShownConditions lists the condition types that the supervisor copies from
	// `spec.conditions` to the status. By it the supervisor removes the copy of a removed condition.
	//
	//	On:     OperatorCondition
	//	Value:  condition types, separated by commas
	//	Set by: supervisor
	AnnotationShownConditions = "chandlery.dev/shown-conditions"
	// PrefixServes begins the annotations that name the Subscriptions of a plan. By them the supervisor
	// restores removed owner references.
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
	// AnnotationApproval is the approval of the Subscriptions of a plan when it was last written. The
	// supervisor changes `spec.approval` only when the Subscriptions change theirs, so that the edit of
	// a user stays.
	//
	//	On:     InstallPlan
	//	Value:  `Automatic` or `Manual`
	//	Set by: supervisor
	AnnotationApproval = "chandlery.dev/approval"
	// AnnotationManifestWarnings holds warnings about duplicate keys and list entries in manifests of a plan.
	// The Event of the step shows them.
	//
	//	On:     InstallPlan
	//	Value:  a JSON object of lists, by the index of the step
	//	Set by: supervisor
	AnnotationManifestWarnings = "chandlery.dev/manifest-warnings"
	// AnnotationReverts names the version whose definitions may replace newer ones, because a
	// Subscription is pinned to it. A definition is replaced only where no object loses data.
	//
	//	On:     InstallPlan
	//	Value:  the name of a ClusterServiceVersion
	//	Set by: supervisor
	AnnotationReverts = "chandlery.dev/reverts"
	// AnnotationGroupAccount is the service account that the OperatorGroup of a version names, empty for none.
	// The clean-up reads it where the group was deleted first. It is absent while the group targets no
	// namespace.
	//
	//	On:     ClusterServiceVersion
	//	Value:  the name of a ServiceAccount
	//	Set by: supervisor
	AnnotationGroupAccount = "chandlery.dev/operator-group-account"
	// AnnotationWithdrawn marks a version that never worked and is deleted so that an older one runs again. Its
	// custom resources stay.
	//
	//	On:     ClusterServiceVersion
	//	Value:  `to-return` or `to-install`
	//	Set by: supervisor
	AnnotationWithdrawn = "chandlery.dev/withdrawn"
	// AnnotationUninstalls names the Subscriptions that were created for a Subscription and are
	// uninstalled with it.
	//
	//	On:     Subscription that is being deleted
	//	Value:  names, separated by commas
	//	Set by: supervisor
	AnnotationUninstalls = "chandlery.dev/uninstalls"
	// AnnotationCause states why an object does not continue: the reason, the step of a plan, and the remedy.
	// `kubectl chandlery explain` reads it.
	//
	//	On:     InstallPlan, ClusterServiceVersion
	//	Value:  JSON, such as {"reason":"QuotaExceeded","step":3,"remedy":"raise the quota"}
	//	Set by: supervisor
	AnnotationCause = "chandlery.dev/cause"
	// AnnotationTrimmed marks an object whose copy in the cache of the supervisor lacks a part. It is never
	// written to the cluster. See [memory](../security.md#memory).
	//
	//	On:     objects in the supervisor's memory
	//	Value:  empty
	//	Set by: supervisor
	AnnotationTrimmed = "chandlery.dev/trimmed"
)

// Values of AnnotationWithdrawn.
const (
	// WithdrawnToReturn is the value where the older version exists and continues with the definitions
	// as they are.
	WithdrawnToReturn = "to-return"
	// WithdrawnToInstall is the value where the older version is installed afterwards. Its definitions may
	// replace the existing ones, conversions included.
	WithdrawnToInstall = "to-install"
)

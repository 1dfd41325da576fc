package api

// Prefix begins the labels and annotations of this project.
const Prefix = "chandlery.dev/"

// Owners of objects.
const (
	// LabelManaged is `true` on objects that the supervisor manages, and `false` on a ConfigMap that a
	// CatalogSource names.
	//
	//	On:     objects of operators and catalogs; ConfigMaps of catalogs
	//	Set by: supervisor
	LabelManaged = "olm.managed"
	// LabelOwner names the owner of an object. The object is deleted with its owner.
	//
	//	On:     objects of operators and OperatorGroups
	//	Set by: supervisor
	LabelOwner = "olm.owner"
	// LabelOwnerNamespace is the namespace of the owner.
	//
	//	On:     objects of operators and OperatorGroups
	//	Set by: supervisor
	LabelOwnerNamespace = "olm.owner.namespace"
	// LabelOwnerKind is the kind of the owner.
	//
	//	On:     objects of operators and OperatorGroups
	//	Set by: supervisor
	LabelOwnerKind = "olm.owner.kind"
	// LabelCopiedFrom is the namespace of the original of a copy.
	//
	//	On:     copied ClusterServiceVersions, Roles and RoleBindings
	//	Set by: supervisor
	LabelCopiedFrom = "olm.copiedFrom"
	// AnnotationOperatorGroup names the OperatorGroup of a version. Operators read it from their pods.
	//
	//	On:     ClusterServiceVersion, pods of its Deployments
	//	Set by: supervisor
	AnnotationOperatorGroup = "olm.operatorGroup"
	// AnnotationOperatorNamespace is the namespace of the OperatorGroup of a version.
	//
	//	On:     ClusterServiceVersion, pods of its Deployments
	//	Set by: supervisor
	AnnotationOperatorNamespace = "olm.operatorNamespace"
	// AnnotationTargetNamespaces lists the namespaces that an operator watches. It is empty for all.
	//
	//	On:     ClusterServiceVersion, pods of its Deployments
	//	Value:  `NAME,NAME`
	//	Set by: supervisor
	AnnotationTargetNamespaces = "olm.targetNamespaces"
	// PrefixOperatorGroup begins the label of the namespaces that an OperatorGroup selects.
	//
	//	On:     Namespace
	//	Name:   olm.operatorgroup.uid/UID
	//	Set by: supervisor
	PrefixOperatorGroup = "olm.operatorgroup.uid/"
)

// Roles and Deployments of operators.
const (
	// LabelDeploymentHash is a hash of the applied spec, to detect another spec to apply.
	//
	//	On:     Deployment of an operator
	//	Set by: supervisor
	LabelDeploymentHash = "olm.deployment-spec-hash"
	// LabelPermissionsHash is a hash of the permissions that a version declares.
	//
	//	On:     Role, ClusterRole and bindings of an operator
	//	Set by: supervisor
	LabelPermissionsHash = "olm.permissions.hash"
	// LabelLifted marks a cluster-scoped copy of a Role or RoleBinding.
	//
	//	On:     ClusterRole, ClusterRoleBinding
	//	Value:  `true`
	//	Set by: supervisor
	LabelLifted = "chandlery.dev/lifted"
	// LabelGrant marks a [temporary grant](../security.md#custom-resources) of the supervisor to itself.
	//
	//	On:     ClusterRole, ClusterRoleBinding
	//	Value:  `true`
	//	Set by: supervisor
	LabelGrant = "chandlery.dev/borrowed"
)

// Pods in which nodes pull bundle images.
const (
	// LabelImagePull marks a pod [in which a node pulls a bundle image](../registries.md#pulls-by-nodes).
	//
	//	On:     Pod
	//	Value:  `true`
	//	Set by: supervisor
	LabelImagePull = "chandlery.dev/image-pull"
	// LabelUnpackRef is a hash of that pod, as in pods of OLM.
	//
	//	On:     Pod
	//	Set by: supervisor
	LabelUnpackRef = "operatorframework.io/bundle-unpack-ref"
)

// APIs and webhooks of versions.
const (
	// PrefixAPI begins the labels that state whether a version provides or requires an API.
	//
	//	On:     ClusterServiceVersion
	//	Name:   olm.api.HASH
	//	Value:  `provided` or `required`
	//	Set by: supervisor
	PrefixAPI = "olm.api."
	// PrefixAggregate begins the labels by which roles of an OperatorGroup aggregate the roles of its APIs.
	//
	//	On:     ClusterRole for users of an API
	//	Name:   olm.opgroup.permissions/aggregate-to-HASH
	//	Value:  `true`
	//	Set by: supervisor
	PrefixAggregate = "olm.opgroup.permissions/aggregate-to-"
	// LabelWebhook is the name of the description of a webhook in its ClusterServiceVersion.
	//
	//	On:     webhook configuration
	//	Set by: supervisor
	LabelWebhook = "olm.webhook-description-generate-name"
	// LabelWebhookHash is a hash of that description.
	//
	//	On:     webhook configuration
	//	Set by: supervisor
	LabelWebhookHash = "olm.webhook-description-hash"
)

// Objects of catalogs.
const (
	// LabelCatalogSource names the CatalogSource of an object.
	//
	//	On:     Deployment, pods, Service and other objects of a catalog
	//	Set by: supervisor
	LabelCatalogSource = "olm.catalogSource"
	// LabelPodSpecHash is a hash of the applied pods. Another hash is rolled out.
	//
	//	On:     pods of a catalog
	//	Set by: supervisor
	LabelPodSpecHash = "olm.pod-spec-hash"
	// LabelServiceSpecHash is a hash of the applied Service.
	//
	//	On:     Service of a catalog
	//	Set by: supervisor
	LabelServiceSpecHash = "olm.service-spec-hash"
	// LabelConfigMapVersion is the resource version of the ConfigMap that a pod serves.
	//
	//	On:     pods of a catalog in a ConfigMap
	//	Set by: supervisor
	LabelConfigMapVersion = "olm.configMapResourceVersion"
	// LabelUpdate marks a pod that resolves the tag of an image. It does not count as a replica.
	//
	//	On:     pods of another manager
	//	Value:  name of a CatalogSource
	//	Set by: other managers
	LabelUpdate = "catalogsource.operators.coreos.com/update"
	// LabelServeTLS marks pods of a catalog to which the supervisor connects
	// [with TLS](../operations.md#tls-to-catalogs).
	//
	//	On:     Pod
	//	Value:  `true`
	//	Set by: supervisor
	LabelServeTLS = "chandlery.dev/serve-tls"
)

// Packages of catalogs.
const (
	// PrefixOS begins the labels of the operating systems that an operator supports.
	//
	//	On:     ClusterServiceVersion, PackageManifest
	//	Name:   operatorframework.io/os.NAME
	//	Value:  `supported`
	//	Set by: authors of operators
	PrefixOS = "operatorframework.io/os."
	// PrefixArch begins the labels of the processor architectures that an operator supports.
	//
	//	On:     ClusterServiceVersion, PackageManifest
	//	Name:   operatorframework.io/arch.NAME
	//	Value:  `supported`
	//	Set by: authors of operators
	PrefixArch = "operatorframework.io/arch."
)

// Migration from another manager.
const (
	// LabelTakenOver is the number of replicas of the Deployment before the [migration](../migration.md).
	//
	//	On:     Deployment of another manager
	//	Value:  a number
	//	Set by: supervisor
	LabelTakenOver = "chandlery.dev/taken-over"
	// LabelRecord marks the ConfigMaps of a migration.
	//
	//	On:     ConfigMap
	//	Value:  `record` or `images`
	//	Set by: supervisor
	LabelRecord = "chandlery.dev/takeover"
)

// Finalizers.
const (
	// FinalizerCleanup blocks the deletion of a version until its [clean-up](../operations.md#clean-up) is
	// done.
	//
	//	On:     ClusterServiceVersion
	//	Set by: supervisor
	FinalizerCleanup = "operators.coreos.com/csv-cleanup"
	// FinalizerUninstall blocks the deletion of a Subscription until its operator is uninstalled.
	//
	//	On:     Subscription with `chandlery.dev/on-delete: uninstall`
	//	Set by: supervisor
	FinalizerUninstall = "chandlery.dev/uninstall"
)

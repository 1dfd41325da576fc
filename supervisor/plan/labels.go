package plan

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels and annotations that today's tools select on; their names are part of
// the API. The ones under chandlery.dev are our own record of where a
// ClusterServiceVersion came from.
const (
	LabelManaged         = "olm.managed"
	LabelOwner           = "olm.owner"
	LabelOwnerNamespace  = "olm.owner.namespace"
	LabelOwnerKind       = "olm.owner.kind"
	LabelPermissionsHash = "olm.permissions.hash"

	AnnotationProperties = "operatorframework.io/properties"
	AnnotationCatalog    = "chandlery.dev/catalog"
	AnnotationChannel    = "chandlery.dev/channel"
	AnnotationDigest     = "chandlery.dev/bundle-digest"
	// AnnotationVersions, on an InstallPlan that installs several versions, says
	// which is of which package.
	AnnotationVersions = "chandlery.dev/versions"
	// AnnotationServes, followed by the UID of a Subscription that an InstallPlan
	// serves, holds that Subscription's name: owner references that somebody strips
	// from the plan are given back by it.
	AnnotationServes = "chandlery.dev/serves-"
	// AnnotationApproval, on an InstallPlan, is the approval that its Subscriptions
	// asked for last. Only a change of that touches what somebody set by hand.
	AnnotationApproval = "chandlery.dev/approval"
	// AnnotationReverts, on an InstallPlan, names the version whose definitions are
	// to take the place of newer ones, as a Subscription is pinned to it: they do only
	// if no object loses anything by it.
	AnnotationReverts = "chandlery.dev/reverts"
	// AnnotationManifestWarnings, on an InstallPlan, holds the warnings about the manifests that
	// its steps were made from, as a JSON object of lists by the index of the step.
	AnnotationManifestWarnings = "chandlery.dev/manifest-warnings"
	// AnnotationWithdrawn, on a ClusterServiceVersion that never worked, says that it is
	// deleted to go back to an older one, which goes on with the custom resources: its
	// clean-up leaves them. The values say where that one comes from.
	AnnotationWithdrawn = "chandlery.dev/withdrawn"
	// WithdrawnToReturn is for one that is there and comes into its own again with the
	// definitions as they are then.
	WithdrawnToReturn = "to-return"
	// WithdrawnToInstall is for one that is installed afterwards, and that brings
	// definitions which may take the place of those that are there, conversions included.
	WithdrawnToInstall = "to-install"
	// AnnotationGroupAccount, on a ClusterServiceVersion, is the service account that its
	// OperatorGroup names, empty for none. The clean-up reads it when the group is deleted first. A
	// version whose group targets no namespace has no such annotation.
	AnnotationGroupAccount = "chandlery.dev/operator-group-account"
	// AnnotationGeneratedBy, on a Subscription, names the InstallPlan that made it
	// because another operator needs the package.
	AnnotationGeneratedBy = "olm.generated-by"
)

// prefixOwn begins the labels and annotations of this project.
const prefixOwn = "chandlery.dev/"

// PrefixComponent comes before the name of an Operator in the label of its components.
const PrefixComponent = "operators.coreos.com/"

// PrefixAlongside begins the annotations of a CustomResourceDefinition that name, as
// NAMESPACE/NAME, the versions that it was installed with.
const PrefixAlongside = "operatorframework.io/installed-alongside-"

// FinalizerCleanup keeps a ClusterServiceVersion until what it owns outside its
// namespace has been removed.
const FinalizerCleanup = "operators.coreos.com/csv-cleanup"

// ComponentLabel is the label that ties a Subscription, its InstallPlan, its
// ClusterServiceVersion and their components to one package in one namespace.
// Its name part is at most 63 characters and ends in a letter or digit, as a
// label key must.
func ComponentLabel(pkg, namespace string) string {
	name := pkg + "." + namespace
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "._-")
	}
	return PrefixComponent + name
}

// ComponentLabels returns those of some labels that tie an object to packages.
func ComponentLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if strings.HasPrefix(key, PrefixComponent) {
			out[key] = value
		}
	}
	return out
}

// OwnerLabels mark an object as belonging to a ClusterServiceVersion. They take
// the place of an owner reference where the object has no namespace.
func OwnerLabels(csv, namespace string) map[string]string {
	return map[string]string{
		LabelManaged:        "true",
		LabelOwner:          csv,
		LabelOwnerNamespace: namespace,
		LabelOwnerKind:      kindCSV,
	}
}

// hash is a short, label-safe digest of a value: the SHA-224 of its JSON text
// and a newline, written in base 62. Existing clusters carry labels and names
// made in this way, so the form is kept: taking over such a cluster then
// changes nothing.
func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		// Only plain API structs come here; they always marshal.
		return ""
	}
	sum := sha256.Sum224(append(text, '\n'))
	var n big.Int
	return n.SetBytes(sum[:]).Text(62)
}

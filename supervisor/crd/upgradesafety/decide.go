package upgradesafety

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// Request describes the change by a plan to a CustomResourceDefinition, and what the rules depend on.
type Request struct {
	// Namespace is the namespace of the plan.
	Namespace string
	// Version is the ClusterServiceVersion that contains or converts the definition.
	Version string
	// Unbounded reports whether the OperatorGroup targets all namespaces and names no
	// service account.
	Unbounded bool
	// Name is the name of the definition.
	Name string
	// Wanted is the definition in the bundle. It is nil if the bundle has none and only declares a conversion webhook
	// for it.
	Wanted *apiextensionsv1.CustomResourceDefinition
	// Converted reports whether the version declares a conversion webhook for the
	// definition. The conversion in Wanted is then not applied.
	Converted bool
	// Live is the definition in the cluster; nil if there is none.
	Live *apiextensionsv1.CustomResourceDefinition
	// Own reports whether Live was installed with a version of the same operator that
	// still exists.
	Own bool
	// Others are the existing versions of other packages that Live was installed with.
	Others []types.NamespacedName
}

// Decision is what a plan must do with a definition.
type Decision string

const (
	// Write permits the plan to create or change the definition.
	Write Decision = "Write"
	// Keep leaves the definition unchanged: it has another owner, and is as the bundle wants it.
	Keep Decision = "Keep"
)

// Decide returns what a plan must do with a definition. The error is a *RefusalError if the plan may neither
// write nor use it.
func Decide(r Request) (Decision, error) {
	if group := protectedGroup(r); group != "" {
		what := "kinds of the group " + group
		if ProtectedDefinition(r.Name) {
			what = "the kind " + r.Name
		}
		return "", r.refusal(ProtectedGroup, fmt.Sprintf("a bundle must not define %s, on which the supervisor depends", what),
			fmt.Sprintf("ask the author of %s to remove it", r.Version))
	}
	if err := checkConversion(r); err != nil {
		return "", err
	}
	if r.Live == nil || r.Unbounded {
		return Write, nil
	}
	refusal := checkOwner(r)
	switch {
	case refusal == nil:
		return Write, nil
	case r.Wanted != nil && !r.Converted && sameDefinition(r.Wanted, r.Live):
		return Keep, nil
	default:
		return "", refusal
	}
}

// checkConversion refuses a conversion webhook that would allow the bundle to send objects and credentials of
// the API server to an arbitrary address. In an unbounded group a Service may be anywhere: published bundles
// have placeholders there, which their operators correct when they run.
func checkConversion(r Request) *RefusalError {
	if r.Wanted == nil || r.Converted {
		return nil
	}
	conversion := r.Wanted.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}
	to := conversion.Webhook.ClientConfig
	if to.URL != nil {
		return r.refusal(ConversionURL, "spec.conversion.webhook.clientConfig.url is set, but a bundle can convert only through a Service of its namespace",
			fmt.Sprintf("ask the author of %s to declare the webhook in spec.webhookdefinitions of the ClusterServiceVersion", r.Version))
	}
	if to.Service == nil || to.Service.Namespace == r.Namespace || r.Unbounded {
		return nil
	}
	return r.refusal(ConversionService,
		fmt.Sprintf("spec.conversion.webhook names Service %s/%s, which is outside the namespace %s of the plan", to.Service.Namespace, to.Service.Name, r.Namespace),
		fmt.Sprintf("ask the author of %s to declare the webhook in spec.webhookdefinitions of the ClusterServiceVersion, or install it where the OperatorGroup targets all namespaces and names no service account", r.Version))
}

// checkOwner refuses to change a definition of another owner.
func checkOwner(r Request) *RefusalError {
	const remedy = "install %s where the OperatorGroup targets all namespaces and names no service account, or %s"
	if len(r.Others) > 0 {
		names := make([]string, 0, len(r.Others))
		for _, other := range r.Others {
			names = append(names, other.String())
		}
		return r.refusal(OtherPackage, "it belongs to another package, installed with ClusterServiceVersion "+strings.Join(names, ", "),
			fmt.Sprintf(remedy, r.Version, "remove the other package"))
	}
	if r.Own {
		return nil
	}
	makers := DefinitionManagers(r.Live)
	if slices.ContainsFunc(makers, isInstaller) {
		return nil
	}
	by := "an unknown field manager"
	if len(makers) > 0 {
		by = "field manager " + strings.Join(makers, ", ")
	}
	return r.refusal(ForeignManager, "it was created by "+by+", not by a lifecycle manager of operators",
		fmt.Sprintf(remedy, r.Version, "ask an administrator to apply the CustomResourceDefinition that the bundle needs"))
}

// isInstaller reports whether a field manager installs operators.
func isInstaller(manager string) bool {
	return apply.IsOurs(manager) || apply.IsOLM(manager)
}

// DefinitionManagers returns the field managers that own spec.group of a definition: its creator, and those that
// applied the whole definition since. Managers that changed a part, such as an injected certificate, are not
// included.
func DefinitionManagers(crd metav1.Object) []string {
	var makers []string
	for _, entry := range crd.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || slices.Contains(makers, entry.Manager) {
			continue
		}
		var fields fieldpath.Set
		err := fields.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString()))
		if err == nil && fields.Has(fieldpath.MakePathOrDie("spec", "group")) {
			makers = append(makers, entry.Manager)
		}
	}
	return makers
}

// sameDefinition reports whether a definition in the cluster equals the one in a bundle. The conversion of the
// cluster must be the same too, unless the bundle has none.
func sameDefinition(wanted, live *apiextensionsv1.CustomResourceDefinition) bool {
	a, b := withDefaults(wanted), withDefaults(live)
	if a.Conversion.Strategy == apiextensionsv1.NoneConverter {
		a.Conversion = b.Conversion
	}
	return equality.Semantic.DeepEqual(a, b)
}

// withDefaults returns the spec of a definition as the API server stores it.
func withDefaults(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionSpec {
	filled := crd.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(filled)
	return filled.Spec
}

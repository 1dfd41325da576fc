package upgradesafety_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
)

const (
	namespace = "lamps"
	wholeSpec = `{"f:spec":{"f:group":{},"f:names":{"f:plural":{}},"f:versions":{}}}`
	bundle    = `{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`
)

// definition returns a CustomResourceDefinition of a group that the managers created.
func definition(group string, managers ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps." + group}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps", Kind: "Lamp"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	for _, manager := range managers {
		crd.ManagedFields = append(crd.ManagedFields, managed(manager, wholeSpec))
	}
	return crd
}

func managed(manager, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{}}
	e.FieldsV1.SetRawBytes([]byte(fields))
	return e
}

// changed returns a definition with another version.
func changed(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true})
	return crd
}

// converting returns a definition with a conversion webhook.
func converting(crd *apiextensionsv1.CustomResourceDefinition, to apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &to},
	}
	return crd
}

func service(namespace string) apiextensionsv1.WebhookClientConfig {
	return apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: "hook"}}
}

func TestDecideOnDefinitions(t *testing.T) {
	t.Parallel()
	url := "https://attacker.example/convert"
	tray := []types.NamespacedName{{Namespace: "trays", Name: "tray.v1"}}
	const group = "lamps.example"
	for name, tt := range map[string]struct {
		reason  string
		request upgradesafety.Request
		want    upgradesafety.Decision
		refused upgradesafety.Reason
	}{
		"New": {
			reason:  "a bundle may bring a definition that is not there",
			request: upgradesafety.Request{Wanted: definition(group)}, want: upgradesafety.Write,
		},
		"OperatorsGroup": {
			reason:  "the kinds of operators are the supervisor's own",
			request: upgradesafety.Request{Wanted: definition("operators.coreos.com")}, refused: upgradesafety.ProtectedGroup,
		},
		"OperatorsGroupUnbounded": {
			reason:  "also where the group targets all namespaces",
			request: upgradesafety.Request{Unbounded: true, Wanted: definition("operators.coreos.com")}, refused: upgradesafety.ProtectedGroup,
		},
		"ProtectedByName": {
			reason:  "the name of a definition contains its group",
			request: upgradesafety.Request{Name: "lamps.operators.coreos.com", Wanted: definition(group)}, refused: upgradesafety.ProtectedGroup,
		},
		"ProtectedConversion": {
			reason:  "a bundle may not convert what it may not define",
			request: upgradesafety.Request{Unbounded: true, Name: "subscriptions.operators.coreos.com", Converted: true}, refused: upgradesafety.ProtectedGroup,
		},
		"ProtectedBySpec": {
			reason:  "nor may it hide its group behind another name",
			request: upgradesafety.Request{Unbounded: true, Name: "lamps." + group, Wanted: definition("operators.coreos.com")}, refused: upgradesafety.ProtectedGroup,
		},
		"ProtectedDefinition": {
			reason:  "a kind that the supervisor reads, in a group of which bundles may define others",
			request: upgradesafety.Request{Unbounded: true, Name: "imagecontentsourcepolicies.operator.openshift.io", Wanted: definition("operator.openshift.io")}, refused: upgradesafety.ProtectedGroup,
		},
		"OtherOfTheGroup": {
			reason:  "another kind of that group",
			request: upgradesafety.Request{Name: "certmanagers.operator.openshift.io", Wanted: definition("operator.openshift.io")}, want: upgradesafety.Write,
		},
		"SubgroupOfOperators": {
			reason:  "groups whose name only ends alike are others'",
			request: upgradesafety.Request{Wanted: definition("binding.operators.coreos.com")}, want: upgradesafety.Write,
		},
		"URL": {
			reason:  "the API server would send objects and credentials there",
			request: upgradesafety.Request{Wanted: converting(definition(group), apiextensionsv1.WebhookClientConfig{URL: &url})}, refused: upgradesafety.ConversionURL,
		},
		"URLUnbounded": {
			reason:  "no group permits a URL",
			request: upgradesafety.Request{Unbounded: true, Wanted: converting(definition(group), apiextensionsv1.WebhookClientConfig{URL: &url})}, refused: upgradesafety.ConversionURL,
		},
		"URLDeclared": {
			reason:  "the stanza of the manifest is not applied where the version declares the conversion",
			request: upgradesafety.Request{Converted: true, Wanted: converting(definition(group), apiextensionsv1.WebhookClientConfig{URL: &url})}, want: upgradesafety.Write,
		},
		"ServiceHere": {
			reason:  "a Service of the plan's namespace is the bundle's",
			request: upgradesafety.Request{Wanted: converting(definition(group), service(namespace))}, want: upgradesafety.Write,
		},
		"ServiceElsewhere": {
			reason:  "a Service of another namespace is not",
			request: upgradesafety.Request{Wanted: converting(definition(group), service("kube-system"))}, refused: upgradesafety.ConversionService,
		},
		"ServiceElsewhereUnbounded": {
			reason:  "published bundles have placeholders that their operators correct",
			request: upgradesafety.Request{Unbounded: true, Wanted: converting(definition(group), service("default"))}, want: upgradesafety.Write,
		},
		"ServiceElsewhereDeclared": {
			reason:  "the stanza of the manifest is not applied",
			request: upgradesafety.Request{Converted: true, Wanted: converting(definition(group), service("system"))}, want: upgradesafety.Write,
		},
		"OursByManager": {
			reason:  "what a plan made, plans change",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: definition(group, api.FieldManager)}, want: upgradesafety.Write,
		},
		"OfOLM": {
			reason:  "what OLM made, plans change",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: definition(group, "catalog")}, want: upgradesafety.Write,
		},
		"OfOLMThenKubectl": {
			reason:  "an administrator who applied it since does not stop upgrades",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: definition(group, "kubectl-client-side-apply", "catalog")}, want: upgradesafety.Write,
		},
		"OfAdministrator": {
			reason:  "what an administrator made, a bounded bundle does not change",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: definition(group, "kubectl-create")}, refused: upgradesafety.ForeignManager,
		},
		"OfAdministratorInjected": {
			reason: "a manager of a part did not make it",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: func() *apiextensionsv1.CustomResourceDefinition {
				crd := definition(group, "kubectl-create")
				crd.ManagedFields = append(crd.ManagedFields, managed(api.FieldManager, bundle))
				return crd
			}()},
			refused: upgradesafety.ForeignManager,
		},
		"OfAdministratorStatus": {
			reason: "who writes the status did not make it",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: func() *apiextensionsv1.CustomResourceDefinition {
				crd := definition(group, "kubectl-create", "catalog")
				crd.ManagedFields[1].Subresource = "status"
				return crd
			}()},
			refused: upgradesafety.ForeignManager,
		},
		"OfUnknown": {
			reason:  "without managed fields it is not known to be the plan's",
			request: upgradesafety.Request{Wanted: changed(definition(group)), Live: definition(group)}, refused: upgradesafety.ForeignManager,
		},
		"OfAdministratorOwn": {
			reason:  "a version of the same operator has it already",
			request: upgradesafety.Request{Own: true, Wanted: changed(definition(group)), Live: definition(group, "kubectl-create")}, want: upgradesafety.Write,
		},
		"OfAdministratorUnbounded": {
			reason:  "a group for all namespaces without service account may",
			request: upgradesafety.Request{Unbounded: true, Wanted: changed(definition(group)), Live: definition(group, "kubectl-create")}, want: upgradesafety.Write,
		},
		"OfAdministratorSame": {
			reason:  "what is as wanted can be used, and stays as it is",
			request: upgradesafety.Request{Wanted: definition(group), Live: definition(group, "kubectl-create")}, want: upgradesafety.Keep,
		},
		"OfAdministratorSameConverted": {
			reason:  "the controller of versions would change the conversion",
			request: upgradesafety.Request{Converted: true, Wanted: definition(group), Live: definition(group, "kubectl-create")}, refused: upgradesafety.ForeignManager,
		},
		"OfAdministratorOtherConversion": {
			reason:  "a conversion that the cluster lacks is a change",
			request: upgradesafety.Request{Wanted: converting(definition(group), service(namespace)), Live: definition(group, "kubectl-create")}, refused: upgradesafety.ForeignManager,
		},
		"OfAdministratorWithConversion": {
			reason:  "one that the bundle lacks is none",
			request: upgradesafety.Request{Wanted: definition(group), Live: converting(definition(group, "kubectl-create"), service("lamp-system"))}, want: upgradesafety.Keep,
		},
		"ConversionOfAdministrators": {
			reason:  "a version may not convert what its bundle does not bring and an administrator made",
			request: upgradesafety.Request{Name: "lamps." + group, Converted: true, Live: definition(group, "kubectl-create")}, refused: upgradesafety.ForeignManager,
		},
		"OtherPackage": {
			reason:  "what another package brought, a bounded bundle does not change",
			request: upgradesafety.Request{Others: tray, Wanted: changed(definition(group)), Live: definition(group, "catalog")}, refused: upgradesafety.OtherPackage,
		},
		"OtherPackageToo": {
			reason:  "nor what it shares with another package",
			request: upgradesafety.Request{Own: true, Others: tray, Wanted: changed(definition(group)), Live: definition(group, "catalog")}, refused: upgradesafety.OtherPackage,
		},
		"OtherPackageSame": {
			reason:  "what is as wanted can be used",
			request: upgradesafety.Request{Others: tray, Wanted: definition(group), Live: definition(group, "catalog")}, want: upgradesafety.Keep,
		},
		"OtherPackageUnbounded": {
			reason:  "a group for all namespaces without service account may",
			request: upgradesafety.Request{Unbounded: true, Others: tray, Wanted: changed(definition(group)), Live: definition(group, "catalog")}, want: upgradesafety.Write,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := tt.request
			request.Namespace, request.Version = namespace, "lamp.v1"
			if request.Name == "" {
				request.Name = request.Wanted.Name
			}
			got, err := upgradesafety.Decide(request)
			refusal, refused := errors.AsType[*upgradesafety.RefusalError](err)
			if got != tt.want || refused != (tt.refused != "") || err != nil && !refused {
				t.Fatalf("%s: decision %q, error %v", tt.reason, got, err)
			}
			if refused && (refusal.Reason != tt.refused || !strings.Contains(refusal.Error(), request.Name)) {
				t.Errorf("%s: refusal %q: %v, want %q", tt.reason, refusal.Reason, refusal, tt.refused)
			}
		})
	}
}

// TestPermanent checks which refusals depend on the bundle alone.
func TestPermanent(t *testing.T) {
	t.Parallel()
	for reason, want := range map[upgradesafety.Reason]bool{
		upgradesafety.ProtectedGroup: true, upgradesafety.ConversionURL: true,
		upgradesafety.ConversionService: false, upgradesafety.ForeignManager: false, upgradesafety.OtherPackage: false,
	} {
		if got := (&upgradesafety.RefusalError{Reason: reason}).Permanent(); got != want {
			t.Errorf("%s is permanent: %v, want %v", reason, got, want)
		}
	}
}

// TestProtectedGroups compares the protected groups with the groups for which the supervisor has permissions. An
// added group must be protected, or bundles contain objects of its kinds. Some groups are protected for other
// reasons.
func TestProtectedGroups(t *testing.T) {
	t.Parallel()
	for _, group := range []string{
		"apps", "authentication.k8s.io", "autoscaling", "batch", "chandlery.dev", "operators.coreos.com", "packages.operators.coreos.com",
		"policy", "rbac.authorization.k8s.io", "storage.k8s.io",
	} {
		if !upgradesafety.Protected(group) {
			t.Errorf("group %q is not protected", group)
		}
	}
	brought := []string{"", "autoscaling.k8s.io", "cert-manager.io", "console.openshift.io", "monitoring.coreos.com", "operator.openshift.io"}
	text, err := os.ReadFile("../../../deploy/rbac/supervisor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(text), "\n---\n")
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(document), role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			if upgradesafety.Protected(group) == slices.Contains(brought, group) {
				t.Errorf("group %q is protected: %v", group, upgradesafety.Protected(group))
			}
			for _, resource := range rule.Resources {
				if group == "operator.openshift.io" && !upgradesafety.ProtectedDefinition(resource+"."+group) {
					t.Errorf("the definition of %s is not protected", resource)
				}
			}
		}
	}
}

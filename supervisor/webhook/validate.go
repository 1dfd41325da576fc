package webhook

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
)

// InvalidError reports an invalid description of a webhook or an API.
type InvalidError struct {
	// Reason is the reason of the following phase.
	Reason operatorsv1alpha1.ConditionReason
	// Field is the field of the description in the ClusterServiceVersion.
	Field string
	// Problem is what is wrong, and Remedy what to do.
	Problem, Remedy string
	// Exact reports whether Problem is a sentence of OLM.
	Exact bool
}

// Error returns a message with all three.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.Field, e.Problem, e.Remedy)
}

// checker finds the first error, in the order of the fields.
type checker struct {
	csv      *operatorsv1alpha1.ClusterServiceVersion
	webhooks map[string]string            // field by name
	converts map[string]string            // field by CustomResourceDefinition
	ports    map[string]map[int32]portUse // by Deployment
}

type portUse struct {
	field  string
	target intstr.IntOrString
}

func validate(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	c := checker{
		csv: csv, webhooks: map[string]string{}, converts: map[string]string{}, ports: map[string]map[int32]portUse{},
	}
	groupVersions := map[string]string{}
	for i := range csv.Spec.APIServiceDefinitions.Owned {
		d := &csv.Spec.APIServiceDefinitions.Owned[i]
		field := fmt.Sprintf("spec.apiservicedefinitions.owned[%d]", i)
		if err := c.api(field, d, groupVersions); err != nil {
			err.Reason = operatorsv1alpha1.CSVReasonInvalidStrategy
			return err
		}
	}
	for i := range csv.Spec.WebhookDefinitions {
		if err := c.webhook(fmt.Sprintf("spec.webhookdefinitions[%d]", i), &csv.Spec.WebhookDefinitions[i]); err != nil {
			err.Reason = operatorsv1alpha1.CSVReasonInvalidWebhookDescription
			return err
		}
	}
	return nil
}

// ServesPackages reports whether a live object is the APIService of packages with which supervisors serve them. After a
// takeover, the version of OLM's package server still declares it.
func ServesPackages(live *unstructured.Unstructured) bool {
	return live.GroupVersionKind() == APIServiceKind() && live.GetName() == packages && live.GetLabels()["app.kubernetes.io/part-of"] == "chandlery"
}

// packages is the API of OLM's own package server, which is installed as a ClusterServiceVersion.
const packages = "v1.packages.operators.coreos.com"

// isOfCluster reports whether no operator may serve an API of a group. Clients that discover the versions of
// the group could mistake it for the one that they use.
func isOfCluster(group string) bool {
	_, kubernetes := clusterScoped[group]
	return kubernetes || upgradesafety.Protected(group)
}

// api checks an API.
func (c *checker) api(field string, d *operatorsv1alpha1.APIServiceDescription, served map[string]string) *InvalidError {
	if d.Group == "" || d.Version == "" {
		return &InvalidError{Field: field, Problem: "group or version is empty", Remedy: "name both"}
	}
	if isOfCluster(d.Group) && APIServiceName(d) != packages {
		return &InvalidError{
			Field: field + ".group", Problem: "operators cannot serve an API of the group " + d.Group,
			Remedy: "serve it in a group of the operator's own",
		}
	}
	name := APIServiceName(d)
	if other := served[name]; other != "" && other != d.DeploymentName {
		return &InvalidError{
			Field:   field + ".deploymentName",
			Problem: fmt.Sprintf("%s is served by Deployment %s as well as by %s", name, other, d.DeploymentName),
			Remedy:  "serve all kinds of a version of a group with one Deployment",
		}
	}
	served[name] = d.DeploymentName
	return c.endpoint(field, d.DeploymentName, d.ContainerPort, nil)
}

func (c *checker) webhook(field string, d *operatorsv1alpha1.WebhookDescription) *InvalidError {
	if d.GenerateName == "" {
		return &InvalidError{Field: field + ".generateName", Problem: "is empty", Remedy: "give the webhook a name"}
	}
	if other, ok := c.webhooks[d.GenerateName]; ok {
		return &InvalidError{
			Field:   field + ".generateName",
			Problem: olmtext.WebhookNameRepeated, Exact: true,
			Remedy: fmt.Sprintf("give each webhook a name of its own: %s has the name %s too", other, d.GenerateName),
		}
	}
	c.webhooks[d.GenerateName] = field
	if err := c.endpoint(field, d.DeploymentName, d.ContainerPort, d.TargetPort); err != nil {
		return err
	}
	switch d.Type {
	case operatorsv1alpha1.ValidatingAdmissionWebhook, operatorsv1alpha1.MutatingAdmissionWebhook:
		return rules(field, d.Rules)
	case operatorsv1alpha1.ConversionWebhook:
		return c.conversion(field, d)
	}
	return &InvalidError{
		Field: field + ".type", Problem: fmt.Sprintf("%q is not known", d.Type),
		Remedy: "use ValidatingAdmissionWebhook, MutatingAdmissionWebhook or ConversionWebhook",
	}
}

// endpoint checks that a description has a Deployment and that its port has only one target.
func (c *checker) endpoint(field, deployment string, port int32, target *intstr.IntOrString) *InvalidError {
	specs := c.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	i := slices.IndexFunc(specs, func(d operatorsv1alpha1.StrategyDeploymentSpec) bool { return d.Name == deployment })
	if i < 0 {
		return &InvalidError{
			Field:   field + ".deploymentName",
			Problem: fmt.Sprintf("there is no Deployment %q in spec.install.spec.deployments", deployment),
			Remedy:  "name the Deployment that serves it",
		}
	}
	if len(podSelector(&specs[i])) == 0 {
		return &InvalidError{
			Field:   fmt.Sprintf("spec.install.spec.deployments[%d].spec.selector", i),
			Problem: "has no matchLabels, without which no Service can select the pods",
			Remedy:  "give the pods of the Deployment a label and select them by it",
		}
	}
	if port < 0 || port > 65535 {
		return &InvalidError{
			Field: field + ".containerPort", Problem: fmt.Sprintf("%d is not a port", port), Remedy: "use a port from 1 to 65535",
		}
	}
	return c.port(field, deployment, port, target)
}

func (c *checker) port(field, deployment string, port int32, target *intstr.IntOrString) *InvalidError {
	p := servicePort(port, target)
	if c.ports[deployment] == nil {
		c.ports[deployment] = map[int32]portUse{}
	}
	other, used := c.ports[deployment][p.Port]
	if used && other.target != p.TargetPort {
		return &InvalidError{
			Field: field + ".targetPort",
			Problem: fmt.Sprintf("port %d leads to %s of Deployment %s here and to %s in %s",
				p.Port, p.TargetPort.String(), deployment, other.target.String(), other.field),
			Remedy: "use another containerPort for one of them",
		}
	}
	c.ports[deployment][p.Port] = portUse{field: field, target: p.TargetPort}
	return nil
}

// rules returns an error for webhooks that could block the supervisor, or that could prevent their own removal.
func rules(field string, list []admissionregistrationv1.RuleWithOperations) *InvalidError {
	for i, r := range list {
		field := fmt.Sprintf("%s.rules[%d]", field, i)
		for _, group := range r.APIGroups {
			switch {
			case group == "*":
				return &InvalidError{
					Field: field + ".apiGroups", Problem: olmtext.RulesIncludeAll, Exact: true,
					Remedy: "name the groups that the operator manages",
				}
			case group == operatorsv1alpha1.GroupName:
				return &InvalidError{
					Field: field + ".apiGroups", Problem: olmtext.RulesIncludeOLM, Exact: true,
					Remedy: "remove " + group + " from the rule",
				}
			case group == coordinationv1.GroupName && slices.ContainsFunc(r.Resources, includesLeases):
				return &InvalidError{
					Field: field + ".resources", Problem: "webhook rules cannot include Leases",
					Remedy: "name the other resources of " + group + " that the operator manages",
				}
			case group == admissionregistrationv1.GroupName && slices.ContainsFunc(r.Resources, configuresWebhooks):
				return &InvalidError{
					Field:   field + ".resources",
					Problem: olmtext.RulesIncludeWebhooks, Exact: true,
					Remedy: "name the other resources of " + group + " that the operator manages",
				}
			}
		}
	}
	return nil
}

// configuresWebhooks reports whether a resource is a webhook configuration. Some rules name the kind instead.
func configuresWebhooks(resource string) bool {
	name, _, _ := strings.Cut(strings.ToLower(resource), "/")
	name = strings.TrimSuffix(name, "s")
	return name == "*" || name == "mutatingwebhookconfiguration" || name == "validatingwebhookconfiguration"
}

// includesLeases reports whether a resource of a rule matches Leases. Nodes, schedulers and the supervisor
// count as dead if they cannot renew theirs.
func includesLeases(resource string) bool {
	name, _, _ := strings.Cut(resource, "/")
	return name == "*" || name == "leases"
}

func (c *checker) conversion(field string, d *operatorsv1alpha1.WebhookDescription) *InvalidError {
	if len(d.ConversionCRDs) == 0 {
		return &InvalidError{
			Field: field + ".conversionCRDs", Problem: olmtext.ConversionWithoutCRDs, Exact: true,
			Remedy: "name the CustomResourceDefinitions that the webhook converts",
		}
	}
	if !onlyAllNamespaces(c.csv) {
		return &InvalidError{
			Field:   field + ".type",
			Problem: olmtext.ConversionModes, Exact: true,
			Remedy: "support only AllNamespaces in spec.installModes, because a definition has one conversion for all namespaces",
		}
	}
	for i, name := range d.ConversionCRDs {
		field := fmt.Sprintf("%s.conversionCRDs[%d]", field, i)
		owned := slices.ContainsFunc(c.csv.Spec.CustomResourceDefinitions.Owned,
			func(o operatorsv1alpha1.CRDDescription) bool { return o.Name == name })
		if !owned {
			return &InvalidError{
				Field: field, Problem: olmtext.CRDNotOwned(c.csv.Name, name), Exact: true,
				Remedy: "list it in spec.customresourcedefinitions.owned",
			}
		}
		if other, ok := c.converts[name]; ok {
			return &InvalidError{
				Field: field, Problem: fmt.Sprintf("%s is converted by %s too", name, other), Remedy: "let one webhook convert it",
			}
		}
		c.converts[name] = field
	}
	return nil
}

func onlyAllNamespaces(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	all := false
	for _, m := range csv.Spec.InstallModes {
		isAll := m.Type == operatorsv1alpha1.InstallModeTypeAllNamespaces
		if m.Supported && !isAll {
			return false
		}
		all = all || (m.Supported && isAll)
	}
	return all
}

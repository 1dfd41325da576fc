package webhook

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestServers(t *testing.T) {
	servers := mustServers(t, fixture())
	var got []string
	for _, s := range servers {
		got = append(got, strings.Join([]string{s.Deployment, s.Account, s.ServiceName(), s.SecretName(), strings.Join(s.Hosts("ns"), " ")}, ", "))
	}
	want := []string{
		"etcd.operator, etcd-account, etcd-operator-service, etcd-operator-service-cert, etcd-operator-service.ns etcd-operator-service.ns.svc etcd-operator-service.ns.svc.cluster.local",
		"etcd-api, default, etcd-api-service, etcd-api-service-cert, etcd-api-service.ns etcd-api-service.ns.svc etcd-api-service.ns.svc.cluster.local",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if len(servers[0].Webhooks) != 3 || len(servers[1].APIs) != 2 {
		t.Errorf("servers serve %d webhooks and %d APIs, want 3 and 2", len(servers[0].Webhooks), len(servers[1].APIs))
	}
}

// TestPorts checks the ports of the Service for the ports of two webhooks.
func TestPorts(t *testing.T) {
	port := func(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: target}
	}
	type hook struct {
		port   int32
		target *intstr.IntOrString
	}
	for name, tt := range map[string]struct {
		hooks []hook
		want  []corev1.ServicePort
	}{
		"none is named": {hooks: []hook{{}}, want: []corev1.ServicePort{port("443", 443, intstr.FromInt32(443))}},
		"the same":      {hooks: []hook{{port: 443}, {}}, want: []corev1.ServicePort{port("443", 443, intstr.FromInt32(443))}},
		"two, sorted": {
			hooks: []hook{{port: 9443}, {port: 443, target: new(intstr.FromString("hooks"))}},
			want:  []corev1.ServicePort{port("443", 443, intstr.FromString("hooks")), port("9443", 9443, intstr.FromInt32(9443))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s Server
			for _, h := range tt.hooks {
				s.Webhooks = append(s.Webhooks, operatorsv1alpha1.WebhookDescription{ContainerPort: h.port, TargetPort: h.target})
			}
			if diff := cmp.Diff(tt.want, s.Ports()); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelector checks the selector of a Service.
func TestSelector(t *testing.T) {
	csv := fixture()
	spec := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
	spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
	if diff := cmp.Diff(map[string]string{"app": "etcd.operator"}, mustServers(t, csv)[0].Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}

// TestInvalid checks the reported field after a change of a valid version.
func TestInvalid(t *testing.T) {
	const badHook = operatorsv1alpha1.CSVReasonInvalidWebhookDescription
	type version = operatorsv1alpha1.ClusterServiceVersion
	hook := func(i int, change func(*operatorsv1alpha1.WebhookDescription)) func(*version) {
		return func(csv *version) { change(&csv.Spec.WebhookDefinitions[i]) }
	}
	rule := func(groups, resources []string) func(*version) {
		return hook(0, func(d *operatorsv1alpha1.WebhookDescription) {
			d.Rules = append(d.Rules, admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: groups, Resources: resources}})
		})
	}
	for name, tt := range map[string]invalid{
		"nothing":        {change: func(*version) {}},
		"wildcard names": {change: rule([]string{"example.com"}, []string{"*"})},
		"other resources of admission": {
			change: rule([]string{"admissionregistration.k8s.io"}, []string{"validatingadmissionpolicies"}),
		},
		"same name, another type": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) { d.GenerateName = "vetcd.example.com" }),
			field:  "spec.webhookdefinitions[1].generateName", problem: "CSV contains repeated WebhookDescription name", reason: badHook,
		},
		"name used twice": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) {
				d.GenerateName, d.Type = "vetcd.example.com", operatorsv1alpha1.ValidatingAdmissionWebhook
			}),
			field: "spec.webhookdefinitions[1].generateName", problem: "CSV contains repeated WebhookDescription name", reason: badHook,
		},
		"no name": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) { d.GenerateName = "" }),
			field:  "spec.webhookdefinitions[1].generateName", problem: "is empty", reason: badHook,
		},
		"unknown type": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) { d.Type = "Other" }),
			field:  "spec.webhookdefinitions[1].type", problem: `"Other" is not known`, reason: badHook,
		},
		"unknown Deployment": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) { d.DeploymentName = "other" }),
			field:  "spec.webhookdefinitions[1].deploymentName", problem: `no Deployment "other"`, reason: badHook,
		},
		"no port": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) { d.ContainerPort = 70000 }),
			field:  "spec.webhookdefinitions[1].containerPort", problem: "70000 is not a port", reason: badHook,
		},
		"a port to two places": {
			change: hook(1, func(d *operatorsv1alpha1.WebhookDescription) { d.TargetPort = new(intstr.FromInt32(9443)) }),
			field:  "spec.webhookdefinitions[1].targetPort", problem: "port 443 leads to 9443", reason: badHook,
		},
		"pods without labels": {
			change: func(csv *version) {
				spec := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
				spec.Selector, spec.Template.Labels = nil, nil
			},
			field: "spec.install.spec.deployments[0].spec.selector", problem: "no matchLabels", reason: badHook,
		},
		"all groups": {
			change: rule([]string{"example.com", "*"}, []string{"things"}),
			field:  "spec.webhookdefinitions[0].rules[1].apiGroups", problem: "webhook rules cannot include all groups", reason: badHook,
		},
		"operators": {
			change: rule([]string{"operators.coreos.com"}, []string{"things"}),
			field:  "spec.webhookdefinitions[0].rules[1].apiGroups", problem: "webhook rules cannot include the OLM group", reason: badHook,
		},
		"webhooks": {
			change: rule([]string{"admissionregistration.k8s.io"}, []string{"mutatingwebhookconfigurations/status"}),
			field:  "spec.webhookdefinitions[0].rules[1].resources", problem: "MutatingWebhookConfiguration", reason: badHook,
		},
		"webhooks by kind": {
			change: rule([]string{"admissionregistration.k8s.io"}, []string{"ValidatingWebhookConfiguration"}),
			field:  "spec.webhookdefinitions[0].rules[1].resources", problem: "ValidatingWebhookConfiguration", reason: badHook,
		},
		"everything of admission": {
			change: rule([]string{"admissionregistration.k8s.io"}, []string{"*/*"}),
			field:  "spec.webhookdefinitions[0].rules[1].resources", problem: "ValidatingWebhookConfiguration", reason: badHook,
		},
		"converts nothing": {
			change: hook(2, func(d *operatorsv1alpha1.WebhookDescription) { d.ConversionCRDs = nil }),
			field:  "spec.webhookdefinitions[2].conversionCRDs", problem: "conversion webhook must have at least one CRD specified", reason: badHook,
		},
		"converts what another owns": {
			change: hook(2, func(d *operatorsv1alpha1.WebhookDescription) { d.ConversionCRDs = []string{"others.example.com"} }),
			field:  "spec.webhookdefinitions[2].conversionCRDs[0]", problem: "csv etcd.v1 does not own CRD others.example.com", reason: badHook,
		},
		"converted twice": {
			change: hook(2, func(d *operatorsv1alpha1.WebhookDescription) {
				d.ConversionCRDs = []string{"etcds.example.com", "etcds.example.com"}
			}),
			field: "spec.webhookdefinitions[2].conversionCRDs[1]", problem: "converted by spec.webhookdefinitions[2].conversionCRDs[0] too", reason: badHook,
		},
		"converts for one namespace": {
			change: func(csv *version) { csv.Spec.InstallModes[1].Supported = true },
			field:  "spec.webhookdefinitions[2].type", problem: "CSVs with conversion webhooks must support only AllNamespaces", reason: badHook,
		},
		"converts for none": {
			change: func(csv *version) { csv.Spec.InstallModes = nil },
			field:  "spec.webhookdefinitions[2].type", problem: "CSVs with conversion webhooks must support only AllNamespaces", reason: badHook,
		},
	} {
		t.Run(name, func(t *testing.T) { isInvalid(t, tt) })
	}
}

// TestInvalidAPIs changes the API services of a valid version.
func TestInvalidAPIs(t *testing.T) {
	const badAPI = operatorsv1alpha1.CSVReasonInvalidStrategy
	type version = operatorsv1alpha1.ClusterServiceVersion
	serves := func(group, apiVersion string) func(*version) {
		return func(csv *version) {
			d := &csv.Spec.APIServiceDefinitions.Owned[0]
			d.Group, d.Version = group, apiVersion
		}
	}
	for name, tt := range map[string]invalid{
		"API without a Deployment": {
			change: func(csv *version) { csv.Spec.APIServiceDefinitions.Owned[1].DeploymentName = "" },
			field:  "spec.apiservicedefinitions.owned[1].deploymentName", problem: "as well as by", reason: badAPI,
		},
		"API of an unknown Deployment": {
			change: func(csv *version) { csv.Spec.APIServiceDefinitions.Owned[0].DeploymentName = "other" },
			field:  "spec.apiservicedefinitions.owned[0].deploymentName", problem: `no Deployment "other"`, reason: badAPI,
		},
		"API without a version": {
			change: func(csv *version) { csv.Spec.APIServiceDefinitions.Owned[0].Version = "" },
			field:  "spec.apiservicedefinitions.owned[0]", problem: "version is empty", reason: badAPI,
		},
		"API of Kubernetes": {
			change: serves("apps", "v9"),
			field:  "spec.apiservicedefinitions.owned[0].group", problem: "operators cannot serve an API of the group apps", reason: badAPI,
		},
		"API of operators": {
			change: serves("operators.coreos.com", "v9"),
			field:  "spec.apiservicedefinitions.owned[0].group", problem: "operators.coreos.com", reason: badAPI,
		},
		"API of Kubernetes that the supervisor does not use": {
			change: serves("certificates.k8s.io", "v9"),
			field:  "spec.apiservicedefinitions.owned[0].group", problem: "certificates.k8s.io", reason: badAPI,
		},
		"API of packages": {
			change: serves("packages.operators.coreos.com", "v1"),
		},
		"another API of packages": {
			change: serves("packages.operators.coreos.com", "v9"),
			field:  "spec.apiservicedefinitions.owned[0].group", problem: "packages.operators.coreos.com", reason: badAPI,
		},
		"API served by two": {
			change: func(csv *version) { csv.Spec.APIServiceDefinitions.Owned[1].DeploymentName = "idle" },
			field:  "spec.apiservicedefinitions.owned[1].deploymentName", problem: "v1.backup.example.com is served by Deployment etcd-api as well as by idle", reason: badAPI,
		},
	} {
		t.Run(name, func(t *testing.T) { isInvalid(t, tt) })
	}
}

// invalid is a change of a valid version, with the expected error.
type invalid struct {
	change  func(*operatorsv1alpha1.ClusterServiceVersion)
	field   string // of the error; empty for none
	problem string
	reason  operatorsv1alpha1.ConditionReason
}

func isInvalid(t *testing.T, tt invalid) {
	t.Helper()
	csv := fixture()
	tt.change(csv)
	_, err := Servers(csv)
	if tt.field == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	got := &InvalidError{}
	if !errors.As(err, &got) {
		t.Fatalf("error is %v, want an InvalidError", err)
	}
	if got.Field != tt.field || !strings.Contains(got.Problem, tt.problem) || got.Remedy == "" || got.Reason != tt.reason {
		t.Errorf("error is %q (reason %s), want field %q and problem %q (reason %s)", err, got.Reason, tt.field, tt.problem, tt.reason)
	}
	if want := got.Field + ": " + got.Problem + "; " + got.Remedy; err.Error() != want {
		t.Errorf("error reads %q, want %q", err, want)
	}
}

package webhook

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// defaultPort is the port of a Service whose description names none.
const defaultPort = 443

// Server is one Deployment that serves APIs or webhooks, with all that needs its certificate.
type Server struct {
	// Deployment is the name of the Deployment.
	Deployment string
	// Service is the name of the Service; empty for one that is derived from the Deployment.
	Service string
	// Account is the name of the ServiceAccount that its pods run as.
	Account string
	// Selector selects its pods.
	Selector map[string]string
	// APIs are the aggregated APIs that it serves.
	APIs []operatorsv1alpha1.APIServiceDescription
	// Webhooks are the admission and conversion webhooks that it serves.
	Webhooks []operatorsv1alpha1.WebhookDescription
}

// Servers returns the Deployments of csv that serve APIs or webhooks, in the order in which they are declared.
// The error is an *InvalidError.
func Servers(csv *operatorsv1alpha1.ClusterServiceVersion) ([]Server, error) {
	if err := validate(csv); err != nil {
		return nil, err
	}
	var out []Server
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		s := Server{
			Deployment: specs[i].Name,
			Account:    specs[i].Spec.Template.Spec.ServiceAccountName,
			Selector:   podSelector(&specs[i]),
		}
		if s.Account == "" {
			s.Account = "default"
		}
		for _, d := range csv.Spec.APIServiceDefinitions.Owned {
			if d.DeploymentName == s.Deployment {
				s.APIs = append(s.APIs, d)
			}
		}
		for i := range csv.Spec.WebhookDefinitions {
			if csv.Spec.WebhookDefinitions[i].DeploymentName == s.Deployment {
				s.Webhooks = append(s.Webhooks, csv.Spec.WebhookDefinitions[i])
			}
		}
		if len(s.APIs) > 0 || len(s.Webhooks) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// podSelector returns the labels by which a Service selects the pods of a Deployment: a Service supports no
// expressions.
func podSelector(d *operatorsv1alpha1.StrategyDeploymentSpec) map[string]string {
	if d.Spec.Selector != nil && len(d.Spec.Selector.MatchLabels) > 0 {
		return maps.Clone(d.Spec.Selector.MatchLabels)
	}
	return maps.Clone(d.Spec.Template.Labels)
}

// ServiceName returns the name of the Service in front of the Deployment. A Service's name is a DNS label,
// which must not contain the dots of a Deployment's name.
func (s Server) ServiceName() string {
	if s.Service != "" {
		return s.Service
	}
	return strings.ReplaceAll(s.Deployment, ".", "-") + "-service"
}

// SecretName returns the name of the Secret with the certificate, and of the role that allows the Deployment to
// read it.
func (s Server) SecretName() string { return s.ServiceName() + "-cert" }

// Host returns the name by which the API server calls the Deployment, and which its certificate must contain.
func (s Server) Host(namespace string) string { return s.ServiceName() + "." + namespace + ".svc" }

// Hosts returns the names in a certificate for the Deployment. OLM replaces a certificate that lacks one of them.
func (s Server) Hosts(namespace string) []string {
	return []string{s.ServiceName() + "." + namespace, s.Host(namespace), s.Host(namespace) + ".cluster.local"}
}

// Ports returns the ports of the Service, each named after its number.
func (s Server) Ports() []corev1.ServicePort {
	byNumber := map[int32]corev1.ServicePort{}
	for _, d := range s.APIs {
		add(byNumber, d.ContainerPort, nil)
	}
	for i := range s.Webhooks {
		add(byNumber, s.Webhooks[i].ContainerPort, s.Webhooks[i].TargetPort)
	}
	var out []corev1.ServicePort
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		out = append(out, byNumber[number])
	}
	return out
}

func add(ports map[int32]corev1.ServicePort, number int32, target *intstr.IntOrString) {
	port := servicePort(number, target)
	ports[port.Port] = port
}

func servicePort(number int32, target *intstr.IntOrString) corev1.ServicePort {
	number = portOr443(number)
	to := intstr.FromInt32(number)
	if target != nil {
		to = *target
	}
	return corev1.ServicePort{
		Name: strconv.Itoa(int(number)), Protocol: corev1.ProtocolTCP, Port: number, TargetPort: to,
	}
}

func portOr443(port int32) int32 {
	if port == 0 {
		return defaultPort
	}
	return port
}

// meta returns the metadata of an object of csv in its namespace. The object is deleted with csv.
func meta(csv *operatorsv1alpha1.ClusterServiceVersion, name string) metav1.ObjectMeta {
	out := clusterMeta(csv, name)
	out.Namespace = csv.Namespace
	out.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion,
		Kind:       operatorsv1alpha1.ClusterServiceVersionKind,
		Name:       csv.Name,
		UID:        csv.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
	return out
}

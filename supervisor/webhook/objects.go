package webhook

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const (
	namespaceSystem   = "kube-system"
	roleAuthDelegator = "system:auth-delegator"
	roleAuthReader    = "extension-apiserver-authentication-reader"
)

// Objects are the objects that the Servers of a ClusterServiceVersion need in addition to their Deployments.
type Objects struct {
	// Secrets hold the certificates, except provided ones.
	Secrets []*corev1.Secret
	// Requests are the Certificates of cert-manager. Desired returns none.
	Requests []*unstructured.Unstructured
	// Services are in front of the Deployments.
	Services []*corev1.Service
	// Roles and RoleBindings allow Deployments to read their certificates, and, in the namespace kube-system, how
	// callers authenticate.
	Roles        []*rbacv1.Role
	RoleBindings []*rbacv1.RoleBinding
	// ClusterRoleBindings allow Deployments to ask who a caller is and what it may do.
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	// Validating, Mutating and APIServices make the API server call. They follow when a server can answer.
	Validating  []*admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating    []*admissionregistrationv1.MutatingWebhookConfiguration
	APIServices []*unstructured.Unstructured
}

// Desired returns the objects for servers, in the order of the Deployments. For a server without a certificate
// in certs, it omits the objects that need one. The error is about an OperatorGroup without a UID from the API
// server.
func Desired(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup,
	servers []Server, certs map[string]*Certificate,
) (Objects, error) {
	var o Objects
	namespaces, err := group.NamespaceLabelSelector()
	if err != nil {
		return o, err
	}
	for _, s := range servers {
		o.addService(csv, s)
		c := certs[s.Deployment]
		if c == nil {
			continue
		}
		if !c.Provided {
			o.Secrets = append(o.Secrets, Secret(csv, s, c))
		}
		o.addRegistrations(csv, s, namespaces, c.Bundle())
	}
	return o, nil
}

// Secret returns the Secret with the certificate of s.
func Secret(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, c *Certificate) *corev1.Secret {
	m := meta(csv, s.SecretName())
	m.Annotations = map[string]string{api.AnnotationCAHash: c.CAHash()}
	return &corev1.Secret{TypeMeta: kindOf(corev1.SchemeGroupVersion.String(), "Secret"), ObjectMeta: m, Type: corev1.SecretTypeTLS, Data: c.Data()}
}

// addService adds the objects that are needed before the pods: the Service and the permissions.
func (o *Objects) addService(csv *operatorsv1alpha1.ClusterServiceVersion, s Server) {
	const rbacVersion = rbacv1.GroupName + "/v1"
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: s.Account, Namespace: csv.Namespace}}
	o.Services = append(o.Services, &corev1.Service{
		TypeMeta:   kindOf("v1", "Service"),
		ObjectMeta: meta(csv, s.ServiceName()),
		Spec:       corev1.ServiceSpec{Ports: s.Ports(), Selector: s.Selector},
	})
	o.Roles = append(o.Roles, &rbacv1.Role{
		TypeMeta: kindOf(rbacVersion, "Role"), ObjectMeta: meta(csv, s.SecretName()),
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{s.SecretName()}}},
	})
	reader := clusterMeta(csv, readerName(csv, s))
	reader.Namespace = namespaceSystem
	o.RoleBindings = append(o.RoleBindings,
		&rbacv1.RoleBinding{
			TypeMeta: kindOf(rbacVersion, "RoleBinding"), ObjectMeta: meta(csv, s.SecretName()), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: s.SecretName()},
		},
		&rbacv1.RoleBinding{
			TypeMeta: kindOf(rbacVersion, "RoleBinding"), ObjectMeta: reader, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleAuthReader},
		})
	o.ClusterRoleBindings = append(o.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{
		TypeMeta: kindOf(rbacVersion, "ClusterRoleBinding"), ObjectMeta: clusterMeta(csv, delegatorName(csv, s)), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleAuthDelegator},
	})
}

// addRegistrations adds the objects that make the API server call s.
func (o *Objects) addRegistrations(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, namespaces *metav1.LabelSelector, bundle []byte) {
	for i := range s.Webhooks {
		switch d := &s.Webhooks[i]; d.Type {
		case operatorsv1alpha1.ValidatingAdmissionWebhook:
			o.Validating = append(o.Validating, validating(csv, s, d, namespaces, bundle))
		case operatorsv1alpha1.MutatingAdmissionWebhook:
			o.Mutating = append(o.Mutating, mutating(csv, s, d, namespaces, bundle))
		case operatorsv1alpha1.ConversionWebhook: // Conversions
		}
	}
	for i := range s.APIs {
		service := apiService(csv, s, &s.APIs[i], bundle)
		// Each kind has a description, and each version of a group one service.
		same := func(other *unstructured.Unstructured) bool { return other.GetName() == service.GetName() }
		if !slices.ContainsFunc(o.APIServices, same) {
			o.APIServices = append(o.APIServices, service)
		}
	}
}

// delegatorName returns the name of the ClusterRoleBinding. The names of bindings outside the namespace of
// their subject contain that namespace, since two namespaces may have the same operator. A namespace has no
// dots, so these names never collide.
func delegatorName(csv *operatorsv1alpha1.ClusterServiceVersion, s Server) string {
	return s.ServiceName() + "." + csv.Namespace + "-" + roleAuthDelegator
}

func readerName(csv *operatorsv1alpha1.ClusterServiceVersion, s Server) string {
	return s.ServiceName() + "." + csv.Namespace + "-auth-reader"
}

// OLMBindings holds the names of the bindings of OLM that differ from those of this package.
type OLMBindings struct {
	// ClusterRoleBinding and RoleBinding are the names. The RoleBinding is in the namespace kube-system.
	ClusterRoleBinding, RoleBinding string
}

// OLMBindings returns the names of OLM's bindings for the Deployment.
func (s Server) OLMBindings() OLMBindings {
	return OLMBindings{ClusterRoleBinding: s.ServiceName() + "-" + roleAuthDelegator, RoleBinding: s.ServiceName() + "-auth-reader"}
}

// OldestNames holds the names of OLM's oldest releases for the objects of one API. They contain the API instead of
// the Deployment.
type OldestNames struct {
	// Service is the name of the Service. Secret is the name of the Secret, of the Role and of the RoleBinding.
	Service, Secret string
	// Bindings are the names of the bindings outside the namespace.
	Bindings OLMBindings
}

// OldestNames returns the oldest names for each API of the Deployment.
func (s Server) OldestNames() []OldestNames {
	out := make([]OldestNames, 0, len(s.APIs))
	for _, d := range s.APIs {
		name := d.Version + "." + d.Group
		out = append(out, OldestNames{
			Service: strings.ReplaceAll(name, ".", "-"), Secret: name + "-cert",
			Bindings: OLMBindings{ClusterRoleBinding: name + "-" + roleAuthDelegator, RoleBinding: name + "-auth-reader"},
		})
	}
	return out
}

// IsSuperseded reports whether a binding with a name of OLM was created for s. Another binding has replaced it. It
// must bind the same role to the same account alone.
func (s Server) IsSuperseded(namespace string, labels map[string]string, role rbacv1.RoleRef, subjects []rbacv1.Subject) bool {
	labelled := labels[api.LabelManaged] == "true" || labels[api.LabelOwner] != ""
	return labelled && (role.Name == roleAuthDelegator || role.Name == roleAuthReader) && len(subjects) == 1 &&
		subjects[0].Kind == rbacv1.ServiceAccountKind && subjects[0].Name == s.Account && subjects[0].Namespace == namespace
}

// ServiceDuringRollout returns a Service that reaches the running pods and, as far as possible, the new ones. It
// keeps the selector and the ports of a live one, and adds new ports. want replaces it when the new pods serve.
func ServiceDuringRollout(live, want *corev1.Service) *corev1.Service {
	if live == nil {
		return want
	}
	out := want.DeepCopy()
	if len(live.Spec.Selector) > 0 {
		out.Spec.Selector = live.Spec.Selector
	}
	for _, p := range live.Spec.Ports {
		i := slices.IndexFunc(out.Spec.Ports, func(w corev1.ServicePort) bool { return w.Port == p.Port && w.Protocol == p.Protocol })
		kept := corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, TargetPort: p.TargetPort}
		if i < 0 {
			out.Spec.Ports = append(out.Spec.Ports, kept)
			continue
		}
		out.Spec.Ports[i] = kept
	}
	return out
}

func clusterMeta(csv *operatorsv1alpha1.ClusterServiceVersion, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: plansteps.OwnerLabels(csv.Name, csv.Namespace)}
}

func kindOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

package catalogsource

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// The kinds of objects that a catalog consists of.
var (
	kindDeployment     = appsv1.SchemeGroupVersion.WithKind("Deployment")
	kindService        = corev1.SchemeGroupVersion.WithKind("Service")
	kindServiceAccount = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	kindBudget         = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	kindNetworkPolicy  = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
)

// Desired gives the objects that a catalog consists of, in the order in which
// they are made. It is a pure function of what was observed.
func Desired(o *Observation, h *Hosting) ([]*unstructured.Unstructured, error) {
	template, err := podTemplate(o, h)
	if err != nil {
		return nil, err
	}
	replicas := o.replicas(&template.Spec, h)
	service, err := service(o.Source)
	if err != nil {
		return nil, err
	}
	var objects []desired
	if !sharesAccount(o.Source) {
		objects = append(objects, desired{kindServiceAccount, serviceAccount(o.Source)})
	}
	objects = append(objects,
		desired{kindNetworkPolicy, networkPolicy(o.Source, runsRegistry(o.Source, h))},
		desired{kindService, service},
		desired{kindDeployment, deployment(o, template, replicas)},
	)
	if replicas > 1 {
		objects = append(objects, desired{kindBudget, budget(o.Source)})
	}
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		u, err := object.encode()
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// desired is an object with its kind.
type desired struct {
	kind   schema.GroupVersionKind
	object metav1.Object
}

// encode gives the object as it is applied: only the fields that are wanted, and
// the hash of them all.
func (d desired) encode() (*unstructured.Unstructured, error) {
	text, err := json.Marshal(d.object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", d.kind.Kind, d.object.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", d.kind.Kind, d.object.GetName(), err)
	}
	u.SetGroupVersionKind(d.kind)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	d.insist(u.Object)
	sum, err := hash(u.Object)
	if err != nil {
		return nil, err
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationAppliedHash] = sum
	u.SetAnnotations(annotations)
	return u, nil
}

// insist writes down what a field that is left out means, where somebody who sets
// it would stop the catalog or open it.
func (d desired) insist(object map[string]any) {
	spec, found := object["spec"].(map[string]any)
	switch {
	case !found:
	case d.kind == kindDeployment:
		spec["paused"] = false
		insistOnPods(spec)
	case d.kind == kindService:
		spec["publishNotReadyAddresses"] = false
	case d.kind == kindNetworkPolicy:
		spec["egress"] = []any{}
	}
}

// insistOnPods does so for the pods of a Deployment.
func insistOnPods(spec map[string]any) {
	pod, _, _ := unstructured.NestedMap(spec, "template", "spec")
	pod["hostNetwork"] = false
	for _, kind := range []string{"initContainers", "containers"} {
		containers, _ := pod[kind].([]any)
		for i := range containers {
			container, _ := containers[i].(map[string]any)
			for _, words := range []string{"command", "args"} {
				if container[words] == nil {
					container[words] = []any{}
				}
			}
			ports, _ := container["ports"].([]any)
			for i := range ports {
				port, _ := ports[i].(map[string]any)
				port["hostPort"] = int64(0)
			}
		}
	}
	_ = unstructured.SetNestedMap(spec, pod, "template", "spec")
}

// meta is what all objects of a catalog have in common. Their owner takes them
// along when it goes.
func meta(source *operatorsv1alpha1.CatalogSource, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: source.Namespace, Labels: serviceLabels(source.Name),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind,
			Name: source.Name, UID: source.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

// accountName is the name of the ServiceAccount of a catalog.
func accountName(source *operatorsv1alpha1.CatalogSource) string {
	if isConfigMap(source) {
		return source.Name + "-configmap-server"
	}
	return source.Name
}

// sharesAccount says whether the ServiceAccount of that name is the one that each
// namespace has: it is used, and left alone.
func sharesAccount(source *operatorsv1alpha1.CatalogSource) bool {
	return accountName(source) == "default"
}

// pullSecretsOf are those that the CatalogSource names.
func pullSecretsOf(source *operatorsv1alpha1.CatalogSource) []corev1.LocalObjectReference {
	var all []corev1.LocalObjectReference
	for _, secret := range source.Spec.Secrets {
		if secret != "" {
			all = append(all, corev1.LocalObjectReference{Name: secret})
		}
	}
	return all
}

// serviceAccount has the pull secrets. The replicas get no token for it.
func serviceAccount(source *operatorsv1alpha1.CatalogSource) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: meta(source, accountName(source))}
	account.ImagePullSecrets = pullSecretsOf(source)
	return account
}

func service(source *operatorsv1alpha1.CatalogSource) (*corev1.Service, error) {
	s := &corev1.Service{
		ObjectMeta: meta(source, catalogs.ServiceName(source)),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: serviceLabels(source.Name),
			Ports: []corev1.ServicePort{{
				Name: protocol, Protocol: corev1.ProtocolTCP, Port: catalogs.Port, TargetPort: intstr.FromInt32(catalogs.Port),
			}},
		},
	}
	sum, err := hash(s.Spec)
	if err != nil {
		return nil, err
	}
	s.Labels[api.LabelServiceSpecHash] = sum
	return s, nil
}

func policyName(source *operatorsv1alpha1.CatalogSource) string { return source.Name + "-grpc-server" }

// networkPolicy admits all clients to the catalog's port and monitoring to its metrics, and allows no
// connections from the catalog. Policies do not restrict probes of the node's kubelet.
func networkPolicy(source *operatorsv1alpha1.CatalogSource, metrics bool) *networkingv1.NetworkPolicy {
	port := func(number int32) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(number))}
	}
	ingress := []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{port(catalogs.Port)}}}
	if metrics {
		ingress = append(ingress, networkingv1.NetworkPolicyIngressRule{
			Ports: []networkingv1.NetworkPolicyPort{port(metricsPort)}, From: monitoring(),
		})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(source, policyName(source)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: serviceLabels(source.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     ingress,
		},
	}
}

// monitoring are the namespaces from which metrics are read: those with the label that says
// so, and those that monitoring has by default. deploy/ admits the same ones to the supervisor.
func monitoring() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"metrics": "enabled"}}},
		{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"monitoring", "openshift-monitoring"},
		}}}},
	}
}

// budget lets one replica go at a time, and those that do not serve at any time,
// so that it never keeps a node from being drained.
func budget(source *operatorsv1alpha1.CatalogSource) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(source, source.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             new(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: replicaLabels(source.Name)},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}

// How a Deployment goes from one make of replicas to the next.
const (
	// minReadySeconds is how long a new replica has to stay ready until an old
	// one may go: as long as it takes for clients to learn of it.
	minReadySeconds = 2
	// progressDeadline is longer than a replica may take to start.
	progressDeadline = 600
	revisionHistory  = 3
)

// deployment never has less than all its replicas because of a roll-out: new ones
// come first, and the old ones go when those serve.
func deployment(o *Observation, template *corev1.PodTemplateSpec, replicas int) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: meta(o.Source, o.Source.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), //nolint:gosec // bounded by maxReplicas
			Selector: &metav1.LabelSelector{MatchLabels: replicaLabels(o.Source.Name)},
			Template: *template,
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
				},
			},
			MinReadySeconds:         minReadySeconds,
			ProgressDeadlineSeconds: new(int32(progressDeadline)),
			RevisionHistoryLimit:    new(int32(revisionHistory)),
		},
	}
	d.Labels[labelManagedBy] = managedBy
	if isConfigMap(o.Source) {
		return d
	}
	d.Annotations = map[string]string{api.AnnotationImage: o.Pin.Image}
	if o.Pin.Digest != "" {
		d.Annotations[api.AnnotationImageDigest] = o.Pin.Digest
	}
	if o.Pin.CatalogDir != "" {
		d.Annotations[api.AnnotationCatalogDir] = o.Pin.CatalogDir
	}
	return d
}

// copiedAnnotations are those of the CatalogSource that its replicas bear too.
func copiedAnnotations(source *operatorsv1alpha1.CatalogSource) map[string]string {
	annotations := maps.Clone(source.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		// It repeats the whole object, and would start new replicas at each change.
		return key == annotationLastApplied || strings.HasPrefix(key, api.Prefix)
	})
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationSafeToEvict] = "true"
	if len(source.Spec.Secrets) > 0 {
		annotations[api.AnnotationPullSecrets] = strings.Join(source.Spec.Secrets, ",")
	}
	return annotations
}

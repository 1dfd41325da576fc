// Package deployment derives the objects of a hosted catalog: its Deployment, Service, ServiceAccount,
// NetworkPolicy and PodDisruptionBudget. It performs no I/O.
package deployment

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
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

// Kinds of the objects of a catalog.
var (
	KindDeployment     = appsv1.SchemeGroupVersion.WithKind("Deployment")
	KindService        = corev1.SchemeGroupVersion.WithKind("Service")
	KindServiceAccount = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	KindBudget         = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	KindNetworkPolicy  = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
)

// Desired returns the objects of a catalog in the order of their creation. It is a pure function of
// the observation and the settings.
func Desired(in *Input, s *Settings) ([]*unstructured.Unstructured, error) {
	template, err := podTemplate(in, s)
	if err != nil {
		return nil, err
	}
	replicas := in.replicas(&template.Spec, s)
	secured := ServesTLS(in.Source, s)
	service, err := service(in.Source, secured)
	if err != nil {
		return nil, err
	}
	var objects []desired
	if !sharesAccount(in.Source) {
		objects = append(objects, desired{KindServiceAccount, serviceAccount(in.Source)})
	}
	objects = append(objects,
		desired{KindNetworkPolicy, networkPolicy(in.Source, RunsRegistry(in.Source, s), secured)},
		desired{KindService, service},
		desired{KindDeployment, deployment(in, template, replicas)},
	)
	if replicas > 1 {
		objects = append(objects, desired{KindBudget, budget(in.Source)})
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

// encode returns the object for server-side apply: only the wanted fields and a hash of them.
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
	d.setDefaults(u.Object)
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

// setDefaults sets default values explicitly if a change of the field would stop or expose the catalog.
func (d desired) setDefaults(object map[string]any) {
	spec, found := object["spec"].(map[string]any)
	switch {
	case !found:
	case d.kind == KindDeployment:
		spec["paused"] = false
		setPodDefaults(spec)
	case d.kind == KindService:
		spec["publishNotReadyAddresses"] = false
	case d.kind == KindNetworkPolicy:
		spec["egress"] = []any{}
	}
}

// setPodDefaults does the same for the pod template of a Deployment.
func setPodDefaults(spec map[string]any) {
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

// Meta returns the common metadata of a catalog's objects. The CatalogSource owns them, so they are
// garbage-collected with it.
func Meta(source *operatorsv1alpha1.CatalogSource, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: source.Namespace, Labels: ServiceLabels(source.Name),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind,
			Name: source.Name, UID: source.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}
}

// sharesAccount reports whether the catalog uses the namespace's default ServiceAccount, which the
// controller does not change.
func sharesAccount(source *operatorsv1alpha1.CatalogSource) bool {
	return catalogs.AccountName(source) == "default"
}

// pullSecretsOf returns the pull secrets in spec.secrets.
func pullSecretsOf(source *operatorsv1alpha1.CatalogSource) []corev1.LocalObjectReference {
	var all []corev1.LocalObjectReference
	for _, secret := range source.Spec.Secrets {
		if secret != "" {
			all = append(all, corev1.LocalObjectReference{Name: secret})
		}
	}
	return all
}

// serviceAccount returns the ServiceAccount of a catalog, with its pull secrets. The replicas mount
// no token.
func serviceAccount(source *operatorsv1alpha1.CatalogSource) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: Meta(source, catalogs.AccountName(source))}
	account.ImagePullSecrets = pullSecretsOf(source)
	return account
}

func policyName(source *operatorsv1alpha1.CatalogSource) string { return source.Name + "-grpc-server" }

// networkPolicy admits all clients to the catalog's ports and monitoring to its metrics. It allows
// no connections from the catalog. Policies do not restrict the kubelet's probes.
func networkPolicy(source *operatorsv1alpha1.CatalogSource, metrics, secured bool) *networkingv1.NetworkPolicy {
	port := func(number int32) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(number))}
	}
	ingress := []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{port(catalogs.Port)}}}
	if secured {
		ingress[0].Ports = append(ingress[0].Ports, port(catalogs.PortTLS))
	}
	if metrics {
		ingress = append(ingress, networkingv1.NetworkPolicyIngressRule{
			Ports: []networkingv1.NetworkPolicyPort{port(metricsPort)}, From: monitoring(),
		})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: Meta(source, policyName(source)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: ServiceLabels(source.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     ingress,
		},
	}
}

// monitoring returns the namespaces that may read metrics: those with the label metrics=enabled and
// the default monitoring namespaces. The manifests in deploy/ admit the same ones to the
// supervisor.
func monitoring() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"metrics": "enabled"}}},
		{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"monitoring", "openshift-monitoring"},
		}}}},
	}
}

// budget permits the eviction of one replica at a time, and of unready replicas at any time. It
// never blocks the drain of a node.
func budget(source *operatorsv1alpha1.CatalogSource) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: Meta(source, source.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             new(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: ReplicaLabels(source.Name)},
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}

// Part identifies an object of a catalog.
type Part struct {
	Kind schema.GroupVersionKind
	Name string
}

// Parts returns all objects that a catalog may have, also those of other versions and of OLM.
func Parts(source *operatorsv1alpha1.CatalogSource) []Part {
	other := *source
	other.Spec.SourceType = operatorsv1alpha1.SourceTypeGrpc
	all := []Part{
		{KindDeployment, source.Name},
		{KindBudget, source.Name},
		{KindService, source.Name},
		{KindService, catalogs.ServiceName(&other)},
		{KindServiceAccount, source.Name + "-configmap-server"},
		{KindNetworkPolicy, policyName(source)},
		// OLM creates it for Jobs that unpack bundles.
		{KindNetworkPolicy, source.Name + "-unpack-bundles"},
	}
	if !sharesAccount(&other) {
		all = append(all, Part{KindServiceAccount, source.Name})
	}
	return all
}

// Rollout settings of a Deployment.
const (
	// minReadySeconds is how long a new replica must be ready before an old one is removed. Clients
	// need that time to discover it.
	minReadySeconds = 2
	// progressDeadline exceeds the longest start of a replica, in seconds.
	progressDeadline = 600
	revisionHistory  = 3
)

// deployment returns the Deployment of a catalog. A rollout creates a new replica before it removes
// an old one.
func deployment(in *Input, template *corev1.PodTemplateSpec, replicas int) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: Meta(in.Source, in.Source.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), //nolint:gosec // bounded by MaxReplicas
			Selector: &metav1.LabelSelector{MatchLabels: ReplicaLabels(in.Source.Name)},
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
	if catalogs.IsConfigMap(in.Source) {
		return d
	}
	d.Annotations = map[string]string{api.AnnotationImage: in.Image.Spec}
	if in.Image.Digest != "" {
		d.Annotations[api.AnnotationImageDigest] = in.Image.Digest
	}
	if in.Image.CatalogDir != "" {
		d.Annotations[api.AnnotationCatalogDir] = in.Image.CatalogDir
	}
	return d
}

// copiedAnnotations returns the annotations of the CatalogSource that its pods get as well.
func copiedAnnotations(source *operatorsv1alpha1.CatalogSource) map[string]string {
	annotations := maps.Clone(source.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		// It contains the whole object and would cause a rollout for every change.
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

// hash returns a short hash of a value that is valid in a label: SHA-224 of its JSON in base 62.
// OLM writes such hashes to the labels olm.*-hash.
func hash(value any) (string, error) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		return "", fmt.Errorf("hashing %T: %w", value, err)
	}
	sum := sha256.Sum224(text.Bytes())
	var number big.Int
	return number.SetBytes(sum[:]).Text(62), nil
}

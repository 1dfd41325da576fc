package olmobjects

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The field managers of OLM's programs.
const (
	byOLM     = client.FieldOwner("olm")
	byCatalog = client.FieldOwner("catalog")
	byPerson  = client.FieldOwner("kubectl-client-side-apply")
)

// Namespace is the namespace of OLM and its global catalogs.
const Namespace = "olm"

const image = "registry.example.com/operator-framework/olm:v0.40.0"

// Writer creates OLM's objects in a cluster.
type Writer struct {
	creator

	webhooks webhooks
}

// New returns a Writer for a cluster.
func New(c client.Client) Writer {
	return Writer{creator{c}, webhooks{creator{c}, map[string]string{}}}
}

// creator creates objects in the state in which OLM leaves them.
type creator struct{ Client client.Client }

// create creates objects with one field manager, including their status.
func (w creator) create(ctx context.Context, by client.FieldOwner, objects ...client.Object) error {
	for _, o := range objects {
		full, _ := o.DeepCopyObject().(client.Object)
		if err := w.Client.Create(ctx, o, by); err != nil {
			return fmt.Errorf("making %T %s: %w", o, client.ObjectKeyFromObject(o), err)
		}
		full.SetUID(o.GetUID())
		full.SetResourceVersion(o.GetResourceVersion())
		full.SetCreationTimestamp(o.GetCreationTimestamp())
		full.SetName(o.GetName())
		if !hasStatus(o) {
			continue
		}
		if err := w.Client.Status().Update(ctx, full, by); err != nil {
			return fmt.Errorf("writing the status of %T %s: %w", o, client.ObjectKeyFromObject(o), err)
		}
		// The creation has cleared the status.
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(full).Elem())
	}
	return nil
}

func hasStatus(o client.Object) bool {
	switch o.(type) {
	case *operatorsv1alpha1.CatalogSource, *operatorsv1alpha1.Subscription, *operatorsv1alpha1.InstallPlan,
		*operatorsv1alpha1.ClusterServiceVersion, *operatorsv1.OperatorGroup:
		return true
	default:
		return false
	}
}

// MakeNamespace creates a namespace if it does not exist.
func (w Writer) MakeNamespace(ctx context.Context, name string) error {
	err := w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, byPerson)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	return nil
}

// account is the service account of OLM's Deployments, and role is its ClusterRole.
const (
	account = "olm-operator-serviceaccount"
	role    = "system:controller:operator-lifecycle-manager"
)

// rights returns OLM's service account and its permissions, as in OLM's manifests.
func rights() []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: account}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			Rules: []rbacv1.PolicyRule{
				{
					APIGroups: []string{"*"}, Resources: []string{"*"},
					Verbs: []string{"watch", "list", "get", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind"},
				},
				{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "olm-operator-binding-" + Namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
		},
	}
}

// InstallOLM creates OLM's own Deployments and their permissions.
func (w Writer) InstallOLM(ctx context.Context) error {
	if err := w.MakeNamespace(ctx, Namespace); err != nil {
		return err
	}
	if err := w.create(ctx, byPerson, rights()...); err != nil {
		return err
	}
	return w.create(ctx, byPerson,
		program("olm-operator", "/bin/olm", "--namespace", "$(OPERATOR_NAMESPACE)", "--writeStatusName", ""),
		program("catalog-operator", "/bin/catalog", "--namespace", Namespace, "--set-workload-user-id=true"),
		program("packageserver", "/bin/package-server", "-v=4", "--secure-port", "5443", "--global-namespace", Namespace))
}

func program(name, command string, args ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{
					Name: name, Image: image, Command: []string{command}, Args: args,
					Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}},
				}}},
			},
		},
	}
}

// Catalog creates a CatalogSource in OLM's namespace, hosted from an image or at an address, and
// the objects that OLM creates for it.
func (w Writer) Catalog(ctx context.Context, name, image, address string) error {
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image, Address: address, DisplayName: "Catalog " + name,
		},
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	source.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{Address: address, LastObservedState: "READY", LastConnectTime: now}
	source.Status.RegistryServiceStatus = &operatorsv1alpha1.RegistryServiceStatus{CreatedAt: now, Protocol: "grpc"}
	if image != "" {
		service := strings.ReplaceAll(name, ".", "-")
		source.Status.GRPCConnectionState.Address = fmt.Sprintf("%s.%s.svc:50051", service, Namespace)
		source.Status.RegistryServiceStatus = &operatorsv1alpha1.RegistryServiceStatus{
			CreatedAt: now, Protocol: "grpc", ServiceName: service, ServiceNamespace: Namespace, Port: "50051",
		}
	}
	if err := w.create(ctx, byCatalog, source); err != nil || image == "" {
		return err
	}
	return w.create(ctx, byCatalog, catalogObjects(source)...)
}

// catalogObjects returns the objects that OLM creates for a hosted catalog.
func catalogObjects(source *operatorsv1alpha1.CatalogSource) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: source.Namespace, Name: name, Labels: map[string]string{"olm.managed": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind,
				Name: source.Name, UID: source.UID, Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		}
	}
	selector := map[string]string{"olm.catalogSource": source.Name, "olm.managed": "true"}
	service := &corev1.Service{
		ObjectMeta: meta(strings.ReplaceAll(source.Name, ".", "-")),
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports:    []corev1.ServicePort{{Name: "grpc", Port: 50051, TargetPort: intstr.FromInt32(50051), Protocol: corev1.ProtocolTCP}},
		},
	}
	service.Labels["olm.service-spec-hash"] = Hash(service.Spec)
	pod := catalogPod(source, meta(""))
	port := networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(50051))}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(source.Name)},
		&networkingv1.NetworkPolicy{ObjectMeta: meta(source.Name + "-grpc-server"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{port}}},
		}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta(source.Name + "-unpack-bundles"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "operatorframework.io/bundle-unpack-ref", Operator: metav1.LabelSelectorOpExists},
				{Key: "olm.managed", Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{}},
		}},
		service, pod,
	}
}

func catalogPod(source *operatorsv1alpha1.CatalogSource, meta metav1.ObjectMeta) *corev1.Pod {
	probe := func(delay, period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 50051, Service: new("")}},
			InitialDelaySeconds: delay, PeriodSeconds: period, FailureThreshold: failures, TimeoutSeconds: 5,
		}
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		ServiceAccountName: source.Name, NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Containers: []corev1.Container{{
			Name: "registry-server", Image: source.Spec.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Ports:          []corev1.ContainerPort{{Name: "grpc", ContainerPort: 50051}},
			ReadinessProbe: probe(5, 10, 3), LivenessProbe: probe(10, 10, 3), StartupProbe: probe(0, 10, 15),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
			}},
			SecurityContext:          &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
	}}
	pod.GenerateName = source.Name + "-"
	pod.Labels["olm.catalogSource"] = source.Name
	pod.Labels["olm.pod-spec-hash"] = Hash(pod.Spec)
	pod.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
	return pod
}

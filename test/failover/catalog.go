package failover

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// stateReady is the state that clients expect of a working catalog.
const stateReady = "READY"

// replicasAnnotation sets the number of replicas of a catalog.
const replicasAnnotation = "chandlery.dev/replicas"

// Target is the server of a catalog: pods behind a Service.
type Target struct {
	// Namespace is the namespace of the Service and of the pods with the labels.
	Namespace, Service string
	Labels             map[string]string
	// Replicas is the full number of pods.
	Replicas int
	// Hanging is set if pods of lost nodes remain Terminating until the nodes return, as without a
	// supervisor. Such pods do not count.
	Hanging bool
}

// Hosted returns a catalog that the supervisors run.
func Hosted(name string, replicas int) Target {
	return Target{
		Namespace: CatalogNamespace, Service: name, Replicas: replicas,
		Labels: map[string]string{api.LabelCatalogSource: name},
	}
}

// String returns the name of the target.
func (t Target) String() string { return t.Namespace + "/" + t.Service }

// NewCatalog returns a catalog from an image. With zero replicas, the supervisor chooses the number.
func NewCatalog(name, image string, replicas int) *operatorsv1alpha1.CatalogSource {
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: CatalogNamespace, Name: name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image},
	}
	if replicas > 0 {
		source.Annotations = map[string]string{replicasAnnotation: strconv.Itoa(replicas)}
	}
	return source
}

// Source reads a CatalogSource.
func (s *Scene) Source(ctx context.Context, name string) (*operatorsv1alpha1.CatalogSource, error) {
	u := catalogs.NewObject()
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: CatalogNamespace, Name: name}, u); err != nil {
		return nil, fmt.Errorf("reading CatalogSource %s: %w", name, err)
	}
	return catalogs.Decode(u)
}

// Ready waits until a catalog is READY.
func (s *Scene) Ready(ctx context.Context, name string) error {
	return Eventually(ctx, "catalog "+name+" to be READY", func(ctx context.Context) string {
		source, err := s.Source(ctx, name)
		if err != nil {
			return err.Error()
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != stateReady {
			return fmt.Sprintf("%+v, reason %s, message %s, conditions %v", state, source.Status.Reason, source.Status.Message, source.Status.Conditions)
		}
		return ""
	})
}

// Strong waits until a target has its full number of pods, each ready and on a different node, and no others.
func (s *Scene) Strong(ctx context.Context, target Target) error {
	return Eventually(ctx, target.String()+" to be at full strength", func(ctx context.Context) string {
		return s.weaknessOf(ctx, target)
	})
}

func (s *Scene) weaknessOf(ctx context.Context, target Target) string {
	pods, err := s.pods(ctx, target)
	if err != nil {
		return err.Error()
	}
	return weakness(pods, target.Replicas)
}

func (s *Scene) pods(ctx context.Context, target Target) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := s.Client.List(ctx, pods, client.InNamespace(target.Namespace), client.MatchingLabels(target.Labels)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", target, err)
	}
	if target.Hanging {
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	}
	return pods.Items, nil
}

// address returns the address of a target for clients in the cluster.
func (s *Scene) address(ctx context.Context, target Target) (string, error) {
	service := &corev1.Service{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Service}, service); err != nil {
		return "", fmt.Errorf("reading the Service of %s: %w", target, err)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(catalogs.Port)), nil
}

// Images returns the images of a target's ready pods, each once, sorted.
func (s *Scene) Images(ctx context.Context, target Target) ([]string, error) {
	pods, err := s.pods(ctx, target)
	if err != nil {
		return nil, err
	}
	var images []string
	for i := range pods {
		if ready(&pods[i]) {
			images = append(images, pods[i].Spec.Containers[0].Image)
		}
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

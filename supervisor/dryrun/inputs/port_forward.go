package inputs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

// forwardTimeout is the maximum time until a port-forward is ready.
const forwardTimeout = 20 * time.Second

// errNoReplica means that a hosted catalog has no ready replica.
var errNoReplica = errors.New("no replica of it is ready")

// hosted reads a catalog that the cluster runs. It connects through the API server, which reaches the replicas
// wherever the command runs. If a permission is missing, the error ends with instead, which may be empty.
func (c *Cluster) hosted(ctx context.Context, source *operatorsv1alpha1.CatalogSource, instead string) (*catalogs.Snapshot, string, error) {
	address, from, stop, err := c.forwardReplica(ctx, source, instead)
	if err != nil {
		return nil, from, err
	}
	defer stop()
	read, err := fromAddress(ctx, address, dialtls.Security{})
	if err != nil {
		return nil, from, fmt.Errorf("%s: %w", from, err)
	}
	return read, from, nil
}

// forwardReplica opens a local port that is forwarded to a ready replica of a catalog, until stop is called. If a
// permission is missing, the error ends with instead, which may be empty.
func (c *Cluster) forwardReplica(
	ctx context.Context, source *operatorsv1alpha1.CatalogSource, instead string,
) (address, from string, stop func(), err error) {
	pod, err := c.replica(ctx, source, instead)
	if err != nil {
		return "", "", nil, err
	}
	from = "port-forward to pod " + pod.Namespace + "/" + pod.Name
	address, stop, err = c.forward(ctx, pod)
	if err != nil {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; grant permission to create pods/portforward in namespace %s%s", err, pod.Namespace, instead)
		}
		return "", from, nil, fmt.Errorf("%s: %w", from, err)
	}
	return address, from, stop, nil
}

// replica returns a ready pod of a catalog. If a permission is missing, the error ends with instead.
func (c *Cluster) replica(ctx context.Context, source *operatorsv1alpha1.CatalogSource, instead string) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := c.reader.List(ctx, pods, client.InNamespace(source.Namespace), client.MatchingLabels{api.LabelCatalogSource: source.Name})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing its pods: %w; grant permission to list pods and to create pods/portforward in namespace %s%s", err, source.Namespace, instead)
	}
	if err != nil {
		return nil, fmt.Errorf("listing its pods: %w", err)
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp.IsZero() && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
	if i < 0 {
		return nil, fmt.Errorf("%w: %w (of %d)", catalogs.ErrNotConnected, errNoReplica, len(pods.Items))
	}
	return &pods.Items[i], nil
}

// maxRefusal is the maximum size of an answer that refuses a port-forward, in bytes.
const maxRefusal = 64 << 10

// refusalRecorder keeps the answer of an API server that refuses a port-forward. The library passes only its text on.
type refusalRecorder struct {
	http.RoundTripper

	refused error
}

// RoundTrip sends a request.
func (r *refusalRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err //nolint:wrapcheck // the caller says what it does
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("reading why the API server refuses: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	status := metav1.Status{}
	if json.Unmarshal(body, &status) == nil && status.Status == metav1.StatusFailure {
		r.refused = &apierrors.StatusError{ErrStatus: status}
	}
	return response, nil
}

// forward opens a local port that is forwarded to a pod. It stays open until stop is called.
func (c *Cluster) forward(ctx context.Context, pod *corev1.Pod) (address string, stop func(), err error) {
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return "", nil, fmt.Errorf("preparing a port-forward: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return "", nil, fmt.Errorf("preparing a port-forward: %w", err)
	}
	target := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	recorder := &refusalRecorder{RoundTripper: transport}
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: recorder}, http.MethodPost, target)
	end, ready := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	var output bytes.Buffer
	forwarder, err := portforward.NewOnAddressesForStreaming(
		dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", catalogs.Port)}, end, ready, io.Discard, &output)
	if err != nil {
		return "", nil, fmt.Errorf("preparing a port-forward: %w", err)
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	stop = func() {
		close(end)
		<-ended //nolint:errcheck // it ends because it is told to
	}
	select {
	case err := <-ended:
		return "", nil, fmt.Errorf("opening a port-forward: %w", cmp.Or(recorder.refused, err))
	case <-ctx.Done():
		stop()
		return "", nil, fmt.Errorf("opening a port-forward: %w", context.Cause(ctx))
	case <-time.After(forwardTimeout):
		stop()
		return "", nil, fmt.Errorf("opening a port-forward: %w within %s", context.DeadlineExceeded, forwardTimeout)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("opening a port-forward: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), stop, nil
}

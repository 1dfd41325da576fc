package supportbundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandlery/chandlery/cmd/internal/redact"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// maxLines is the number of log lines to request. Lines of usual length exceed the number of bytes to store.
const maxLines = 20_000

// maxTransfer is the largest number of bytes read of a log, as a multiple of the bytes to store.
// The API server sends the end of a log by lines, which may be long.
const maxTransfer = 16

// ofInterest reports whether a bundle includes the log of a pod: of supervisors, catalogs and operators.
func ofInterest(o *explain.ClusterState, pod *corev1.Pod) bool {
	if pod.Labels["app.kubernetes.io/name"] == "chandlery-supervisor" || pod.Labels[api.LabelCatalogSource] != "" {
		return true
	}
	for i := range o.Deployments {
		d := &o.Deployments[i]
		owned := d.Labels[api.LabelOwner] != "" || slices.ContainsFunc(d.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.Kind == operatorsv1alpha1.ClusterServiceVersionKind
		})
		if !owned || d.Namespace != pod.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// addLogs adds the ends of the logs of a pod's containers, including those before a crash. Logs
// that cannot be read are recorded.
func (g *gatherer) addLogs(ctx context.Context, pod *corev1.Pod) {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		path := fmt.Sprintf("logs/%s/%s/%s", part(pod.Namespace), part(pod.Name), part(container.Name))
		if container.State.Waiting == nil || container.RestartCount > 0 {
			g.addLog(ctx, pod, path+".log", &corev1.PodLogOptions{Container: container.Name})
		}
		if container.RestartCount > 0 {
			g.addLog(ctx, pod, path+".previous.log", &corev1.PodLogOptions{Container: container.Name, Previous: true})
		}
	}
}

func (g *gatherer) addLog(ctx context.Context, pod *corev1.Pod, path string, options *corev1.PodLogOptions) {
	options.TailLines = new(int64(maxLines))
	stream, err := g.clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		g.contents.left = append(g.contents.left, fmt.Sprintf("%s: %v", path, err))
		return
	}
	defer func() { _ = stream.Close() }()
	end, whole, err := tail(io.LimitReader(stream, maxTransfer*g.logLimit), g.logLimit)
	if err != nil {
		g.contents.left = append(g.contents.left, fmt.Sprintf("%s: the end is missing: %v", path, err))
	}
	text := redact.Text(string(end))
	if !whole {
		text = "[earlier lines are left out: --log-bytes]\n" + text
	}
	g.contents.add(path, []byte(text))
}

// tail returns the last bytes of a stream, from the beginning of a line. It reports whether they
// are the whole stream.
func tail(stream io.Reader, limit int64) (end []byte, whole bool, err error) {
	var kept []byte
	whole = true
	chunk := make([]byte, 64<<10)
	for {
		n, err := stream.Read(chunk)
		kept = append(kept, chunk[:n]...)
		if over := int64(len(kept)) - limit; over > 0 {
			kept, whole = kept[over:], false
		}
		if err == nil {
			continue
		}
		if !whole {
			_, kept, _ = bytes.Cut(kept, []byte("\n"))
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return bytes.Clone(kept), whole, err //nolint:wrapcheck // the caller says of what
	}
}

package nodepull

import (
	"context"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// NewLogs returns a function that reads logs at the API server.
func NewLogs(cfg *rest.Config, h *http.Client) (Logs, error) {
	api, err := corev1client.NewForConfigAndClient(cfg, h)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the logs of pods: %w", err)
	}
	return func(ctx context.Context, pod types.NamespacedName, container string, limit int64) (io.ReadCloser, error) {
		return api.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, LimitBytes: &limit}).Stream(ctx)
	}, nil
}

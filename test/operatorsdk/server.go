package operatorsdk

import (
	"context"
	"fmt"
	"net"
	"strconv"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/chandlery/chandlery/test/pause"
)

const (
	// opmImage is the image of the pod that serves the catalog.
	opmImage = "quay.io/" + OpmRepository
	// OpmRepository is the name of this image without its host.
	OpmRepository = "operator-framework/opm:latest"

	port = 50051
	// catalogKey is the key of the catalog in its ConfigMap.
	catalogKey = "extraFBC"
)

// StartServer creates a ConfigMap with a catalog and a pod that serves it, and waits until the pod is Running. The
// CatalogSource owns both, and controls neither. Unlike operator-sdk, the ConfigMap has the catalog without
// compression, because the image of the init container that decompresses it is missing here.
func (o Operator) StartServer(ctx context.Context, source *operatorsv1alpha1.CatalogSource, name, catalog string, bundles ...string) (Server, error) {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name + "-configmap-partition-1"},
		Data:       map[string]string{catalogKey: catalog},
	}
	pod := o.server(name, config.Name)
	for _, made := range []client.Object{config, pod} {
		if err := controllerutil.SetOwnerReference(source, made, o.Client.Scheme()); err != nil {
			return Server{}, fmt.Errorf("setting the owner of the server: %w", err)
		}
		if err := o.Client.Create(ctx, made); err != nil {
			return Server{}, fmt.Errorf("creating %T %s: %w", made, made.GetName(), err)
		}
	}
	err := pause.Until(ctx, polling, func() string {
		if err := o.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return ""
	})
	if err != nil {
		return Server{}, fmt.Errorf("waiting for pod %s to be Running: %w", name, err)
	}
	return Server{Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)), Pod: name, Bundles: bundles}, nil
}

// server returns a pod that serves the catalog in a ConfigMap.
func (o Operator) server(name, config string) *corev1.Pod {
	const volume = "catalog"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config}},
			}}},
			Containers: []corev1.Container{{
				Name: "registry-grpc", Image: opmImage,
				Command: []string{"opm", "serve", "/configs", "--port", strconv.Itoa(port)},
				Ports:   []corev1.ContainerPort{{Name: "grpc", ContainerPort: port}},
				// As a folder, the volume would have the file twice: opm follows no links to folders, but reads all files.
				VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/configs/catalog.yaml", SubPath: catalogKey}},
			}},
		},
	}
}

// StopServer deletes the pod of a server and waits until it is gone.
func (o Operator) StopServer(ctx context.Context, name string) error {
	return o.remove(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/packageserver"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// candidate is a server to measure.
type candidate struct {
	name string
	// launch creates the objects of the server that listens on a port, and starts it.
	launch func(ctx context.Context, s *scene, port int32) (*process.Process, error)
}

// candidates returns both servers. peer is the path of OLM's.
func candidates(peer string) []candidate {
	return []candidate{
		{"supervisor", launchSupervisor},
		{"OLM", func(ctx context.Context, s *scene, port int32) (*process.Process, error) {
			return launchPeer(ctx, s, peer, port)
		}},
	}
}

// run starts a candidate, measures it and stops it. Then its API does not exist any more.
func (s *scene) run(ctx context.Context, c candidate) (figures, error) {
	port, err := ports.Reserve(ctx)
	if err != nil {
		return figures{}, err
	}
	started, err := c.launch(ctx, s, int32(port.Number))
	if err != nil {
		return figures{}, fmt.Errorf("starting the server of %s: %w", c.name, err)
	}
	f, err := s.observe(ctx, c.name, started)
	api := apiService()
	return f, errors.Join(err, started.Stop(grace), client.IgnoreNotFound(s.client.Delete(context.WithoutCancel(ctx), api)), port.Release())
}

// create creates objects.
func (s *scene) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

func launchSupervisor(ctx context.Context, s *scene, port int32) (*process.Process, error) {
	if err := s.create(ctx, packageserver.Objects(home, s.host, port)...); err != nil {
		return nil, err
	}
	return process.Start(ctx, process.Spec{
		Name: "supervisor", Path: filepath.Join(s.dir, "supervisor"), Log: filepath.Join(s.dir, "supervisor.log"),
		Args: append(packageserver.Args(s.plane.Kubeconfig(), home, s.host, port), "--global-catalog-namespace", home),
	})
}

const (
	peerName = "packageserver"
	// podFiles is where programs find their service account.
	podFiles = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// launchPeer starts OLM's package server with the files of a pod, in a mount namespace.
func launchPeer(ctx context.Context, s *scene, path string, port int32) (*process.Process, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: peerName}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: peerName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: peerName}},
	}
	if err := s.create(ctx, append(packageserver.Endpoint(home, peerName+"-service", s.host, port), account, binding)...); err != nil {
		return nil, err
	}
	token := &authenticationv1.TokenRequest{}
	if err := s.client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("requesting a token: %w", err)
	}
	server, err := hostPort(s.plane.Config().Host)
	if err != nil {
		return nil, err
	}
	started, err := s.startInPod(ctx, process.Spec{
		Name: peerName, Path: path, Log: filepath.Join(s.dir, peerName+".log"),
		Args: []string{
			"--global-namespace", home, "--bind-address", s.host, "--secure-port", strconv.Itoa(int(port)), "--cert-dir", filepath.Join(s.dir, "certificates"),
		},
		Env: append(os.Environ(), "KUBERNETES_SERVICE_HOST="+server.host, "KUBERNETES_SERVICE_PORT="+server.port),
	}, map[string][]byte{"token": []byte(token.Status.Token), "ca.crt": s.plane.Config().CAData})
	if err != nil {
		return nil, err
	}
	api := apiService()
	api.Object["spec"] = map[string]any{
		"group": "packages.operators.coreos.com", "version": "v1", "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": home, "name": peerName + "-service"},
	}
	return started, s.create(ctx, api)
}

// startInPod starts a program that finds the files of a pod's service account: its namespace, and given ones. The program has
// its own mounts.
func (s *scene) startInPod(ctx context.Context, spec process.Spec, files map[string][]byte) (*process.Process, error) {
	const script = `mount -t tmpfs none /var/run && mkdir -p "$2" && mount --bind "$1" "$2" && shift 2 && exec "$@"`
	dir := filepath.Join(s.dir, "pod-"+spec.Name)
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "namespace"), []byte(home), 0o600))
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	if err != nil {
		return nil, fmt.Errorf("writing the files of a pod: %w", err)
	}
	spec.Args = append([]string{"--mount", "sh", "-c", script, "sh", dir, podFiles, spec.Path}, spec.Args...)
	spec.Path = "/usr/bin/unshare"
	return process.Start(ctx, spec)
}

// apiService returns the APIService of PackageManifests.
func apiService() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("apiregistration.k8s.io/v1")
	u.SetKind("APIService")
	u.SetName("v1.packages.operators.coreos.com")
	return u
}

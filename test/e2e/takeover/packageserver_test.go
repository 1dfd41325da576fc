package takeover_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/testenv"
)

// packageServer is OLM's package server, with the name of its ClusterServiceVersion and of its Deployment.
const packageServer = "packageserver"

// packageServerSecret returns the Secret with the certificate of the package server.
func (s *olmScene) packageServerSecret() client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: packageServer + "-service-cert"}
}

// installsPackageServer lets OLM install its package server, as its chart does, and waits until it serves.
func installsPackageServer(s *olmScene) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: packageServer}}); err != nil {
		s.t.Fatal(err)
	}
	v := csv(packageServer, "0.46.0", false)
	v.Namespace, v.Name = s.namespace, packageServer
	v.Spec.CustomResourceDefinitions = operatorsv1alpha1.CustomResourceDefinitions{}
	v.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{{
		Group: "packages.operators.coreos.com", Version: "v1", Kind: "PackageManifest", Name: "packagemanifests",
		DeploymentName: packageServer, ContainerPort: int32(servesPackages(s).Port),
	}}
	strategy := &v.Spec.InstallStrategy.StrategySpec
	strategy.Permissions, strategy.ClusterPermissions = nil, []operatorsv1alpha1.StrategyDeploymentPermissions{{
		ServiceAccountName: "olm-operator-serviceaccount",
		Rules:              []rbacv1.PolicyRule{{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"catalogsources"}, Verbs: []string{"get", "list", "watch"}}},
	}}
	d := &strategy.DeploymentSpecs[0]
	d.Name, d.Spec.Template.Spec.ServiceAccountName = packageServer, "olm-operator-serviceaccount"
	s.create(v)
	s.reaches(packageServer, packageServer, operatorsv1alpha1.CSVPhaseSucceeded)
}

// servesPackages serves the API of the package server in place of its simulated pods until the test ends, and returns
// the address.
func servesPackages(s *olmScene) *net.TCPAddr {
	s.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp4", net.JoinHostPort(ports.MachineAddress(s.t), "0"))
	if err != nil {
		s.t.Fatal(err)
	}
	var certificate atomic.Pointer[tls.Certificate]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "packages.operators.coreos.com/v1",
			APIResources: []metav1.APIResource{{Name: "packagemanifests", SingularName: "packagemanifest", Kind: "PackageManifest", Namespaced: true, Verbs: []string{"get"}}},
		})
	}))
	_ = server.Listener.Close()
	server.Listener, server.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := certificate.Load(); c != nil {
			return c, nil
		}
		return nil, errors.New("the Secret does not exist yet")
	}}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	address := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // it is one
	go func() {
		for pause.For(s.t.Context(), 500*time.Millisecond) {
			if pair := s.joinPackageServer(s.t.Context(), address.IP.String()); pair != nil {
				certificate.Store(pair)
			}
		}
	}()
	return address
}

// joinPackageServer gives the pods of the package server an address, and returns their certificate; nil if there is none.
func (s *olmScene) joinPackageServer(ctx context.Context, ip string) *tls.Certificate {
	var pods corev1.PodList
	if s.List(ctx, &pods, client.InNamespace(s.namespace)) != nil {
		return nil
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; strings.HasPrefix(p.Name, packageServer+"-") && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != ip {
			// Another attempt follows.
			_ = s.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"status":{"podIP":"`+ip+`","podIPs":[{"ip":"`+ip+`"}]}}`)))
		}
	}
	secret := &corev1.Secret{}
	if s.Get(ctx, s.packageServerSecret(), secret) != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil
	}
	return &pair
}

// renewsPackageServer deletes the certificate of the package server, and waits until there is another one with which its
// API is served.
func renewsPackageServer(s *olmScene) {
	s.t.Helper()
	before := &corev1.Secret{}
	if err := s.Get(s.t.Context(), s.packageServerSecret(), before); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Delete(s.t.Context(), before); err != nil {
		s.t.Fatal(err)
	}
	testenv.Until(s.t, patience, "another certificate of the package server", func(ctx context.Context) string {
		after := &corev1.Secret{}
		if err := s.Get(ctx, s.packageServerSecret(), after); err != nil {
			return err.Error()
		}
		if bytes.Equal(after.Data[corev1.TLSCertKey], before.Data[corev1.TLSCertKey]) {
			return "the same certificate"
		}
		api := &unstructured.Unstructured{}
		api.SetAPIVersion("apiregistration.k8s.io/v1")
		api.SetKind("APIService")
		if err := s.Get(ctx, client.ObjectKey{Name: "v1.packages.operators.coreos.com"}, api); err != nil {
			return err.Error()
		}
		content := text(s.t, api.Object)
		ca, err := json.Marshal(after.Data["olmCAKey"])
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(content, `"caBundle":`+string(ca)) || !strings.Contains(content, `"message":"all checks passed"`) {
			return content
		}
		return ""
	})
	s.reaches(packageServer, packageServer, operatorsv1alpha1.CSVPhaseSucceeded)
}

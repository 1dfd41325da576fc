package suite_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiService returns the APIService for v1 of a group.
func apiService(group string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apiregistration.k8s.io/v1")
	o.SetKind("APIService")
	o.SetName("v1." + group)
	return o
}

// servesAPI returns a change that makes the kettle serve a group; the test answers in place of its
// pods.
func servesAPI(group string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		idle(csv)
		csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
			{Name: "cups", Group: group, Version: "v1", Kind: "Cup", DeploymentName: "kettle", ContainerPort: 443},
		}
	}
}

// idle leaves the kettle without pods: the test answers in their place.
func idle(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = ptr.To[int32](0)
}

// pod answers for the kettle with the certificate in its Secret.
func (w *world) pod(answer http.HandlerFunc) {
	w.T.Helper()
	var pair tls.Certificate
	w.Eventually(func(g gomega.Gomega) {
		secret := &corev1.Secret{}
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: certName}, secret)).To(gomega.Succeed())
		var err error
		pair, err = tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		g.Expect(err).NotTo(gomega.HaveOccurred())
	}).Should(gomega.Succeed())
	server := httptest.NewUnstartedServer(answer)
	listener, err := (&net.ListenConfig{}).Listen(w.T.Context(), "tcp", net.JoinHostPort(address(w.T), "0"))
	if err != nil {
		w.T.Fatal(err)
	}
	_ = server.Listener.Close()
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	w.T.Cleanup(server.Close)
	at, _ := listener.Addr().(*net.TCPAddr)
	w.Create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.Namespace, Name: "kettle-pod", Labels: map[string]string{discoveryv1.LabelServiceName: "kettle-service"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("443"), Port: new(int32(at.Port)), Protocol: new(corev1.ProtocolTCP)}},
	})
}

// discovers answers discovery requests for a group.
func discovers(group string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/"+group+"/v1" {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[`+
			`{"name":"cups","singularName":"cup","namespaced":true,"kind":"Cup","verbs":["get"]}]}`, group+"/v1")
	}
}

// convertsAt answers as a conversion webhook without objects to convert.
func convertsAt(path string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != path {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":%q,"result":{"status":"Success"}}}`, review.Request.UID)
	}
}

// address returns an address of this machine that endpoints may have, which excludes loopback
// addresses.
func address(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but that of the loopback interface, which endpoints must not have; give it a network")
	return ""
}

func TestServesAnAPIAndTakesItAway(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const group = "api.kettle.example.com"
	csv := w.kettle("kettle.v1", servesAPI(group))
	w.Create(w.group("own", w.Namespace), csv)
	w.Eventually(func(g gomega.Gomega) {
		live := w.csv("kettle.v1")
		g.Expect(live.Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseInstalling))
		g.Expect(live.Status.Message).To(gomega.ContainSubstring("apiServices not installed"))
	}).Should(gomega.Succeed())

	w.pod(discovers(group))
	w.succeeds("kettle.v1")
	registered := apiService(group)
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(registered), registered)).To(gomega.Succeed())
	bundle, _, err := unstructured.NestedString(registered.Object, "spec", "caBundle")
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(bundle).To(gomega.Equal(base64.StdEncoding.EncodeToString(w.secret(w).Data["olmCAKey"])))
	before := w.csv("kettle.v1").ResourceVersion
	w.Consistently(func() string { return w.csv("kettle.v1").ResourceVersion }).WithTimeout(3 * time.Second).Should(gomega.Equal(before))

	// A deleted APIService is recreated.
	w.Expect(w.Delete(t.Context(), registered)).To(gomega.Succeed())
	w.Eventually(func() error {
		return w.Get(t.Context(), client.ObjectKeyFromObject(registered), registered)
	}).Should(gomega.Succeed())
	w.succeeds("kettle.v1")

	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.EventuallyGone(registered)
}

// TestLeavesPackagesToTheSupervisor gives the APIService of a package server to the supervisor, as after a takeover from
// OLM. The version of the package server changes and deletes it no more.
func TestLeavesPackagesToTheSupervisor(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	const group = "packages.operators.coreos.com"
	csv := w.kettle("kettle.v1", servesAPI(group))
	w.Create(w.group("own", w.Namespace), csv)
	w.pod(discovers(group))
	w.succeeds("kettle.v1")
	packages := apiService(group)
	w.DeleteAtEnd(packages)
	w.Modify(packages, func() {
		packages.SetLabels(map[string]string{"app.kubernetes.io/part-of": "chandlery"})
		if err := unstructured.SetNestedField(packages.Object, int64(21), "spec", "versionPriority"); err != nil {
			t.Fatal(err)
		}
	})
	changed := packages.DeepCopy()
	unchanged := func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(packages), packages)).To(gomega.Succeed())
		g.Expect(packages.Object["spec"]).To(gomega.Equal(changed.Object["spec"]))
		g.Expect(packages.GetLabels()).To(gomega.Equal(changed.GetLabels()))
	}
	w.Consistently(func(g gomega.Gomega) {
		unchanged(g)
		g.Expect(w.csv("kettle.v1").Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	}).Should(gomega.Succeed())
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)
	w.Consistently(unchanged).Should(gomega.Succeed())
}

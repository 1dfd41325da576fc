package webhook

import (
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestExampleForCertManager checks that the Secret that cert-manager makes of the example is the one of the Deployment, and
// that the supervisor accepts a certificate with the names in it.
func TestExampleForCertManager(t *testing.T) {
	text, err := os.ReadFile("../../examples/manifests/cert-manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			SecretName     string
			SecretTemplate struct{ Annotations map[string]string }
			DNSNames       []string
		}
	}
	if err := yaml.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	server, namespace := Server{Deployment: "lamp"}, example.Metadata.Namespace
	if example.Spec.SecretName != server.SecretName() || !slices.Contains(example.Spec.DNSNames, server.Host(namespace)) {
		t.Errorf("the example is for Secret %s and %v, want %s and %s", example.Spec.SecretName, example.Spec.DNSNames, server.SecretName(), server.Host(namespace))
	}
	issued, err := Issue(server, namespace, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: example.Spec.SecretName, Annotations: example.Spec.SecretTemplate.Annotations},
		Data:       map[string][]byte{corev1.TLSCertKey: issued.Cert, corev1.TLSPrivateKeyKey: issued.Key, "ca.crt": issued.CA},
	}
	read, err := FromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if problem := read.Problem(server, namespace, time.Now()); problem != "" || !read.Provided {
		t.Errorf("the certificate is provided: %t, problem %q", read.Provided, problem)
	}
}

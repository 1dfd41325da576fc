package webhook

import (
	"cmp"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
)

// groupCertManager is the API group of cert-manager and of its issuers.
const groupCertManager = "cert-manager.io"

// CertificateRequestKind returns the kind of the objects with which cert-manager is asked for certificates.
func CertificateRequestKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupCertManager, Version: "v1", Kind: "Certificate"}
}

// CertificateRequest returns the Certificate of cert-manager for the Secret of s. Both have the same name.
func CertificateRequest(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, issuer configoverrides.CertificateIssuer) *unstructured.Unstructured {
	var hosts []any
	for _, host := range s.Hosts(csv.Namespace) {
		hosts = append(hosts, host)
	}
	m := meta(csv, s.SecretName())
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"secretName": s.SecretName(),
		// The annotation of the Secret counts, and not who wrote the Secret.
		"secretTemplate": map[string]any{"annotations": map[string]any{api.AnnotationCertificate: Issued}},
		"dnsNames":       hosts,
		"usages":         []any{"digital signature", "server auth"},
		"privateKey":     map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
		"issuerRef": map[string]any{
			"name": issuer.Name, "kind": cmp.Or(issuer.Kind, "Issuer"), "group": cmp.Or(issuer.Group, groupCertManager),
		},
	}}}
	u.SetGroupVersionKind(CertificateRequestKind())
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetLabels(m.Labels)
	u.SetOwnerReferences(m.OwnerReferences)
	return u
}

// RequestOwner returns the reference to a Certificate with which its Secret is deleted together with it.
func RequestOwner(request *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: request.GetAPIVersion(), Kind: request.GetKind(), Name: request.GetName(), UID: request.GetUID(),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

// NotIssued returns why a Certificate, nil if there is none, has no certificate yet.
func NotIssued(request *unstructured.Unstructured) string {
	if request == nil {
		return "it does not exist yet"
	}
	conditions, _, _ := unstructured.NestedSlice(request.Object, "status", "conditions")
	for _, c := range conditions {
		condition, is := c.(map[string]any)
		if is && condition["type"] == "Ready" && condition["status"] != string(metav1.ConditionTrue) {
			return fmt.Sprintf("cert-manager reports %v: %v", condition["reason"], condition["message"])
		}
	}
	return "cert-manager has not issued it yet"
}

package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
)

// TestCertificateRequest checks the Certificate for a Deployment, with an issuer of each kind.
func TestCertificateRequest(t *testing.T) {
	csv := fixture()
	servers, err := Servers(csv)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		issuer configoverrides.CertificateIssuer
		want   map[string]any
	}{
		"Issuer":        {configoverrides.CertificateIssuer{Name: "ca"}, map[string]any{"name": "ca", "kind": "Issuer", "group": "cert-manager.io"}},
		"ClusterIssuer": {configoverrides.CertificateIssuer{Name: "ca", Kind: "ClusterIssuer"}, map[string]any{"name": "ca", "kind": "ClusterIssuer", "group": "cert-manager.io"}},
		"OtherGroup": {
			configoverrides.CertificateIssuer{Name: "ca", Kind: "AWSPCAIssuer", Group: "awspca.cert-manager.io"},
			map[string]any{"name": "ca", "kind": "AWSPCAIssuer", "group": "awspca.cert-manager.io"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := CertificateRequest(csv, servers[0], tc.issuer)
			want := map[string]any{
				"secretName":     "etcd-operator-service-cert",
				"secretTemplate": map[string]any{"annotations": map[string]any{"chandlery.dev/certificate": "issued"}},
				"dnsNames":       []any{"etcd-operator-service.ns", "etcd-operator-service.ns.svc", "etcd-operator-service.ns.svc.cluster.local"},
				"usages":         []any{"digital signature", "server auth"},
				"privateKey":     map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
				"issuerRef":      tc.want,
			}
			if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
				t.Error(diff)
			}
			if got.GetNamespace() != "ns" || got.GetName() != "etcd-operator-service-cert" || got.GetOwnerReferences()[0].UID != "uid-1" {
				t.Errorf("metadata is %v", got.Object["metadata"])
			}
		})
	}
}

// TestNotIssued reads the status of Certificates.
func TestNotIssued(t *testing.T) {
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "Pending", "message": "the issuer does not exist"}
	}
	with := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	}
	for name, tc := range map[string]struct {
		request *unstructured.Unstructured
		want    string
	}{
		"Missing":   {nil, "it does not exist yet"},
		"NoStatus":  {&unstructured.Unstructured{Object: map[string]any{}}, "cert-manager has not issued it yet"},
		"NotReady":  {with(condition("Issuing", "True"), condition("Ready", "False")), "cert-manager reports Pending: the issuer does not exist"},
		"Unknown":   {with(condition("Ready", "Unknown")), "cert-manager reports Pending: the issuer does not exist"},
		"OtherType": {with(condition("Issuing", "True")), "cert-manager has not issued it yet"},
		"Ready":     {with(condition("Ready", "True")), "cert-manager has not issued it yet"},
		"NoObject":  {with("text"), "cert-manager has not issued it yet"},
	} {
		if got := NotIssued(tc.request); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

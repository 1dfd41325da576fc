package webhook

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture returns an operator with two Deployments. The first serves a webhook of each type, and the second an
// API.
func fixture() *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd.v1", UID: "uid-1"}}
	csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{
		{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace},
	}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{
		deployment("etcd.operator", "etcd-account"), deployment("etcd-api", ""), deployment("idle", ""),
	}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "etcds.example.com", Version: "v1", Kind: "Etcd"}}
	csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{
		admission(operatorsv1alpha1.ValidatingAdmissionWebhook, "vetcd.example.com"),
		admission(operatorsv1alpha1.MutatingAdmissionWebhook, "metcd.example.com"),
		{
			GenerateName: "cetcd.example.com", Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: "etcd.operator", ContainerPort: 443,
			WebhookPath: new("/convert"), AdmissionReviewVersions: []string{"v1"}, ConversionCRDs: []string{"etcds.example.com"},
		},
	}
	csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
		{Name: "backups", Group: "backup.example.com", Version: "v1", Kind: "Backup", DeploymentName: "etcd-api", ContainerPort: 8443},
		{Name: "restores", Group: "backup.example.com", Version: "v1", Kind: "Restore", DeploymentName: "etcd-api", ContainerPort: 8443},
	}
	return csv
}

func deployment(name, account string) operatorsv1alpha1.StrategyDeploymentSpec {
	return operatorsv1alpha1.StrategyDeploymentSpec{Name: name, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "manager"}}},
		},
	}}
}

func admission(kind operatorsv1alpha1.WebhookAdmissionType, name string) operatorsv1alpha1.WebhookDescription {
	return operatorsv1alpha1.WebhookDescription{
		GenerateName: name, Type: kind, DeploymentName: "etcd.operator", ContainerPort: 443,
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"etcds"}},
		}},
	}
}

func allNamespaces() *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group", UID: "group-uid"}}
}

func mustServers(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion) []Server {
	t.Helper()
	servers, err := Servers(csv)
	if err != nil {
		t.Fatal(err)
	}
	return servers
}

func mustIssue(t *testing.T, s Server, at time.Time) *Certificate {
	t.Helper()
	c, err := Issue(s, "ns", at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// certsFor returns certificates for all servers.
func certsFor(t *testing.T, servers []Server) map[string]*Certificate {
	t.Helper()
	certs := map[string]*Certificate{}
	for _, s := range servers {
		certs[s.Deployment] = mustIssue(t, s, now)
	}
	return certs
}

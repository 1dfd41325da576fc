package olmobjects

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationAuthority holds, on a version under construction, the hash of the authority whose
// certificate its pods mount.
const annotationAuthority = "olmcahash"

// webhooks creates the objects of versions with webhooks.
type webhooks struct {
	creator

	// authorities maps the namespace and name of a Deployment to the hash of its authority.
	authorities map[string]string
}

// serve creates what a version with webhooks needs: certificates, Services, permissions and configurations.
func (w webhooks) serve(ctx context.Context, o *Operator, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	for i := range csv.Spec.WebhookDefinitions {
		if err := w.serveOne(ctx, o, csv, &csv.Spec.WebhookDefinitions[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w webhooks) serveOne(ctx context.Context, o *Operator, csv *operatorsv1alpha1.ClusterServiceVersion, d *operatorsv1alpha1.WebhookDescription) error {
	name := d.DeploymentName + "-service"
	ca, cert, key, err := certificate(name, csv.Namespace)
	if err != nil {
		return err
	}
	w.authorities[csv.Namespace+"/"+d.DeploymentName] = caHash(ca)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: csv.Namespace, Name: name, Labels: withComponent(o, owned(csv)), OwnerReferences: reference(csv)}
	}
	var account string
	var selector map[string]string
	for _, spec := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if spec.Name == d.DeploymentName {
			account, selector = spec.Spec.Template.Spec.ServiceAccountName, spec.Spec.Selector.MatchLabels
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: meta(name + "-cert"), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, "olmCAKey": ca},
	}
	secret.Annotations = map[string]string{annotationAuthority: caHash(ca)}
	service := &corev1.Service{
		ObjectMeta: meta(name),
		Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{
			Name: strconv.Itoa(int(d.ContainerPort)), Port: d.ContainerPort, TargetPort: targetOf(d), Protocol: corev1.ProtocolTCP,
		}}},
	}
	delegator := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-system:auth-delegator", Labels: owned(csv)},
		RoleRef:    roleRef("ClusterRole", "system:auth-delegator"), Subjects: subjects(csv, account),
	}
	reader := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name + "-auth-reader", Labels: map[string]string{"olm.managed": "true"}},
		RoleRef:    roleRef("Role", "extension-apiserver-authentication-reader"), Subjects: subjects(csv, account),
	}
	if err := w.create(ctx, byOLM, secret,
		&rbacv1.Role{ObjectMeta: meta(secret.Name), Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret.Name},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: meta(secret.Name), RoleRef: roleRef("Role", secret.Name), Subjects: subjects(csv, account)},
	); err != nil {
		return err
	}
	if err := w.create(ctx, client.FieldOwner("olm.install"), service, delegator, reader); err != nil {
		return err
	}
	return w.create(ctx, byOLM, configuration(csv, d, name, ca))
}

func targetOf(d *operatorsv1alpha1.WebhookDescription) intstr.IntOrString {
	if d.TargetPort != nil {
		return *d.TargetPort
	}
	return intstr.FromInt32(d.ContainerPort)
}

// configuration returns the configuration of a validating webhook for the version's own namespace.
func configuration(csv *operatorsv1alpha1.ClusterServiceVersion, d *operatorsv1alpha1.WebhookDescription, service string, ca []byte) client.Object {
	labels := owned(csv)
	labels["olm.webhook-description-generate-name"] = d.GenerateName
	labels["olm.webhook-description-hash"] = Hash(d)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: d.GenerateName + "-", Labels: labels},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: d.GenerateName, Rules: d.Rules, FailurePolicy: d.FailurePolicy, SideEffects: d.SideEffects,
			AdmissionReviewVersions: d.AdmissionReviewVersions, NamespaceSelector: &metav1.LabelSelector{},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca, Service: &admissionregistrationv1.ServiceReference{
				Namespace: csv.Namespace, Name: service, Path: d.WebhookPath, Port: new(d.ContainerPort),
			}},
		}},
	}
}

// mount mounts the certificate in the pods of a Deployment with webhooks.
func (w webhooks) mount(csv *operatorsv1alpha1.ClusterServiceVersion, name string, spec *appsv1.DeploymentSpec) {
	hash := w.authorities[csv.Namespace+"/"+name]
	if hash == "" {
		return
	}
	secret := name + "-service-cert"
	volume := func(name, cert, key string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secret, Items: []corev1.KeyToPath{{Key: "tls.crt", Path: cert}, {Key: "tls.key", Path: key}},
		}}}
	}
	pod := &spec.Template.Spec
	pod.Volumes = append(pod.Volumes, volume("apiservice-cert", "apiserver.crt", "apiserver.key"), volume("webhook-cert", "tls.crt", "tls.key"))
	for i := range pod.Containers {
		pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts,
			corev1.VolumeMount{Name: "apiservice-cert", MountPath: "/apiserver.local.config/certificates"},
			corev1.VolumeMount{Name: "webhook-cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"})
	}
	spec.Template.Annotations[annotationAuthority] = hash
}

// certificate creates an authority and a certificate as OLM does.
func certificate(service, namespace string) (ca, cert, key []byte, err error) {
	fail := func(err error) ([]byte, []byte, []byte, error) {
		return nil, nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{Organization: []string{"Red Hat, Inc."}, CommonName: "olm-selfsigned-1"},
		NotBefore: now, NotAfter: now.Add(2 * 365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	signed, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return fail(err)
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{Organization: []string{"Red Hat, Inc."}, CommonName: service + "." + namespace},
		DNSNames: []string{service + "." + namespace, service + "." + namespace + ".svc"}, NotBefore: now, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	servingKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	leaf, err := x509.CreateCertificate(rand.Reader, serving, authority, servingKey.Public(), authorityKey)
	if err != nil {
		return fail(err)
	}
	der, err := x509.MarshalECPrivateKey(servingKey)
	if err != nil {
		return fail(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

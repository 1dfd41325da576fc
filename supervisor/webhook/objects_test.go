package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	ours       = map[string]string{"olm.managed": "true", "olm.owner": "etcd.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"}
	ownersHere = []metav1.OwnerReference{{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "etcd.v1", UID: "uid-1",
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
)

func desired(t *testing.T, group *operatorsv1.OperatorGroup) (Objects, map[string]*Certificate) {
	t.Helper()
	csv := fixture()
	servers := mustServers(t, csv)
	certs := certsFor(t, servers)
	o, err := Desired(csv, group, servers, certs)
	if err != nil {
		t.Fatal(err)
	}
	return o, certs
}

// TestDesiredBase compares the objects that are needed before the pods with those of existing clusters.
func TestDesiredBase(t *testing.T) {
	o, certs := desired(t, allNamespaces())
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "etcd-account", Namespace: "ns"}}
	c := certs["etcd.operator"]
	const secret = "etcd-operator-service-cert"
	here := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: ours, OwnerReferences: ownersHere}
	}
	withHash := here(secret)
	withHash.Annotations = map[string]string{"olmcahash": c.CAHash()}
	rbac := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
	}
	for name, tt := range map[string]struct{ want, got any }{
		"Secret": {
			want: &corev1.Secret{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: withHash, Type: "kubernetes.io/tls",
				Data: map[string][]byte{"tls.crt": c.Cert, "tls.key": c.Key, "olmCAKey": c.CA},
			},
			got: o.Secrets[0],
		},
		"Service": {
			want: &corev1.Service{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: here("etcd-operator-service"),
				Spec: corev1.ServiceSpec{
					Selector: map[string]string{"app": "etcd.operator"},
					Ports:    []corev1.ServicePort{{Name: "443", Protocol: "TCP", Port: 443, TargetPort: intstr.FromInt32(443)}},
				},
			},
			got: o.Services[0],
		},
		"Role": {
			want: &rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: here(secret), Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}},
			}},
			got: o.Roles[0],
		},
		"RoleBinding": {
			want: &rbacv1.RoleBinding{
				TypeMeta: rbac("RoleBinding"), ObjectMeta: here(secret), Subjects: account,
				RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: secret},
			},
			got: o.RoleBindings[0],
		},
		"RoleBinding in kube-system": {
			want: &rbacv1.RoleBinding{
				TypeMeta:   rbac("RoleBinding"),
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd-operator-service.ns-auth-reader", Labels: ours},
				Subjects:   account,
				RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "extension-apiserver-authentication-reader"},
			},
			got: o.RoleBindings[1],
		},
		"ClusterRoleBinding": {
			want: &rbacv1.ClusterRoleBinding{
				TypeMeta:   rbac("ClusterRoleBinding"),
				ObjectMeta: metav1.ObjectMeta{Name: "etcd-operator-service.ns-system:auth-delegator", Labels: ours},
				Subjects:   account,
				RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:auth-delegator"},
			},
			got: o.ClusterRoleBindings[0],
		},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(o.Services) != 2 || len(o.Secrets) != 2 || len(o.RoleBindings) != 4 {
		t.Errorf("%d Services, %d Secrets, %d RoleBindings for two Deployments", len(o.Services), len(o.Secrets), len(o.RoleBindings))
	}
}

// TestDesiredIncomplete checks which objects are wanted without certificates.
func TestDesiredIncomplete(t *testing.T) {
	csv := fixture()
	servers := mustServers(t, csv)
	o, err := Desired(csv, allNamespaces(), servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Services) != 2 || len(o.Secrets)+len(o.Validating)+len(o.Mutating)+len(o.APIServices) != 0 {
		t.Error("something is wanted that needs a certificate, or Services are not")
	}
	provided := mustIssue(t, servers[0], now)
	provided.Provided = true
	if o, err = Desired(csv, allNamespaces(), servers, map[string]*Certificate{"etcd.operator": provided}); err != nil {
		t.Fatal(err)
	}
	if len(o.Secrets) != 0 || len(o.Validating) != 1 {
		t.Error("the Secret of a provided certificate is to be written, or nothing calls")
	}
	group := allNamespaces()
	group.UID, group.Spec.TargetNamespaces = "", []string{"ns"}
	if _, err = Desired(csv, group, servers, nil); err == nil {
		t.Error("a group without a UID selects something")
	}
}

// TestServiceDuringRollout checks the Service between a live and a wanted one.
func TestServiceDuringRollout(t *testing.T) {
	service := func(app string, ports ...corev1.ServicePort) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: ports}}
		if app != "" {
			s.Spec.Selector = map[string]string{"app": app}
		}
		return s
	}
	port := func(number int32, target int) corev1.ServicePort {
		return corev1.ServicePort{Name: "p", Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(int32(target))}
	}
	nodePort := port(443, 9443)
	nodePort.NodePort = 30000
	for name, tt := range map[string]struct{ live, want, bridge *corev1.Service }{
		"none yet":       {want: service("new", port(443, 443)), bridge: service("new", port(443, 443))},
		"the same":       {live: service("app", port(443, 443)), want: service("app", port(443, 443)), bridge: service("app", port(443, 443))},
		"other pods":     {live: service("old", port(443, 443)), want: service("new", port(443, 443)), bridge: service("old", port(443, 443))},
		"no pods":        {live: service("", port(443, 443)), want: service("new", port(443, 443)), bridge: service("new", port(443, 443))},
		"another target": {live: service("app", nodePort), want: service("app", port(443, 8443)), bridge: service("app", port(443, 9443))},
		"another port":   {live: service("app", port(443, 443)), want: service("app", port(8443, 8443)), bridge: service("app", port(8443, 8443), port(443, 443))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.bridge, ServiceDuringRollout(tt.live, tt.want)); diff != "" {
				t.Errorf("bridge (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSuperseded recognizes bindings that were created for a Deployment under a former name.
func TestSuperseded(t *testing.T) {
	s := mustServers(t, fixture())[0]
	if want := (OLMBindings{ClusterRoleBinding: "etcd-operator-service-system:auth-delegator", RoleBinding: "etcd-operator-service-auth-reader"}); s.OLMBindings() != want {
		t.Errorf("former names are %v, want %v", s.OLMBindings(), want)
	}
	managed := map[string]string{"olm.managed": "true"}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "etcd-account", Namespace: "ns"}
	elsewhere, user := account, account
	elsewhere.Namespace, user.Kind = "other", "User"
	for name, tt := range map[string]struct {
		labels   map[string]string
		role     string
		subjects []rbacv1.Subject
		want     bool
	}{
		"delegator":       {labels: managed, role: "system:auth-delegator", subjects: []rbacv1.Subject{account}, want: true},
		"reader":          {labels: ours, role: "extension-apiserver-authentication-reader", subjects: []rbacv1.Subject{account}, want: true},
		"a person's":      {role: "system:auth-delegator", subjects: []rbacv1.Subject{account}},
		"another role":    {labels: managed, role: "cluster-admin", subjects: []rbacv1.Subject{account}},
		"of others too":   {labels: managed, role: "system:auth-delegator", subjects: []rbacv1.Subject{account, elsewhere}},
		"another account": {labels: managed, role: "system:auth-delegator", subjects: []rbacv1.Subject{elsewhere}},
		"a user":          {labels: managed, role: "system:auth-delegator", subjects: []rbacv1.Subject{user}},
	} {
		if got := s.IsSuperseded("ns", tt.labels, rbacv1.RoleRef{Name: tt.role}, tt.subjects); got != tt.want {
			t.Errorf("%s: superseded is %t, want %t", name, got, tt.want)
		}
	}
}

// TestOldestNames checks the names that contain an API instead of the Deployment.
func TestOldestNames(t *testing.T) {
	s := Server{Deployment: "hat", APIs: []operatorsv1alpha1.APIServiceDescription{{Group: "hats.example", Version: "v1"}}}
	want := []OldestNames{{
		Service: "v1-hats-example", Secret: "v1.hats.example-cert",
		Bindings: OLMBindings{ClusterRoleBinding: "v1.hats.example-system:auth-delegator", RoleBinding: "v1.hats.example-auth-reader"},
	}}
	if diff := cmp.Diff(want, s.OldestNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestMount checks that certificates replace existing files where libraries expect them, in the order of OLM.
func TestMount(t *testing.T) {
	csv := fixture()
	s := mustServers(t, csv)[0]
	c := mustIssue(t, s, now)
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers: []corev1.Container{
			{Name: "manager", VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: "/data"},
				{Name: "cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"},
				{Name: "webhook-cert", MountPath: "/elsewhere"},
			}},
			{Name: "proxy"},
		},
		Volumes: []corev1.Volume{{Name: "data"}, {Name: "webhook-cert"}},
	}}
	Mount(template, s, c)
	Mount(template, s, c)
	mounts := []corev1.VolumeMount{
		{Name: "apiservice-cert", MountPath: "/apiserver.local.config/certificates"},
		{Name: "webhook-cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"},
	}
	volume := func(name, crt, key string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "etcd-operator-service-cert",
			Items:      []corev1.KeyToPath{{Key: "tls.crt", Path: crt}, {Key: "tls.key", Path: key}},
		}}}
	}
	want := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"olmcahash": c.CAHash()}},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			InitContainers:     []corev1.Container{{Name: "init"}},
			Containers: []corev1.Container{
				{Name: "manager", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, mounts[1], {Name: "webhook-cert", MountPath: "/elsewhere"}, mounts[0]}},
				{Name: "proxy", VolumeMounts: mounts},
			},
			Volumes: []corev1.Volume{{Name: "data"}, volume("webhook-cert", "tls.crt", "tls.key"), volume("apiservice-cert", "apiserver.crt", "apiserver.key")},
		},
	}
	if diff := cmp.Diff(want, template); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

package clusterserviceversion

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// TestRefusedAttempts compares the present attempt with the one that was refused.
func TestRefusedAttempts(t *testing.T) {
	derive := func(config operatorsv1alpha1.SubscriptionConfig) string {
		all, err := desiredDeployments(kettle(), settings{config: config}, func(*appsv1.Deployment) {}, podAnnotations)
		if err != nil {
			t.Fatal(err)
		}
		return hashes(all)
	}
	refused := attempt{deployments: derive(operatorsv1alpha1.SubscriptionConfig{VolumeMounts: []corev1.VolumeMount{{Name: "vol", MountPath: "/vol"}}})}
	plain := attempt{deployments: derive(operatorsv1alpha1.SubscriptionConfig{})}
	if refused == plain {
		t.Fatal("another configuration makes the same Deployments")
	}
	key, other := types.NamespacedName{Name: "kettle.v1"}, types.NamespacedName{Name: "pot.v1"}
	var r refusedAttempts
	if got := r.last(other, plain); got.attempt != plain {
		t.Errorf("a version that failed before the process began was refused %+v, want the present attempt", got)
	}
	r.record(key, refused, noon())
	if got := r.last(key, plain); got.attempt != refused || !got.changed.IsZero() {
		t.Errorf("after a refusal: %+v", got)
	}
	granted := refused
	granted.access = "others"
	r.record(key, granted, noon())
	if got := r.last(key, plain); got.attempt != granted || !got.changed.Equal(noon()) {
		t.Errorf("after a refusal with other rights: %+v", got)
	}
	r.record(key, granted, noon().Add(time.Minute))
	if got := r.last(key, plain); !got.changed.Equal(noon()) {
		t.Errorf("a refusal with the same rights moves the time of their change: %+v", got)
	}
	r.forget(key)
	if got := r.last(key, plain); got.attempt != plain {
		t.Error("the refusal is remembered after it is over")
	}
}

// TestWebhooksAreAllowedNow tries again at once when an OperatorGroup no longer refuses the
// webhooks of a version. The refusal is known although no pass observed the failed version before.
func TestWebhooksAreAllowedNow(t *testing.T) {
	s := &state{Input: good(operatorsv1alpha1.CSVPhasePending, "")}
	s.Webhooks.Refused = "not allowed"
	obs := &observer{refusedAttempts: &refusedAttempts{}}
	if _, _, err := obs.compareRefusal(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		refused   string
		corrected bool
	}{{"not allowed", false}, {"", true}} {
		s = &state{Input: good(operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed)}
		s.Webhooks.Refused = tt.refused
		corrected, _, err := obs.compareRefusal(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if corrected != tt.corrected {
			t.Errorf("refused by %q: corrected %t, want %t", tt.refused, corrected, tt.corrected)
		}
	}
}

// TestAccessOf compares what identifies an account and its permissions.
func TestAccessOf(t *testing.T) {
	binding := func(account string) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "cook"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "cook"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kitchen", Name: account}},
		}
	}
	role := func(verb string) rbacv1.Role {
		return rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "cook"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{verb}}},
		}
	}
	of := func(name string, uid types.UID, r rbac) string {
		access, err := accessOf("kitchen", name, uid, r)
		if err != nil {
			t.Fatal(err)
		}
		return access
	}
	base := rbac{Roles: []rbacv1.Role{role("get")}, RoleBindings: []rbacv1.RoleBinding{binding("cook")}}
	clusterRole := func(name string) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{name}, Resources: []string{"*"}, Verbs: []string{"get"}}}}
	}
	everybody := func(name string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
		}
	}
	labelled := role("get")
	labelled.Labels, labelled.ResourceVersion = map[string]string{"a": "b"}, "7"
	for name, tt := range map[string]struct {
		equal, want bool
	}{
		"the same":           {of("cook", "1", rbac{Roles: base.Roles, RoleBindings: base.RoleBindings}) == of("cook", "1", base), true},
		"R2 another account": {of("chef", "1", base) == of("cook", "1", base), false},
		"R4 made again":      {of("cook", "2", base) == of("cook", "1", base), false},
		"R3 another rule":    {of("cook", "1", rbac{Roles: []rbacv1.Role{role("create")}, RoleBindings: base.RoleBindings}) == of("cook", "1", base), false},
		"R3 no binding":      {of("cook", "1", rbac{Roles: base.Roles}) == of("cook", "1", base), false},
		"the same in another order": {of("cook", "1", rbac{
			Roles: base.Roles, RoleBindings: base.RoleBindings,
			ClusterRoles: []rbacv1.ClusterRole{clusterRole("b"), clusterRole("a")}, ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everybody("b"), everybody("a")},
		}) == of("cook", "1", rbac{
			Roles: base.Roles, RoleBindings: base.RoleBindings,
			ClusterRoles: []rbacv1.ClusterRole{clusterRole("a"), clusterRole("b")}, ClusterRoleBindings: []rbacv1.ClusterRoleBinding{everybody("a"), everybody("b")},
		}), true},
		"R8 a label of the role":         {of("cook", "1", rbac{Roles: []rbacv1.Role{labelled}, RoleBindings: base.RoleBindings}) == of("cook", "1", base), true},
		"R8 a binding of someone else's": {of("cook", "1", rbac{Roles: base.Roles, RoleBindings: append([]rbacv1.RoleBinding{binding("chef")}, base.RoleBindings...)}) == of("cook", "1", base), true},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.equal != tt.want {
				t.Errorf("the same: %t, want %t", tt.equal, tt.want)
			}
		})
	}
}

// TestNamesTheSubscriptionBehindARefusal checks the error about Deployments that the API refuses,
// by the settings of a Subscription.
func TestNamesTheSubscriptionBehindARefusal(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "kettle", nil)
	set := func(s *operatorsv1alpha1.Subscription) {
		s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{VolumeMounts: []corev1.VolumeMount{{Name: "vol"}}}
	}
	empty := func(s *operatorsv1alpha1.Subscription) { s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{} }
	annotated := func(s *operatorsv1alpha1.Subscription) {
		s.Annotations = map[string]string{api.AnnotationConfig: `{"priorityClassName":"no one"}`}
	}
	for name, tc := range map[string]struct {
		change []func(*operatorsv1alpha1.Subscription)
		err    error
		want   string // empty: the Subscription is not named
	}{
		"Config":     {[]func(*operatorsv1alpha1.Subscription){set}, invalid, "with spec.config of Subscription kitchen/my-kettle; "},
		"Annotation": {[]func(*operatorsv1alpha1.Subscription){empty, annotated}, invalid, "with annotation chandlery.dev/config of Subscription kitchen/my-kettle; "},
		"Both":       {[]func(*operatorsv1alpha1.Subscription){set, annotated}, invalid, "with spec.config and annotation chandlery.dev/config of Subscription kitchen/my-kettle; "},
		"Neither":    {[]func(*operatorsv1alpha1.Subscription){empty}, invalid, ""},
		"NotOfIt":    {[]func(*operatorsv1alpha1.Subscription){set}, errors.New("away"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := settingsOf(new(subscription("my-kettle", append(tc.change, installed("kettle.v1"))...)))
			if err != nil {
				t.Fatal(err)
			}
			s := &state{Input: good(ready, "AllRequirementsMet"), settings: config}
			if s.deployments, err = desiredDeployments(s.CSV, config, func(*appsv1.Deployment) {}, podAnnotations); err != nil {
				t.Fatal(err)
			}
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return tc.err
				},
			})
			err = deploymentWriter{client: c, deployer: c, live: c}.put(t.Context(), s)
			message := phase.AfterRefusal(s.Input, err).Message
			if !errors.Is(err, tc.err) || !strings.HasPrefix(message, "install strategy failed: "+tc.want) || (tc.want == "" && strings.Contains(message, "my-kettle")) {
				t.Errorf("message is %q, want %q in it", message, tc.want)
			}
		})
	}
}

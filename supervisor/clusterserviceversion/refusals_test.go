package clusterserviceversion

import (
	"context"
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/extras"
)

// TestRefusals tells what is worth another try at once from what is not.
func TestRefusals(t *testing.T) {
	derive := func(config operatorsv1alpha1.SubscriptionConfig) []*appsv1.Deployment {
		all, err := desiredDeployments(kettle(), settings{config: config}, func(*appsv1.Deployment) {})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	refused := derive(operatorsv1alpha1.SubscriptionConfig{VolumeMounts: []corev1.VolumeMount{{Name: "vol", MountPath: "/vol"}}})
	key, other := types.NamespacedName{Name: "kettle.v1"}, types.NamespacedName{Name: "pot.v1"}
	var r refusals
	if r.corrected(key, refused) {
		t.Error("nothing was refused yet")
	}
	r.note(key, refused)
	plain := derive(operatorsv1alpha1.SubscriptionConfig{})
	if r.corrected(key, refused) || !r.corrected(key, plain) || r.corrected(other, plain) {
		t.Errorf("corrected: the same %t, another %t, of another version %t", r.corrected(key, refused), r.corrected(key, plain), r.corrected(other, plain))
	}
	r.forget(key)
	if r.corrected(key, plain) {
		t.Error("the refusal is remembered after it is over")
	}
}

// TestNamesTheSubscriptionBehindARefusal gives what is told of Deployments that the API finds
// fault with, by what a Subscription says of them.
func TestNamesTheSubscriptionBehindARefusal(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "kettle", nil)
	set := func(s *operatorsv1alpha1.Subscription) {
		s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{VolumeMounts: []corev1.VolumeMount{{Name: "vol"}}}
	}
	empty := func(s *operatorsv1alpha1.Subscription) { s.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{} }
	annotated := func(s *operatorsv1alpha1.Subscription) {
		s.Annotations = map[string]string{extras.Annotation: `{"priorityClassName":"no one"}`}
	}
	for name, tc := range map[string]struct {
		change []func(*operatorsv1alpha1.Subscription)
		err    error
		want   string // empty: the Subscription is not named
	}{
		"Config":     {[]func(*operatorsv1alpha1.Subscription){set}, invalid, "with spec.config of Subscription kitchen/my-kettle, "},
		"Annotation": {[]func(*operatorsv1alpha1.Subscription){empty, annotated}, invalid, "with annotation chandlery.dev/config of Subscription kitchen/my-kettle, "},
		"Both":       {[]func(*operatorsv1alpha1.Subscription){set, annotated}, invalid, "with spec.config and annotation chandlery.dev/config of Subscription kitchen/my-kettle, "},
		"Neither":    {[]func(*operatorsv1alpha1.Subscription){empty}, invalid, ""},
		"NotOfIt":    {[]func(*operatorsv1alpha1.Subscription){set}, errors.New("away"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := settingsFor(kettle(), []operatorsv1alpha1.Subscription{subscription("my-kettle", append(tc.change, installed("kettle.v1"))...)})
			if err != nil {
				t.Fatal(err)
			}
			s := &scope{Observation: good(ready, "AllRequirementsMet"), settings: config}
			if s.deployments, err = desiredDeployments(s.CSV, config, func(*appsv1.Deployment) {}); err != nil {
				t.Fatal(err)
			}
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return tc.err
				},
			})
			err = (&reconciler{client: c, live: c}).putDeployments(t.Context(), s)
			message := afterRefusal(s.Observation, err).Message
			if !errors.Is(err, tc.err) || !strings.HasPrefix(message, "install strategy failed: "+tc.want) || (tc.want == "" && strings.Contains(message, "my-kettle")) {
				t.Errorf("message is %q, want %q in it", message, tc.want)
			}
		})
	}
}

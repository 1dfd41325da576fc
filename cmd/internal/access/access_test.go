package access_test

import (
	"context"
	"errors"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/cmd/internal/access"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// refusing returns a client whose requests end with an error. Reviews end with failure, or else with allowed.
func refusing(t *testing.T, err, failure error, allowed bool) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
		List:   func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return err },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		},
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, err
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review, is := o.(*authorizationv1.SelfSubjectAccessReview)
			if !is {
				return err
			}
			review.Status.Allowed = allowed
			return failure
		},
	})
}

// TestVerbs covers the rule of each kind of request.
func TestVerbs(t *testing.T) {
	t.Parallel()
	plans := schema.GroupResource{Group: operatorsv1alpha1.GroupName, Resource: "installplans"}
	c := access.Client(refusing(t, apierrors.NewForbidden(plans, "a", errors.New("no rule")), nil, false))
	o := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	list, in := &operatorsv1alpha1.InstallPlanList{}, client.InNamespace("shop")
	for verb, request := range map[string]func(context.Context) error{
		"get":    func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(o), o) },
		"list":   func(ctx context.Context) error { return c.List(ctx, list, in) },
		"watch":  func(ctx context.Context) error { _, err := c.Watch(ctx, list, in); return err },
		"create": func(ctx context.Context) error { return c.Create(ctx, o) },
		"update": func(ctx context.Context) error { return c.Update(ctx, o) },
		"patch":  func(ctx context.Context) error { return c.Patch(ctx, o, client.MergeFrom(o)) },
		"delete": func(ctx context.Context) error { return c.Delete(ctx, o) },
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			err := request(t.Context())
			missing, is := errors.AsType[*access.MissingError](err)
			if !is {
				t.Fatalf("error %v", err)
			}
			want := access.Rule{Group: operatorsv1alpha1.GroupName, Resource: "installplans", Verb: verb, Namespace: "shop", Name: "a"}
			if missing.Rule != want || console.CodeOf(err) != console.Forbidden {
				t.Errorf("rule %+v, want %+v; exit code %d", missing.Rule, want, console.CodeOf(err))
			}
		})
	}
}

// TestExplain covers which errors name a rule.
func TestExplain(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := apierrors.NewForbidden(pods, "a", errors.New("no rule"))
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no"}}
	for name, tt := range map[string]struct {
		err, failure error
		allowed      bool
		want         string
	}{
		"Forbidden": {err: forbidden, want: `pods "a" is forbidden: no rule; the missing rule: {apiGroups: [""], resources: [pods], verbs: [get]}`},
		"Admission": {err: forbidden, allowed: true, want: `pods "a" is forbidden: no rule`},
		"NoReview":  {err: forbidden, failure: errors.New("no answer"), want: `pods "a" is forbidden: no rule`},
		"NoDetails": {err: bare, want: "no"},
		"NotFound":  {err: apierrors.NewNotFound(pods, "a"), want: `pods "a" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := access.Client(refusing(t, tt.err, tt.failure, tt.allowed)).Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "a"}, &corev1.Pod{})
			if err == nil || err.Error() != tt.want || console.CodeOf(err) != console.CodeOf(tt.err) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

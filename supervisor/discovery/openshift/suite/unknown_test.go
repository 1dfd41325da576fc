package suite_test

import (
	"context"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// grant grants a user permissions until the test ends.
func (w *world) grant(name, user string, rules ...rbacv1.PolicyRule) {
	w.T.Helper()
	w.Create(fixtures.ClusterRole(w.Namespace+"-"+name, fixtures.User(user), rules...)...)
}

// user is the name of the supervisor's user.
const user = "keeper"

// keeper grants the user all permissions of a supervisor except the one to read Proxies, which are installed.
func (w *world) keeper() *rest.Config {
	w.T.Helper()
	all := []string{"*"}
	w.grant("most", user, rbacv1.PolicyRule{
		APIGroups: []string{
			"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io",
			"batch", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "networking.k8s.io", "operators.coreos.com", "policy",
			"rbac.authorization.k8s.io", "scheduling.k8s.io",
		},
		Resources: all, Verbs: all,
	})
	cfg := rest.CopyConfig(w.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	w.eventually("the user has its rights, and the API is there", func(ctx context.Context) bool {
		asUser, err := client.New(cfg, client.Options{Scheme: w.Scheme()})
		if err != nil || asUser.List(ctx, &operatorsv1.OperatorGroupList{}) != nil {
			return false
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(proxyList())
		return w.List(ctx, list) == nil && apierrors.IsForbidden(asUser.List(ctx, list))
	})
	return cfg
}

// lacks waits until a version names the rule that the supervisor lacks.
func (w *world) lacks(csv client.Object) {
	w.T.Helper()
	const (
		says   = "the proxy settings in OpenShift's Proxy cluster are unknown"
		remedy = "allow the supervisor to get and list proxies of config.openshift.io, or run the supervisor with --openshift=disabled"
	)
	read := func(ctx context.Context) (*operatorsv1alpha1.ClusterServiceVersion, string) {
		found := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := w.Get(ctx, client.ObjectKeyFromObject(csv), found); err != nil {
			return found, err.Error()
		}
		cause, _ := api.CauseOf(found)
		return found, cause.Detail
	}
	w.eventually("the version says what is missing", func(ctx context.Context) bool {
		found, detail := read(ctx)
		return found.Status.Phase == operatorsv1alpha1.CSVPhasePending && strings.Contains(detail, says) && strings.Contains(detail, remedy)
	})
	w.eventually("an Event says so, too", func(ctx context.Context) bool {
		list := &eventsv1.EventList{}
		if err := w.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			return false
		}
		for i := range list.Items {
			e := &list.Items[i]
			if e.Reason == "ProxiesUnknown" && e.Regarding.Name == csv.GetName() && e.Type == "Warning" && strings.Contains(e.Note, remedy) {
				return true
			}
		}
		return false
	})
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		w.T.Errorf("the Deployment was made without its proxies being known: %v", err)
	}

	// Without them, it is not known which images only nodes may pull.
	w.samples("chandlery_image_policy_valid 0")
	w.grant("proxies", user, rbacv1.PolicyRule{APIGroups: []string{"config.openshift.io"}, Resources: []string{"proxies"}, Verbs: []string{"get", "list"}})
	w.becomes("the operator runs, without proxies", discovery.Installed)
	w.eventually("the version speaks of something else", func(ctx context.Context) bool {
		found, detail := read(ctx)
		return found.Status.Phase != operatorsv1alpha1.CSVPhasePending && !strings.Contains(detail, says)
	})
}

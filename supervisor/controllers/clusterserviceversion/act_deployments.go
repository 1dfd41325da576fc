package clusterserviceversion

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// deploymentWriter writes the Deployments of versions.
type deploymentWriter struct {
	client   client.Client // cached reads, and deletions
	live     client.Reader // reads past the cache
	deployer client.Client // writes Deployments
	accounts *impersonate.Accounts
	events   events.EventRecorder
}

// put applies the desired Deployments of a version. Where the OperatorGroup names an account, it
// uses the permissions of that account: a user with few permissions in a namespace must not get more by a
// version that the user writes.
func (w deploymentWriter) put(ctx context.Context, s *state) error {
	writer := w.deployer
	var account *types.NamespacedName
	if name := s.Groups[0].Spec.ServiceAccountName; name != "" {
		var err error
		account = &types.NamespacedName{Namespace: s.CSV.Namespace, Name: name}
		if writer, err = w.accounts.As(*account); err != nil {
			return err //nolint:wrapcheck // it names the account
		}
	}
	for i, d := range s.deployments {
		heard := &warnings.Collector{}
		result, err := w.putOne(heard.In(ctx), writer, d)
		err = withSource(s.settings, err)
		switch {
		case err != nil && account != nil:
			return &phase.AccountError{Account: account.Name, Group: s.Groups[0].Name, Err: err}
		case err != nil:
			return err
		case result != apply.Unchanged:
			emitWarnings(w.events, s.CSV, i, d.Name, append(heard.Texts(), omittedWarnings(s.CSV, d)...))
		}
	}
	return nil
}

// putOne applies a Deployment. It removes fields that an earlier lifecycle manager set and that are
// no longer desired: a container that was dropped would continue to run, and the API server refuses
// a variable that has a value and a source.
func (w deploymentWriter) putOne(ctx context.Context, writer client.Client, d *appsv1.Deployment) (apply.Result, error) {
	want, err := convert(d)
	if err != nil {
		return "", err
	}
	// A Deployment that the cache lacks is most likely absent: creating it needs no read.
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(d), &appsv1.Deployment{}); apierrors.IsNotFound(err) {
		if _, absent, err := apply.CreateIfAbsent(ctx, writer, want); absent || err != nil {
			return apply.Created, err
		}
	}
	live, err := apply.Live(ctx, w.live, want)
	if err != nil {
		return "", err
	}
	if live == nil {
		return "", apply.ErrStale
	}
	clearRollingUpdate(want, live)
	return apply.Adopt(ctx, writer, want, live)
}

// clearRollingUpdate removes the parameters of a rolling update from the live state of a Deployment
// that gets the strategy Recreate. The API server refuses both together, whichever manager set them.
func clearRollingUpdate(want, live *unstructured.Unstructured) {
	strategy, _, _ := unstructured.NestedString(want.Object, "spec", "strategy", "type")
	if strategy == string(appsv1.RecreateDeploymentStrategyType) {
		unstructured.RemoveNestedField(live.Object, "spec", "strategy", "rollingUpdate")
	}
}

// remove deletes the Deployments that a version created, except some. A Deployment that
// another version has taken over has the labels of that version.
func (w deploymentWriter) remove(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, keep []*appsv1.Deployment) error {
	var list appsv1.DeploymentList
	if err := w.client.List(ctx, &list, client.InNamespace(csv.Namespace), ownership.Labels(csv)); err != nil {
		return fmt.Errorf("listing Deployments of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	for i := range list.Items {
		if slices.ContainsFunc(keep, func(d *appsv1.Deployment) bool { return d.Name == list.Items[i].Name }) {
			continue
		}
		list.Items[i].SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		if err := apply.Delete(ctx, w.client, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// convert returns an object in the form that apply sends: without status, and without the times
// that an API type encodes as null.
func convert(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

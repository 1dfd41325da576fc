package clusterserviceversion

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
)

// putDeployments brings the Deployments of a version to what is wanted of them. Where the
// OperatorGroup names an account, that is done with its rights: who may do little in a
// namespace gets no more by a version that he writes himself.
func (r *reconciler) putDeployments(ctx context.Context, s *scope) error {
	writer := r.deployer
	var account *types.NamespacedName
	if name := s.Groups[0].Spec.ServiceAccountName; name != "" {
		var err error
		account = &types.NamespacedName{Namespace: s.CSV.Namespace, Name: name}
		if writer, err = r.accounts.As(*account); err != nil {
			return err //nolint:wrapcheck // it names the account
		}
	}
	for i, d := range s.deployments {
		heard := &warnings.Collector{}
		result, err := r.putDeployment(heard.In(ctx), writer, d)
		err = withSource(s.settings, err)
		switch {
		case err != nil && account != nil:
			return &accountError{account: account.Name, group: s.Groups[0].Name, err: err}
		case err != nil:
			return err
		case result != apply.Unchanged:
			announceWarnings(r.events, s.CSV, i, d.Name, heard.Texts())
		}
	}
	return nil
}

// accountError is what the API server refused to the ServiceAccount of an OperatorGroup.
type accountError struct {
	// account and group are the names of both.
	account, group string
	err            error
}

// Error names the account, then why.
func (e *accountError) Error() string { return asAccount(e.account, e.group) + ": " + e.err.Error() }

// Unwrap returns why.
func (e *accountError) Unwrap() error { return e.err }

// asAccount states whose rights a request has.
func asAccount(account, group string) string {
	return fmt.Sprintf("with the rights of ServiceAccount %s, which OperatorGroup %s names", account, group)
}

// putDeployment brings a Deployment to what is wanted of it. What a lifecycle manager
// before this one set on it and is no longer wanted goes: a container that was dropped
// would run on, and a variable that has a value and a source is refused.
func (r *reconciler) putDeployment(ctx context.Context, writer client.Client, d *appsv1.Deployment) (apply.Result, error) {
	want, err := convert(d)
	if err != nil {
		return "", err
	}
	// One that the cache lacks is most likely absent: creating it needs no read.
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(d), &appsv1.Deployment{}); apierrors.IsNotFound(err) {
		if _, absent, err := apply.IfAbsent(ctx, writer, want); absent || err != nil {
			return apply.Created, err
		}
	}
	live, err := apply.Live(ctx, r.live, want)
	if err != nil {
		return "", err
	}
	if live == nil {
		return "", apply.ErrStale
	}
	clearRollingUpdate(want, live)
	return apply.TakeOver(ctx, writer, want, live)
}

// clearRollingUpdate takes the parameters of a rolling update out of what is read of a
// Deployment that is to have the strategy Recreate: the API server refuses both
// together, whichever manager set them.
func clearRollingUpdate(want, live *unstructured.Unstructured) {
	strategy, _, _ := unstructured.NestedString(want.Object, "spec", "strategy", "type")
	if strategy == string(appsv1.RecreateDeploymentStrategyType) {
		unstructured.RemoveNestedField(live.Object, "spec", "strategy", "rollingUpdate")
	}
}

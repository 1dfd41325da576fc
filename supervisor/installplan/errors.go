package installplan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// stepError is a step that could not be applied.
type stepError struct {
	step *operatorsv1alpha1.Step
	err  error
}

// Error names the step the way the plan shows it.
func (e *stepError) Error() string {
	r := e.step.Resource
	if apimeta.IsNoMatchError(e.err) {
		return fmt.Sprintf("%s: GroupVersionKind %s/%s, Kind=%s not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.", e.subject(), r.Group, r.Version, r.Kind)
	}
	return fmt.Sprintf("%s: %v", e.subject(), e.err)
}

// subject is what the message begins with: which step failed, but not why.
func (e *stepError) subject() string {
	r := e.step.Resource
	if apimeta.IsNoMatchError(e.err) {
		return fmt.Sprintf("api-server resource not found installing %s %s", r.Kind, r.Name)
	}
	return fmt.Sprintf("error applying %s %s of %s", r.Kind, r.Name, e.step.Resolving)
}

// follows says whether the message that the pass before left in the plan is
// about a failure of the same step.
func (e *stepError) follows(message string) bool {
	return strings.HasPrefix(message, retrying+e.subject()+":")
}

// Unwrap gives the cause.
func (e *stepError) Unwrap() error { return e.err }

// errUnsupported says that a bundle brings an object of a kind that a plan may
// not hold.
var errUnsupported = errors.New("a bundle may not bring objects of this kind")

// errNamesRefused says that the API server does not serve a
// CustomResourceDefinition because another one has its names.
var errNamesRefused = errors.New("its names are not accepted")

// errOwnerGone says that the version which a plan installs is no longer there.
var errOwnerGone = errors.New("the ClusterServiceVersion that is to own it is gone")

// Texts of a plan's messages.
const (
	// retrying comes before an error that is tried again.
	retrying = "retrying execution due to error: "
	// toApprove tells how a plan goes on that waits for its approval.
	toApprove = "the InstallPlan needs approval: approve it by setting spec.approved to true"
	// remedy tells how to go on after a failure that ended the plan.
	remedy = "; mend the cause and delete the InstallPlan to try again"
)

// terminal says whether an error ends the plan. What the user or the bundle's
// author has to mend does, though only once the cluster had retryTimeout to get
// ready (an API may be registered a moment later; elapsed is how long the step
// has been failing); what passes by itself, such
// as a timeout or missing rights that an admin may grant, never does.
func terminal(err error, elapsed, retryTimeout time.Duration) bool {
	if errors.Is(err, errUnsupported) || errors.Is(err, plan.ErrContentChanged) || errors.Is(err, plan.ErrNoInlineManifests) {
		return true
	}
	lasting := errors.Is(err, errNamesRefused) || apimeta.IsNoMatchError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
	return lasting && elapsed >= retryTimeout
}

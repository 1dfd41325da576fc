package subscription

import (
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// decision is the decision for one Subscription.
type decision struct {
	selection

	subscription *operatorsv1alpha1.Subscription
	present      installation
	// inProgress is the plan that is in progress for it; nil for none.
	inProgress *operatorsv1alpha1.InstallPlan
	// withdraw is the newest version, when it has to be deleted without a successor.
	withdraw *operatorsv1alpha1.ClusterServiceVersion
	// fallback is the older version to install after the deletion of withdraw. It is nil when an
	// existing version becomes current again.
	fallback *resolution.Choice
	// next is the version that could be installed if nothing were in progress.
	next *resolution.Choice
	// adopts reports that the Subscription adopts a version that its status did not name before.
	adopts bool
	// held is why no newer version can be installed.
	held error
	// err is why there is no decision for the Subscription.
	err error
}

// selection holds the versions to install for a Subscription.
type selection struct {
	// install is the version of its package; nil for none.
	install *resolution.Choice
	// coInstalled are the versions of other packages that it needs and that no Subscription asks for.
	// Without install, they are the lost dependencies of the installed version.
	coInstalled []*resolution.Choice
	// dependsOn names the Subscriptions whose versions it needs.
	dependsOn []string
	// identities are the identities of install and of coInstalled, in that order.
	identities []plansteps.Identity
}

// choices returns all versions that are to be installed.
func (s *selection) choices() []*resolution.Choice {
	if s.install == nil {
		return s.coInstalled
	}
	return append([]*resolution.Choice{s.install}, s.coInstalled...)
}

// failed returns a decision with an error instead of versions to install.
func (d *decision) failed(err error) *decision {
	next := *d
	next.selection, next.err = selection{}, err
	return &next
}

// withErr returns a decision with an error beside the versions to install: their plan was begun.
func (d *decision) withErr(err error) *decision {
	next := *d
	next.err = err
	return &next
}

// withSubscription returns a decision for a newer version of its Subscription.
func (d *decision) withSubscription(sub *operatorsv1alpha1.Subscription) *decision {
	next := *d
	next.subscription = sub
	return &next
}

// String returns a one-line summary, for logs.
func (d *decision) String() string {
	var planning *planError
	switch {
	case d.withdraw != nil:
		return "withdraw " + d.withdraw.Name
	case d.install != nil:
		return "install " + d.install.Bundle
	case errors.As(d.err, &planning):
		return "planning failed"
	case len(d.coInstalled) > 0:
		return "install the lost dependencies of " + d.present.current.Name
	case d.err != nil:
		return "resolution failed"
	case d.inProgress != nil && d.present.settled():
		return "waiting for InstallPlan " + d.inProgress.Name
	case d.present.settled():
		return "up to date"
	default:
		return fmt.Sprintf("waiting for %s in phase %s", d.present.current.Name, d.present.current.Status.Phase)
	}
}

// invalidBundleError is a bundle whose manifests have no steps. A retry does not help.
type invalidBundleError struct{ err error }

// Error returns the message of the cause.
func (e *invalidBundleError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *invalidBundleError) Unwrap() error { return e.err }

// planError is a failure to create a plan for a chosen version.
type planError struct{ err error }

// Error returns the message of the cause.
func (e *planError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *planError) Unwrap() error { return e.err }

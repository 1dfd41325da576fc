package clusterserviceversion

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// putDeployment brings a Deployment to what is wanted of it. What a lifecycle manager
// before this one set on it and is no longer wanted goes: a container that was dropped
// would run on, and a variable that has a value and a source is refused.
func (r *reconciler) putDeployment(ctx context.Context, d *appsv1.Deployment) error {
	want, err := convert(d)
	if err != nil {
		return err
	}
	live, err := readAs(ctx, r.live, want)
	if err != nil {
		return err
	}
	if live == nil {
		_, absent, err := apply.IfAbsent(ctx, r.client, want)
		if err == nil && !absent {
			return errStale
		}
		return err
	}
	_, err = apply.TakeOver(ctx, r.client, want, live)
	return err
}

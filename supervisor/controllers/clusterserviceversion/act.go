package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/crdguard"
)

// act performs one action. All actions are idempotent.
func (r *reconciler) act(ctx context.Context, action phase.Action, s *state) error {
	switch action {
	case phase.Annotate:
		return r.writer.annotate(ctx, s.CSV, &s.Groups[0])
	case phase.Serve:
		return r.installer.serve(ctx, s)
	case phase.Install:
		return r.installer.install(ctx, s)
	case phase.Switch:
		return r.installer.switchWebhooks(ctx, s)
	case phase.Withdraw:
		return r.installer.withdraw(ctx, s.CSV)
	case phase.Renew:
		return r.installer.renew(ctx, s)
	case phase.CopyRBAC:
		return r.installer.copyRBACConfirmed(ctx, s)
	case phase.DeleteSelf:
		return r.writer.delete(ctx, s.CSV)
	}
	return fmt.Errorf("unknown action %q", action)
}

// refused reports whether the API, or the guard of definitions, has refused an object for its
// content. Another try at once will not change that.
func refused(err error) bool {
	if _, guarded := errors.AsType[*crdguard.RefusalError](err); guarded {
		return true
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

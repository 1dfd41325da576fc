package apply

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrStale reports that an object has changed since it was read. The event of the change causes the next
// reconcile.
var ErrStale = errors.New("an object has changed since it was read")

// ConflictDelay is the pause after a write conflict. It is long enough for the cache to receive the newer object.
const ConflictDelay = 50 * time.Millisecond

// RequeueConflict returns a retry after ConflictDelay for a write conflict and for ErrStale, and other errors as they
// are.
func RequeueConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || errors.Is(err, ErrStale) {
		return reconcile.Result{RequeueAfter: ConflictDelay}, nil
	}
	return reconcile.Result{}, err
}

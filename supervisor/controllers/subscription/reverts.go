package subscription

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// reverts returns the version whose definitions replace newer ones, as the Subscription is pinned
// to it; nil for none. The newer definitions may belong to an existing version, to one that will be
// deleted, or to one that was deleted.
func (d *decision) reverts() *resolver.Choice {
	if d.withdraw != nil {
		return d.then
	}
	if d.install != nil && (d.install.Back || (d.present.current == nil && d.install.Bundle == pinOf(d.subscription))) {
		return d.install
	}
	return nil
}

// reverts returns the name of the reverting version of a plan; empty for none.
func (a *assignment) reverts() string {
	for _, d := range a.served {
		if older := d.reverts(); older != nil {
			return older.Bundle
		}
	}
	return ""
}

// ensureReverts makes a plan check the stored objects right before it changes definitions. Objects
// may be stored between the creation of the plan and its approval.
func (r *Reconciler) ensureReverts(ctx context.Context, p *operatorsv1alpha1.InstallPlan, a *assignment) error {
	older := a.reverts()
	if older == "" || p.Annotations[api.AnnotationReverts] == older || !open(p) {
		return nil
	}
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, api.AnnotationReverts, older)
	if err := r.patch(ctx, before, p); err != nil {
		return fmt.Errorf("noting on InstallPlan %s/%s that it goes back to %s: %w", p.Namespace, p.Name, older, err)
	}
	return nil
}

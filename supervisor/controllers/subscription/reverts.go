package subscription

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// reverts gives the version whose definitions are to take the place of newer ones, as a
// Subscription is pinned to it; nil for none. The newer ones may be those of a version
// that is there, or that is about to go, or that went and left them.
func (d *decision) reverts() *resolver.Choice {
	if d.withdraw != nil {
		return d.then
	}
	if d.install != nil && (d.install.Back || (d.present.current == nil && d.install.Bundle == pinOf(d.subscription))) {
		return d.install
	}
	return nil
}

// reverts names the version of a plan for which that is so; empty for none.
func (a *assignment) reverts() string {
	for _, d := range a.served {
		if older := d.reverts(); older != nil {
			return older.Bundle
		}
	}
	return ""
}

// ensureReverts has a plan look at what is stored right before it changes definitions:
// until somebody has approved it, much may be stored that was not there when it was made.
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

package clusterserviceversion

import (
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// refusals remembers how the Deployments of each version were to be when the API refused to
// install it: when that has changed, another try need not wait. After a restart it does.
// Its methods may be called from any goroutine; the zero value is ready.
type refusals struct {
	mu    sync.Mutex
	known map[types.NamespacedName]string
}

// note remembers what was refused.
func (r *refusals) note(key types.NamespacedName, deployments []*appsv1.Deployment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[types.NamespacedName]string{}
	}
	r.known[key] = hashes(deployments)
}

// corrected says whether Deployments are not those that were refused last.
func (r *refusals) corrected(key types.NamespacedName, deployments []*appsv1.Deployment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused, known := r.known[key]
	return known && refused != hashes(deployments)
}

// forget is for versions that are installed or gone.
func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}

// hashes tells Deployments from others: those of their specs, which nothing else is in.
func hashes(deployments []*appsv1.Deployment) string {
	out := make([]string, 0, len(deployments))
	for _, d := range deployments {
		out = append(out, d.Name+"="+d.Labels[LabelDeploymentHash])
	}
	return strings.Join(out, ",")
}

// withSource names the Subscription that has changed what the API finds fault with: whoever
// looks for the fault in the version alone does not find it.
func withSource(s settings, err error) error {
	faulty := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	if s.source == "" || !faulty {
		return err
	}
	return fmt.Errorf("with %s, to be corrected where the fault is in it: %w", s.source, err)
}

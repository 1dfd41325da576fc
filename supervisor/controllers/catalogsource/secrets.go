package catalogsource

import (
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/pullsecrets"
)

// How long the results of checking pull secrets remain valid, with and without a problem.
const (
	amissTime = 30 * time.Second
	soundTime = 10 * time.Minute
)

// pullSecrets caches problems with the pull secrets of catalogs. Registries with anonymous access
// do not report them.
type pullSecrets struct {
	mu    sync.Mutex
	known map[types.NamespacedName]secretsVerdict
}

type secretsVerdict struct {
	generation int64
	problem    string
	until      time.Time
}

// find returns the cached result for a CatalogSource, if it is still valid.
func (s *pullSecrets) find(source *operatorsv1alpha1.CatalogSource, now time.Time) (verdict secretsVerdict, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verdict, found = s.known[client.ObjectKeyFromObject(source)]
	return verdict, found && verdict.generation == source.Generation && now.Before(verdict.until)
}

func (s *pullSecrets) keep(source *operatorsv1alpha1.CatalogSource, verdict secretsVerdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[client.ObjectKeyFromObject(source)] = verdict
}

func (s *pullSecrets) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}

// checkSecrets reports a problem with spec.secrets as a mistake.
func (r *Reconciler) checkSecrets(ctx context.Context, source *operatorsv1alpha1.CatalogSource, h *hosted) error {
	if len(source.Spec.Secrets) == 0 {
		return nil
	}
	now := r.clock.Now()
	verdict, found := r.secrets.find(source, now)
	if !found {
		problem, err := r.asker.secretsProblem(ctx, source)
		if err != nil {
			return err
		}
		verdict = secretsVerdict{generation: source.Generation, problem: problem, until: now.Add(soundTime)}
		if problem != "" {
			verdict.until = now.Add(amissTime)
		}
		r.secrets.keep(source, verdict)
	}
	if verdict.problem != "" {
		h.mistake = verdict.problem
		h.soonest(verdict.until.Sub(now))
	}
	return nil
}

// secretsProblem returns the problem of the first unusable Secret in spec.secrets; empty if there
// is none.
func (a *asker) secretsProblem(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (string, error) {
	for _, name := range source.Spec.Secrets {
		if name == "" {
			continue
		}
		key := client.ObjectKey{Namespace: source.Namespace, Name: name}
		secret, err := pullsecrets.Read(ctx, a.reader, key)
		if err != nil {
			return "", err //nolint:wrapcheck // names the object
		}
		if secret.Problem != "" {
			return fmt.Sprintf("spec.secrets names Secret %s, which %s; it is not used: create it of type kubernetes.io/dockerconfigjson, or remove it from spec.secrets",
				key, secret.Problem), nil
		}
	}
	return "", nil
}

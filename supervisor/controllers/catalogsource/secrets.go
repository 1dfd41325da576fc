package catalogsource

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/imagesources/pullsecrets"
)

// How long the results of checking pull secrets remain valid, with and without a problem.
const (
	problemTime = 30 * time.Second
	validTime   = 10 * time.Minute
)

// secretChecker finds unusable pull secrets of catalogs, and caches the results. Registries with
// anonymous access do not report them.
type secretChecker struct {
	reader  client.Reader
	clock   clock.PassiveClock
	results catalogMap[secretResult]
}

type secretResult struct {
	generation int64
	problem    string
	until      time.Time
}

// check returns the problem of the first unusable Secret in spec.secrets; empty if there is none. next
// is when to check again.
func (s *secretChecker) check(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (problem string, next time.Duration, err error) {
	if len(source.Spec.Secrets) == 0 {
		return "", 0, nil
	}
	key, now := client.ObjectKeyFromObject(source), s.clock.Now()
	last, found := s.results.get(key)
	if !found || last.generation != source.Generation || !now.Before(last.until) {
		last = secretResult{generation: source.Generation, until: now.Add(validTime)}
		if last.problem, err = s.read(ctx, source); err != nil {
			return "", 0, err
		}
		if last.problem != "" {
			last.until = now.Add(problemTime)
		}
		s.results.set(key, last)
	}
	if last.problem == "" {
		return "", 0, nil
	}
	return last.problem, last.until.Sub(now), nil
}

// read reads the Secrets in spec.secrets and returns the problem of the first unusable one.
func (s *secretChecker) read(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (string, error) {
	for _, name := range source.Spec.Secrets {
		if name == "" {
			continue
		}
		key := client.ObjectKey{Namespace: source.Namespace, Name: name}
		secret, err := pullsecrets.Read(ctx, s.reader, key)
		if err != nil {
			return "", err //nolint:wrapcheck // names the object
		}
		if secret.Problem != "" {
			return fmt.Sprintf("spec.secrets names Secret %s, which %s; the supervisor does not use it: create it with type kubernetes.io/dockerconfigjson, or remove it from spec.secrets",
				key, secret.Problem), nil
		}
	}
	return "", nil
}

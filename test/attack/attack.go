package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// writers is the number of concurrent requests of the tenant.
const writers = 4

// tenant is the attacking user.
type tenant struct {
	client client.Client
	rate   flowcontrol.RateLimiter
}

// pretend creates a Deployment that looks like OLM. It also maintains a Lease of another supervisor
// that need not be renewed for 68 years, until ctx ends.
func (t *tenant) pretend(ctx context.Context) error {
	labels := map[string]string{"app": "olm-operator"}
	olm := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: "olm-operator", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "olm-operator", Image: "registry.example/operator-framework/olm:v0.40.0", Command: []string{"/bin/olm"},
				}}},
			},
		},
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: api.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(math.MaxInt32))},
	}
	for _, o := range []client.Object{olm, lease} {
		if err := t.client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s as the tenant: %w", o, o.GetName(), err)
		}
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
			err := t.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch))
			if err != nil && ctx.Err() == nil && !passes(err) {
				return fmt.Errorf("renewing the Lease as the tenant: %w", err)
			}
		}
	}
}

// fill creates objects of a kind while a supervisor runs.
func (t *tenant) fill(ctx context.Context, s *supervisorProcess, kind string, objects, size int) error {
	return each(objects, func(number int) error {
		o, err := object(kind, attacker, number, size)
		if err != nil {
			return err
		}
		return s.await(ctx, "the tenant to create "+kind+" "+o.GetName(), func(ctx context.Context) (bool, error) {
			err := t.client.Create(ctx, o)
			if err != nil && passes(err) {
				return false, nil
			}
			return err == nil || apierrors.IsAlreadyExists(err), client.IgnoreAlreadyExists(err)
		})
	})
}

// touch changes all objects of some kinds until ctx ends, so the supervisor receives all of them repeatedly.
func (t *tenant) touch(ctx context.Context, kinds []string, objects int) error {
	for round := 0; ctx.Err() == nil; round++ {
		err := each(objects*len(kinds), func(number int) error {
			if err := t.rate.Wait(ctx); err != nil {
				return context.Cause(ctx)
			}
			kind := kinds[number%len(kinds)]
			o, err := object(kind, attacker, number/len(kinds), 0)
			if err != nil {
				return err
			}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"round":"%d"}}}`, round)
			if err := t.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil && !passes(err) {
				return fmt.Errorf("changing %s %s as the tenant: %w", kind, o.GetName(), err)
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// passes reports whether an API server under load refused a request that may succeed later.
func passes(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsConflict(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// clear deletes the objects of a kind, one by one. The answer to a deletion of a collection would
// contain all deleted objects.
func (s *scene) clear(ctx context.Context, kind string, objects int) error {
	return each(objects, func(number int) error {
		o, err := object(kind, attacker, number, 0)
		if err != nil {
			return err
		}
		return s.supervisor.await(ctx, kind+" "+o.GetName()+" to be gone", func(ctx context.Context) (bool, error) {
			err := s.client.Delete(ctx, o, client.GracePeriodSeconds(0))
			if err != nil && passes(err) {
				return false, nil
			}
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	})
}

// each calls a function for the numbers from 0, several concurrently.
func each(n int, do func(int) error) error {
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		failures []error
	)
	numbers := make(chan int)
	for range writers {
		group.Go(func() {
			for number := range numbers {
				if err := do(number); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
			}
		})
	}
	for number := range n {
		numbers <- number
	}
	close(numbers)
	group.Wait()
	return errors.Join(failures[:min(len(failures), 1)]...)
}

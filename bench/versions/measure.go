package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// calm is how long other clients are measured before the removal.
	calm = 30 * time.Second
	// pause is the time between two requests of another client.
	pause = 10 * time.Millisecond
)

// figures are the measured values.
type figures struct {
	o options
	// succeeded are the times from available Deployments to the phase Succeeded.
	succeeded []time.Duration
	// before and during are the times of other clients' requests.
	before, during []time.Duration
	// removal is the duration of the removal.
	removal time.Duration
}

// measure sets everything up, measures and removes everything.
func measure(ctx context.Context, o options, dir string) (_ *figures, err error) {
	s, tearDown, err := setUp(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tearDown()) }()
	f := &figures{o: o}
	for i := range o.installs {
		took, err := s.install(ctx, version(fmt.Sprintf("operator-%02d", i), false))
		if err != nil {
			return nil, err
		}
		f.succeeded = append(f.succeeded, took)
	}
	fmt.Fprintf(os.Stderr, "%d versions are installed\n", o.installs)
	csv := version(keeper, true)
	if _, err := s.install(ctx, csv); err != nil {
		return nil, err
	}
	if err := s.light(ctx, o.objects); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%d custom resources are there\n", o.objects)
	if err := f.remove(ctx, s, csv); err != nil {
		return nil, err
	}
	return f, nil
}

// install creates a version and returns the time from its available Deployment to the phase
// Succeeded, as a client sees it that watches both.
func (s *scene) install(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	named := &client.ListOptions{Namespace: home, Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + csv.Name}}
	deployments, err := s.client.Watch(ctx, &appsv1.DeploymentList{}, named)
	if err != nil {
		return 0, fmt.Errorf("watching Deployments: %w", err)
	}
	defer deployments.Stop()
	versions, err := s.client.Watch(ctx, &operatorsv1alpha1.ClusterServiceVersionList{}, named)
	if err != nil {
		return 0, fmt.Errorf("watching ClusterServiceVersions: %w", err)
	}
	defer versions.Stop()
	if err := s.client.Create(ctx, csv); err != nil {
		return 0, fmt.Errorf("creating ClusterServiceVersion %s: %w", csv.Name, err)
	}
	took, err := between(deployments.ResultChan(), versions.ResultChan())
	if err != nil {
		return 0, fmt.Errorf("watching ClusterServiceVersion %s and its Deployment: %w", csv.Name, errors.Join(err, context.Cause(ctx)))
	}
	return took, nil
}

// errEnded means that a watch has ended too early.
var errEnded = errors.New("the watch has ended")

// between returns the time from the event of an available Deployment to the event of a version in
// the phase Succeeded.
func between(deployments, versions <-chan watch.Event) (time.Duration, error) {
	var available, succeeded time.Time
	for available.IsZero() || succeeded.IsZero() {
		var event watch.Event
		var ok bool
		select {
		case event, ok = <-deployments:
		case event, ok = <-versions:
		}
		if !ok {
			return 0, errEnded
		}
		switch o := event.Object.(type) {
		case *appsv1.Deployment:
			if available.IsZero() && isAvailable(o) {
				available = time.Now()
			}
		case *operatorsv1alpha1.ClusterServiceVersion:
			if o.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
				succeeded = time.Now()
			}
		}
	}
	return max(0, succeeded.Sub(available)), nil
}

func isAvailable(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// remove deletes a version with its custom resources and measures other clients before and during the removal.
func (f *figures) remove(ctx context.Context, s *scene, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	quiet, cancel := context.WithTimeout(ctx, calm)
	var err error
	f.before, err = s.others(quiet)
	cancel()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.client.Delete(ctx, csv); err != nil {
		return fmt.Errorf("deleting ClusterServiceVersion %s: %w", csv.Name, err)
	}
	busy, done := context.WithCancel(ctx)
	defer done()
	gone := make(chan error, 1)
	go func() {
		defer done()
		gone <- s.await(ctx, "the version to be gone", func(ctx context.Context) (bool, error) {
			err := s.client.Get(ctx, client.ObjectKeyFromObject(csv), &operatorsv1alpha1.ClusterServiceVersion{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}()
	f.during, err = s.others(busy)
	err = errors.Join(err, <-gone)
	f.removal = time.Since(began)
	return err
}

// others reads and writes one object after the other until ctx ends and returns the time of each request.
func (s *scene) others(ctx context.Context) ([]time.Duration, error) {
	var took []time.Duration
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return took, nil
		case <-ticker.C:
		}
		began := time.Now()
		others := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "others"}}
		err := s.client.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(others), others)
		if i%2 == 1 && err == nil {
			before := others.DeepCopy()
			others.Data["count"] = strconv.Itoa(i)
			began = time.Now()
			err = s.client.Patch(context.WithoutCancel(ctx), others, client.MergeFrom(before))
		}
		if err != nil {
			return nil, fmt.Errorf("being another client: %w", err)
		}
		took = append(took, time.Since(began))
	}
}

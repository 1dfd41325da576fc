package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/audit"
)

// writers is how many requests of the user are under way at once.
const writers = 8

// Batch is what it took to install the operator in some namespaces at once.
type Batch struct {
	// Before is how many namespaces had the operator, and Namespaces how many got it.
	Before, Namespaces int
	// Took is from the first Subscription until all are AtLatestKnown.
	Took time.Duration
	// Requests are those of the supervisor until nothing happened any more, without renewals of its
	// Lease.
	Requests []audit.Request
	// Reconciles are the passes of each controller.
	Reconciles map[string]int
	// Supervisor and APIServer are the processor time that they spent.
	Supervisor, APIServer time.Duration
	// Memory is what the supervisor has in memory of its own afterwards (RssAnon), in bytes.
	Memory int64
}

// Prepare makes namespaces with their OperatorGroups, and waits until the supervisor is idle.
func (c *Cluster) Prepare(ctx context.Context, names []string) error {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		if err := c.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		return c.create(ctx, &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "own"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{name}},
		})
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		err := c.await(ctx, "the ServiceAccount of namespace "+name, func(ctx context.Context) (bool, error) {
			err := c.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	_, err = c.idle(ctx)
	return err
}

// Install subscribes to the operator in prepared namespaces, all at once, and counts what that takes.
func (c *Cluster) Install(ctx context.Context, before int, names []string) (*Batch, error) {
	start, err := c.measure(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = each(ctx, names, func(ctx context.Context, name string) error {
		return c.create(ctx, &operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: packageName},
			Spec: &operatorsv1alpha1.SubscriptionSpec{
				Package: packageName, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace,
			},
		})
	})
	if err != nil {
		return nil, err
	}
	if err := c.installed(ctx, names); err != nil {
		return nil, err
	}
	b := &Batch{Before: before, Namespaces: len(names), Took: time.Since(began)}
	if b.Requests, err = c.idle(ctx); err != nil {
		return nil, err
	}
	end, err := c.measure(ctx)
	if err != nil {
		return nil, err
	}
	b.Reconciles = map[string]int{}
	for name, n := range end.reconciles {
		if n > start.reconciles[name] {
			b.Reconciles[name] = n - start.reconciles[name]
		}
	}
	b.Supervisor, b.APIServer, b.Memory = end.supervisor-start.supervisor, end.apiServer-start.apiServer, end.memory
	return b, nil
}

// installed waits until the Subscriptions of namespaces are AtLatestKnown.
func (c *Cluster) installed(ctx context.Context, names []string) error {
	waiting := map[string]bool{}
	for _, name := range names {
		waiting[name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(len(names))*2*time.Second)
	defer cancel()
	for len(waiting) > 0 {
		if err := c.watchInstalled(ctx, waiting); err != nil {
			return fmt.Errorf("waiting for %d of %d Subscriptions to be AtLatestKnown: %w", len(waiting), len(names), err)
		}
	}
	return nil
}

// watchInstalled removes from waiting the namespaces whose Subscription is AtLatestKnown, until none is
// left or the watch ends.
func (c *Cluster) watchInstalled(ctx context.Context, waiting map[string]bool) error {
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := c.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing Subscriptions: %w", err)
	}
	note := func(sub *operatorsv1alpha1.Subscription) {
		if sub.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest {
			delete(waiting, sub.Namespace)
		}
	}
	for i := range list.Items {
		note(&list.Items[i])
	}
	w, err := c.client.Watch(ctx, &operatorsv1alpha1.SubscriptionList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watching Subscriptions: %w", err)
	}
	defer w.Stop()
	for len(waiting) > 0 {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if sub, is := e.Object.(*operatorsv1alpha1.Subscription); is {
				note(sub)
			}
		case <-c.supervisor.Done():
			return errors.Join(errors.New("the supervisor ended"), c.supervisor.Unexpected())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// idle waits until the supervisor has sent no request for a while but for its Lease, and returns the
// requests since the last call.
func (c *Cluster) idle(ctx context.Context) ([]audit.Request, error) {
	const rest = 3 * time.Second
	var (
		all  []audit.Request
		last = time.Now()
	)
	err := c.await(ctx, "the supervisor to be idle", func(context.Context) (bool, error) {
		fresh, err := c.log.Next()
		if err != nil {
			return false, err
		}
		for _, r := range fresh {
			if r.User == account && r.Resource != "leases.coordination.k8s.io" && r.Verb != "watch" {
				all, last = append(all, r), time.Now()
			}
		}
		return time.Since(last) >= rest, nil
	})
	return all, err
}

// each calls a function for each of some names, several at once.
func each(ctx context.Context, names []string, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait() //nolint:wrapcheck // the function's own errors
}

package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/audit"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/process"
)

const (
	// home is the namespace of the accounts whose requests are counted.
	home = "chandlery-system"
	// writers is the number of the user's concurrent requests.
	writers = 8

	patience = 2 * time.Minute
	polling  = 100 * time.Millisecond
)

// operatorImage is the image of the operator's Deployment, without the host.
const operatorImage = "operator:v1"

// plane is a control plane that counts the requests of one account. kwok simulates its nodes, or they are real.
type plane struct {
	*controlplane.ControlPlane

	// bed has the real nodes; nil if there are none.
	bed *nodes.Bed

	// account is the user whose requests are counted.
	account string
	client  client.WithWatch
	log     *audit.Log
	// measured is the measured process; nil if there is none.
	measured *process.Process
}

func startPlane(ctx context.Context, o Options, account string) (*plane, error) {
	ctrllog.SetLogger(logr.Discard())
	p := &plane{account: "system:serviceaccount:" + home + ":" + account}
	var err error
	if o.RealNodes {
		if p.bed, err = nodes.Start(ctx, nodes.Options{AuditReads: true}); err != nil {
			return nil, err
		}
		p.ControlPlane = p.bed.ControlPlane()
		if err := p.bed.Images.PushIdle(ctx, operatorImage); err != nil {
			return nil, errors.Join(err, p.stop()) //nolint:contextcheck // What was started is removed after ctx too.
		}
	} else if p.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		AuditReads: true, EtcdQuota: 8 << 30, WithoutControllers: o.WithoutControllers,
	}); err != nil {
		return nil, err
	}
	p.log = audit.Open(p.AuditLog())
	return p, nil
}

// stop stops the control plane and its nodes.
func (p *plane) stop() error {
	if p.bed != nil {
		return p.bed.Stop()
	}
	return p.Stop()
}

// kubeconfig writes a kubeconfig for the account with additional groups.
func (p *plane) kubeconfig(groups ...string) (string, error) {
	return p.NewKubeconfig(p.account, append(groups, "system:serviceaccounts", "system:serviceaccounts:"+home, "system:authenticated")...)
}

// connect creates the client of the user, which has no rate limit.
func (p *plane) connect() error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	cfg := p.Config()
	cfg.QPS = -1
	if p.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

func (p *plane) create(ctx context.Context, o client.Object) error {
	if err := p.client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %T %s: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// namespaces creates namespaces, adds objects to each with add, and waits until Kubernetes has
// created its default objects in each.
func (p *plane) namespaces(ctx context.Context, names []string, add func(context.Context, string) error) error {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		if err := p.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		return add(ctx, name)
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		err := p.await(ctx, "the ServiceAccount of namespace "+name, func(ctx context.Context) (bool, error) {
			err := p.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	_, err = p.idle(ctx)
	return err
}

// await waits until a condition holds. It returns an error if the measured process ends.
func (p *plane) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		if p.measured != nil {
			err = errors.Join(err, p.measured.Unexpected())
		}
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// idle waits until the account has sent no request for some time, except periodic ones, and returns
// the requests since the last call without its Lease. It ignores watches, which last longer than a
// batch. The time is longer than the pause between two writes of an Operator: otherwise, the duration
// of an installation decides whether the last write counts.
func (p *plane) idle(ctx context.Context) ([]audit.Request, error) {
	const rest = 4 * time.Second
	var (
		all  []audit.Request
		last = time.Now()
	)
	err := p.await(ctx, "requests to end", func(context.Context) (bool, error) {
		fresh, err := p.log.Next()
		if err != nil {
			return false, err
		}
		for _, r := range fresh {
			if r.User == p.account && r.Resource != "leases.coordination.k8s.io" && r.Verb != "watch" {
				all = append(all, r)
				if row, _ := find(kindOf(r)); row.Minute == 0 {
					last = time.Now()
				}
			}
		}
		return time.Since(last) >= rest, nil
	})
	return all, err
}

// reached waits until an object of a kind is as wanted in each of some namespaces.
func (p *plane) reached(ctx context.Context, names []string, list client.ObjectList, wanted func(client.Object) bool) error {
	waiting := make(map[string]bool, len(names))
	for _, name := range names {
		waiting[name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(len(names))*5*time.Second)
	defer cancel()
	for len(waiting) > 0 {
		if err := p.watch(ctx, list, waiting, wanted); err != nil {
			return fmt.Errorf("waiting for %d of %d namespaces, watching %T: %w", len(waiting), len(names), list, err)
		}
	}
	return nil
}

// watch removes the namespaces with an object as wanted from waiting, until none is left or the
// watch ends. A watch without a resource version begins with all existing objects.
func (p *plane) watch(ctx context.Context, list client.ObjectList, waiting map[string]bool, wanted func(client.Object) bool) error {
	w, err := p.client.Watch(ctx, list)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer w.Stop()
	var ended <-chan struct{}
	if p.measured != nil {
		ended = p.measured.Done()
	}
	for len(waiting) > 0 {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if o, is := e.Object.(client.Object); is && wanted(o) {
				delete(waiting, o.GetNamespace())
			}
		case <-ended:
			return errors.Join(errors.New("the measured process ended"), p.measured.Unexpected())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// each calls a function for each of some names, several concurrently.
func each(ctx context.Context, names []string, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// Names returns the names of namespaces from one number up to another, without the last.
func Names(from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("scale-%04d", i))
	}
	return names
}

package faults_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// paths holds the stages of InstallPlans, recorded by a watch without faults.
type paths struct {
	mu     sync.Mutex
	stages map[types.UID][]transitionlog.Stage
	order  map[string][]types.UID
}

func newPaths() *paths {
	return &paths{stages: map[types.UID][]transitionlog.Stage{}, order: map[string][]types.UID{}}
}

// OnAdd records a new InstallPlan.
func (p *paths) OnAdd(o any, _ bool) { p.see(o) }

// OnUpdate records a changed InstallPlan.
func (p *paths) OnUpdate(_, o any) { p.see(o) }

// OnDelete does nothing.
func (p *paths) OnDelete(any) {}

func (p *paths) see(o any) {
	plan, ok := o.(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.stages[plan.UID]
	if len(seen) == 0 {
		p.order[plan.Namespace] = append(p.order[plan.Namespace], plan.UID)
	}
	if stage := transitionlog.StageOf(plan); len(seen) == 0 || seen[len(seen)-1] != stage {
		p.stages[plan.UID] = append(seen, stage)
	}
}

// told is a stage of an InstallPlan in a transition log.
type told struct {
	Sequence int64
	Plan     types.UID
	Stage    transitionlog.Stage
}

// differs returns the differences between the transition log of the Subscription and the stages of
// its InstallPlans; empty if the log has all of them, in order, and nothing else.
func (p *paths) differs(ctx context.Context, c client.Reader, namespace string) string {
	sub := &operatorsv1alpha1.Subscription{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: wish}, sub); err != nil {
		return err.Error()
	}
	ledger, err := transitionlog.Read(sub)
	if err != nil {
		return err.Error()
	}
	var got, want []told
	for _, t := range ledger {
		got = append(got, told{t.Sequence, t.UID, t.Stage()})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uid := range p.order[namespace] {
		for _, stage := range p.stages[uid] {
			want = append(want, told{int64(len(want) + 1), uid, stage})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Sprintf("the ledger of Subscription %s/%s does not tell what its plans went through (-watched +told):\n%s", namespace, wish, diff)
	}
	return ""
}

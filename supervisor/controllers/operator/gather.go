package operator

import (
	"context"
	"fmt"
	"sync"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// gatherer collects the components of Operators.
type gatherer struct {
	memory

	mu sync.Mutex
	// known holds the last conditions of components that are cached as metadata, by Operator and
	// UID.
	known map[string]map[types.UID]looked
}

// looked holds the conditions of one version of an object.
type looked struct {
	version    string
	conditions []operatorsv1.Condition
}

// gather returns references to all objects with the label of an Operator.
func (g *gatherer) gather(ctx context.Context, name string) ([]operatorsv1.RichReference, error) {
	var refs []operatorsv1.RichReference
	before, after := g.recall(name), map[types.UID]looked{}
	mentioned := mentions{}
	for _, k := range kinds() {
		if k.named {
			continue
		}
		var failure error
		err := g.each(ctx, k, func(o client.Object) {
			if isCopied(o) || failure != nil {
				return
			}
			conditions := conditionsOf(o)
			if k.conditions && k.whole == nil {
				conditions, failure = g.look(ctx, k, o, before, after)
			}
			refs = append(refs, reference(k.gvk, o, conditions))
			mentioned.note(o)
		}, client.MatchingFields{indexComponent: name})
		if err != nil {
			return nil, err
		}
		if failure != nil {
			return nil, failure
		}
	}
	secrets, err := g.secrets(ctx, mentioned)
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if _, bears := secret.Labels[api.PrefixComponent+name]; bears {
			refs = append(refs, reference(secretKind().gvk, secret, nil))
		}
	}
	g.remember(name, after)
	return refs, nil
}

// look returns the conditions of an object. It reads the object only if its resourceVersion has
// changed. CustomResourceDefinitions are too large to cache for their conditions.
func (g *gatherer) look(ctx context.Context, k kind, o client.Object, before, after map[types.UID]looked) ([]operatorsv1.Condition, error) {
	seen, is := before[o.GetUID()]
	if !is || seen.version != o.GetResourceVersion() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.gvk)
		err := g.live.Get(ctx, client.ObjectKeyFromObject(o), u)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the conditions of %s %s: %w", k.gvk.Kind, o.GetName(), err)
		}
		// If the object has changed since, its event triggers another read.
		seen = looked{version: o.GetResourceVersion(), conditions: conditionsIn(u)}
	}
	after[o.GetUID()] = seen
	return seen.conditions, nil
}

func (g *gatherer) recall(name string) map[types.UID]looked {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[name]
}

func (g *gatherer) remember(name string, seen map[types.UID]looked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(seen) == 0 {
		delete(g.known, name)
		return
	}
	g.known[name] = seen
}

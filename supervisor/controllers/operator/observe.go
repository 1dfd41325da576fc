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

// observer collects the components of Operators.
type observer struct {
	readers

	mu sync.Mutex
	// known holds the last conditions of components that are cached as metadata, by Operator and
	// UID.
	known map[string]map[types.UID]observedConditions
}

// observedConditions holds the conditions of one version of an object.
type observedConditions struct {
	version    string
	conditions []operatorsv1.Condition
}

// components returns references to all objects with the label of an Operator.
func (g *observer) components(ctx context.Context, name string) ([]operatorsv1.RichReference, error) {
	var refs []operatorsv1.RichReference
	before, after := g.last(name), map[types.UID]observedConditions{}
	referred := secretRefs{}
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
			if k.conditions && k.typed == nil {
				conditions, failure = g.conditions(ctx, k, o, before, after)
			}
			refs = append(refs, reference(k.gvk, o, conditions))
			referred.add(o)
		}, client.MatchingFields{indexComponent: name})
		if err != nil {
			return nil, err
		}
		if failure != nil {
			return nil, failure
		}
	}
	secrets, err := g.secrets(ctx, referred)
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if _, labelled := secret.Labels[api.PrefixComponent+name]; labelled {
			refs = append(refs, reference(secretKind().gvk, secret, nil))
		}
	}
	g.store(name, after)
	return refs, nil
}

// conditions returns the conditions of an object. It reads the object only if its resourceVersion has
// changed. CustomResourceDefinitions are too large to cache for their conditions.
func (g *observer) conditions(ctx context.Context, k kind, o client.Object, before, after map[types.UID]observedConditions) ([]operatorsv1.Condition, error) {
	seen, is := before[o.GetUID()]
	if !is || seen.version != o.GetResourceVersion() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.gvk)
		err := g.live.Get(ctx, client.ObjectKeyFromObject(o), u)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the conditions of %s %s: %w", k.gvk.Kind, o.GetName(), err)
		}
		// If the object has changed since, its event triggers another read.
		seen = observedConditions{version: o.GetResourceVersion(), conditions: unstructuredConditions(u)}
	}
	after[o.GetUID()] = seen
	return seen.conditions, nil
}

func (g *observer) last(name string) map[types.UID]observedConditions {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[name]
}

func (g *observer) store(name string, seen map[types.UID]observedConditions) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(seen) == 0 {
		delete(g.known, name)
		return
	}
	g.known[name] = seen
}

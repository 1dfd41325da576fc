package install

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create creates the missing objects of a plan. An object that another client has created since the plan was made has to
// meet the request, as one that existed before.
func (s *planner) create(ctx context.Context, agent string, p *plan) error {
	for _, object := range p.Create {
		made, _ := object.DeepCopyObject().(client.Object)
		err := s.client.Create(ctx, made, client.FieldOwner(agent))
		if apierrors.IsAlreadyExists(err) {
			if err := s.checkExisting(ctx, p, object); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("creating %s: %w; correct the problem and repeat the command", describe(object), err)
		}
	}
	return nil
}

// checkExisting returns an error if an object that another client has created differs from the request.
func (s *planner) checkExisting(ctx context.Context, p *plan, object client.Object) error {
	found, err := readInventory(ctx, s.client, s.request)
	if err != nil {
		return err
	}
	absent, _, err := missing(s.request, p.chosen, found, p.modes)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(absent, func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(object) }) {
		return fmt.Errorf("creating %s: it existed, and was deleted since; repeat the command", describe(object))
	}
	return nil
}

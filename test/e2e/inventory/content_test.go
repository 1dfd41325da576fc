package inventory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// contents has every object of a cluster with what it says, but for its status. It is
// more to read than count, and for the beginning and the end.
func (b *bed) contents(ctx context.Context) (inventory, error) {
	resources, all, err := b.listable()
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		// Leases are there to be renewed.
		if r.kind == "Lease" {
			continue
		}
		list, err := b.dynamic.Resource(r.GroupVersionResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading every %s: %w", r.kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			text, err := body(o)
			if err != nil {
				return nil, fmt.Errorf("reading %s %s: %w", r.kind, o.GetName(), err)
			}
			all[entry(r.kind, r.Group, o.GetNamespace(), o.GetName())] = text
		}
	}
	return all, nil
}

func body(o *unstructured.Unstructured) (string, error) {
	fields := maps.Clone(o.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	text, err := json.Marshal(fields)
	return string(text), err
}

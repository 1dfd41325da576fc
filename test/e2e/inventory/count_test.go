package inventory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// inventory has every object of a cluster, and of each which it is, with the marks that
// others have put on it.
type inventory map[string]string

// entry names an object in an inventory.
func entry(kind, group, namespace, name string) string {
	return strings.TrimSuffix(kind+"."+group, ".") + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// passing are kinds that tell of what has happened, and no state.
func passing(resource string) bool {
	return slices.Contains([]string{"events", "componentstatuses"}, resource)
}

// listed is a kind of which lists can be had.
type listed struct {
	schema.GroupVersionResource

	kind string
}

// listable finds all kinds that the cluster has now. Groups that nobody answers for are
// found too: what they have cannot be listed, and they are there.
func (b *bed) listable() ([]listed, inventory, error) {
	lists, err := b.discovery.ServerPreferredResources()
	var silent *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &silent) {
		return nil, nil, fmt.Errorf("finding what can be listed: %w", err)
	}
	unanswered := inventory{}
	if silent != nil {
		for version, err := range silent.Groups {
			unanswered[entry("APIGroup", "", "", version.String())] = err.Error()
		}
	}
	var all []listed
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, fmt.Errorf("finding what can be listed: %w", err)
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; slices.Contains(r.Verbs, "list") && !passing(r.Name) {
				all = append(all, listed{version.WithResource(r.Name), r.Kind})
			}
		}
	}
	return all, unanswered, nil
}

// count lists everything that can be listed.
func (b *bed) count(ctx context.Context) (inventory, error) {
	resources, all, err := b.listable()
	if err != nil {
		return nil, err
	}
	parts := make([]inventory, len(resources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, r := range resources {
		group.Go(func() error {
			var err error
			parts[i], err = b.countKind(ctx, r)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all, nil
}

func (b *bed) countKind(ctx context.Context, r listed) (inventory, error) {
	list, err := b.metadata.Resource(r.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return inventory{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing every %s: %w", r.kind, err)
	}
	part := inventory{}
	for i := range list.Items {
		o := &list.Items[i]
		part[entry(r.kind, r.Group, o.Namespace, o.Name)] = marks(o)
	}
	return part, nil
}

// marks are what others may put on an object: labels, annotations, finalizers, owners. A
// claim of nothing is none.
func marks(o *metav1.PartialObjectMetadata) string {
	annotations := map[string]string{}
	for key, value := range o.Annotations {
		if value != "" {
			annotations[key] = value
		}
	}
	owners := make([]string, 0, len(o.OwnerReferences))
	for _, owner := range o.OwnerReferences {
		owners = append(owners, owner.Kind+" "+owner.Name)
	}
	text, err := json.Marshal(map[string]any{
		"uid": o.UID, "labels": o.Labels, "annotations": annotations, "finalizers": o.Finalizers, "owners": owners,
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// difference says what is in the cluster now and was not, or the other way round, but for
// what was expected to come; empty when that is nothing.
func difference(before, now inventory, expected map[string]bool) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, there := before[name]
		switch {
		case !there && !expected[name]:
			lines = append(lines, "left over: "+name+" "+now[name])
		case there && was != now[name]:
			lines = append(lines, "changed: "+name+" from "+was+" to "+now[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := now[name]; !there {
			lines = append(lines, "gone: "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if _, there := now[name]; !there {
			lines = append(lines, "gone, though it ought to stay: "+name)
		}
	}
	return strings.Join(lines, "\n")
}

// since counts what is in an inventory and was not in another.
func (i inventory) since(before inventory) int {
	n := 0
	for name := range i {
		if _, there := before[name]; !there {
			n++
		}
	}
	return n
}

// kinds sums names up by kind: "3 ClusterRoles, 1 Operator".
func kinds(names []string) string {
	numbers := map[string]int{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, " ")
		kind, _, _ = strings.Cut(kind, ".")
		numbers[kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(numbers)) {
		plural := "s"
		if numbers[kind] == 1 {
			plural = ""
		}
		parts = append(parts, fmt.Sprintf("%d %s%s", numbers[kind], kind, plural))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

package compat_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// refTime is how long the references of an Operator may differ from its components.
const refTime = 2 * time.Second

// components returns Roles with the label of an operator, and its Operator.
func components(c *compattest.Cluster, n int) (*operatorsv1.Operator, []client.Object) {
	name := "lamp." + c.Namespace
	var roles []client.Object
	for i := range n {
		roles = append(roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: fmt.Sprintf("lamp-%d", i), Labels: map[string]string{"operators.coreos.com/" + name: "", "olm.managed": "true"},
		}})
	}
	return &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: name}}, roles
}

// refersTo waits until the references of an Operator to Roles are some objects.
func refersTo(c *compattest.Cluster, limit time.Duration, operator *operatorsv1.Operator, objects ...client.Object) {
	var want []string
	for _, o := range objects {
		want = append(want, o.GetName())
	}
	slices.Sort(want)
	c.Eventually(limit, func() string {
		if left := c.Read(operator); left != "" {
			return left
		}
		var have []string
		if operator.Status.Components != nil {
			for _, ref := range operator.Status.Components.Refs {
				if ref.Kind == "Role" {
					have = append(have, ref.Name)
				}
			}
		}
		if !slices.Equal(have, want) {
			return fmt.Sprintf("references %v, want %v", have, want)
		}
		return ""
	})
}

// TestOperatorReferences checks status.components of Operators.
func TestOperatorReferences(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "Q1", func(_ *testing.T, c *compattest.Cluster) {
		operator, roles := components(c, 6)
		c.Make(roles[0])
		refersTo(c, compattest.Patience, operator, roles[0])
		c.Make(roles[1:]...)
		refersTo(c, refTime, operator, roles...)
	})
	compattest.Check(t, "Q2", func(t *testing.T, c *compattest.Cluster) {
		operator, roles := components(c, 6)
		c.Make(roles...)
		refersTo(c, compattest.Patience, operator, roles...)
		for _, o := range roles[1:] {
			if err := c.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		refersTo(c, refTime, operator, roles[0])
	})
	compattest.Check(t, "Q3", func(t *testing.T, c *compattest.Cluster) {
		operator, roles := components(c, 3)
		meta := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Labels: roles[0].GetLabels()}
		}
		c.Make(&corev1.ServiceAccount{ObjectMeta: meta("lamp-b")}, &corev1.ServiceAccount{ObjectMeta: meta("lamp-a")})
		c.Make(roles[2], roles[0], roles[1])
		refersTo(c, compattest.Patience, operator, roles...)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(operator); left != "" || len(operator.Status.Components.Refs) == 5 {
				return left
			}
			return fmt.Sprintf("references %v", operator.Status.Components.Refs)
		})
		var keys []string
		for _, ref := range operator.Status.Components.Refs {
			keys = append(keys, ref.Kind+"/"+ref.Namespace+"/"+ref.Name)
		}
		if !slices.IsSorted(keys) {
			t.Errorf("references %v are not sorted", keys)
		}
	})
}

// TestOperatorReferencesFollowDeletions watches an Operator while its components are created and deleted.
func TestOperatorReferencesFollowDeletions(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "Q4", func(t *testing.T, c *compattest.Cluster) {
		operator, roles := components(c, 2)
		c.Make(roles[0])
		refersTo(c, compattest.Patience, operator, roles[0])
		w, err := c.Watch(t.Context(), &operatorsv1.OperatorList{}, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", operator.Name)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		var mu sync.Mutex
		var seen strings.Builder
		go func() {
			for e := range w.ResultChan() {
				if o, is := e.Object.(*operatorsv1.Operator); is && o.Status.Components != nil {
					mu.Lock()
					for _, ref := range o.Status.Components.Refs {
						seen.WriteString(" " + ref.Name)
					}
					mu.Unlock()
				}
			}
		}()
		if err := c.Create(t.Context(), roles[1]); err != nil {
			t.Fatal(err)
		}
		pause.For(t.Context(), refTime+500*time.Millisecond)
		if err := c.Delete(t.Context(), roles[1]); err != nil {
			t.Fatal(err)
		}
		refersTo(c, compattest.Patience, operator, roles[0])
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(seen.String(), roles[1].GetName()) {
			t.Errorf("references%s", seen.String())
		}
	})
	compattest.Check(t, "Q5", func(t *testing.T, c *compattest.Cluster) {
		operator, roles := components(c, 1)
		c.Make(roles...)
		refersTo(c, compattest.Patience, operator, roles...)
		if err := c.Delete(t.Context(), roles[0]); err != nil {
			t.Fatal(err)
		}
		c.Gone(compattest.Patience, operator)
	})
}

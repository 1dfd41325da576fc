package compat_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// goods returns a ConfigMap with a catalog.
func goods(c *compattest.Cluster, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}, Data: map[string]string{
		"customResourceDefinitions": "[]",
		"clusterServiceVersions":    "[" + c.Manifest(c.CSV("lamp.v1.0.0")) + "]",
		"packages":                  `[{"packageName":"lamp","channels":[{"name":"main","currentCSV":"lamp.v1.0.0"}]}]`,
	}}
}

// ofGoods returns a CatalogSource of the ConfigMap goods.
func ofGoods(c *compattest.Cluster, name string) *operatorsv1alpha1.CatalogSource {
	return &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeInternal, ConfigMap: "goods"},
	}
}

// owner returns the reference to a CatalogSource.
func owner(source *operatorsv1alpha1.CatalogSource) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: source.Name, UID: source.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

// owned waits until a ConfigMap has exactly these owners.
func owned(c *compattest.Cluster, held *corev1.ConfigMap, limit time.Duration, owners ...metav1.OwnerReference) {
	c.Eventually(limit, func() string {
		if left := c.Read(held); left != "" {
			return left
		}
		same := len(held.OwnerReferences) == len(owners)
		for _, want := range owners {
			same = same && slices.ContainsFunc(held.OwnerReferences, func(ref metav1.OwnerReference) bool { return c.Manifest(ref) == c.Manifest(want) })
		}
		if !same {
			return fmt.Sprintf("owners of %s: %s", held.Name, c.Manifest(held.OwnerReferences))
		}
		return ""
	})
}

// change updates a CatalogSource, also after a conflict.
func change(t *testing.T, c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, change func()) {
	t.Helper()
	c.Eventually(10*time.Second, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		change()
		if err := c.Update(t.Context(), source); err != nil {
			return err.Error()
		}
		return ""
	})
}

// writes counts the changes of a ConfigMap from now on.
func writes(t *testing.T, c *compattest.Cluster, held *corev1.ConfigMap) func() int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(held.Namespace), client.MatchingFields{"metadata.name": held.Name})
	if err != nil {
		t.Fatal(err)
	}
	counted := make(chan int)
	go func() {
		n := 0
		for e := range watcher.ResultChan() {
			if e.Type == watch.Modified {
				n++
			}
		}
		counted <- n
	}()
	return func() int {
		cancel()
		watcher.Stop()
		return <-counted
	}
}

// ownedCatalog creates a CatalogSource and its ConfigMap, and waits for the owner reference.
func ownedCatalog(c *compattest.Cluster) (*corev1.ConfigMap, *operatorsv1alpha1.CatalogSource) {
	held, source := goods(c, "goods"), ofGoods(c, "goods")
	c.Make(held, source)
	owned(c, held, compattest.Patience, owner(source))
	return held, source
}

// becomesOwner creates a CatalogSource of a ConfigMap. It checks that the ConfigMap is written once, and the catalog rolled
// out once.
func becomesOwner(t *testing.T, c *compattest.Cluster, held *corev1.ConfigMap) {
	t.Helper()
	source, ofCatalog := ofGoods(c, "goods"), []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{"olm.catalogSource": "goods"}}
	c.Make(held)
	count := writes(t, c, held)
	c.Make(source)
	owned(c, held, 5*time.Second, owner(source))
	if held.Labels["olm.managed"] != "false" {
		t.Errorf("labels %v", held.Labels)
	}
	var pods corev1.PodList
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		if ref := source.Status.ConfigMapResource; ref == nil || ref.ResourceVersion != held.ResourceVersion {
			return fmt.Sprintf("the reference is %+v, the version %s", ref, held.ResourceVersion)
		}
		if err := c.List(t.Context(), &pods, ofCatalog...); err != nil || len(pods.Items) == 0 {
			return fmt.Sprintf("no pods, %v", err)
		}
		return ""
	})
	first := pods.Items[0].UID
	pause.For(t.Context(), 3*time.Second)
	if n := count(); n != 1 {
		t.Errorf("%d writes", n)
	}
	if err := c.List(t.Context(), &pods, ofCatalog...); err != nil || len(pods.Items) != 1 || pods.Items[0].UID != first {
		t.Errorf("%d pods, of which the first is not the only one: %v", len(pods.Items), err)
	}
}

// deleteWith deletes an object with some options.
func deleteWith(t *testing.T, c *compattest.Cluster, o client.Object, options ...client.DeleteOption) {
	t.Helper()
	if err := c.Delete(t.Context(), o, options...); err != nil {
		t.Fatal(err)
	}
}

// TestConfigMapOwners checks the owner references of ConfigMaps that hold catalogs.
func TestConfigMapOwners(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "D1", func(t *testing.T, c *compattest.Cluster) {
		becomesOwner(t, c, goods(c, "goods"))
	})
	compattest.Check(t, "D2", func(t *testing.T, c *compattest.Cluster) {
		held, source := ownedCatalog(c)
		deleteWith(t, c, source)
		c.Gone(30*time.Second, held)
		c.Eventually(30*time.Second, func() string {
			var list corev1.ConfigMapList
			if err := c.List(t.Context(), &list, client.InNamespace(c.Namespace), client.MatchingLabels{"olm.catalogSource": "goods"}); err != nil || len(list.Items) > 0 {
				return fmt.Sprintf("%d copies, %v", len(list.Items), err)
			}
			return ""
		})
	})
	compattest.Check(t, "D5", func(t *testing.T, c *compattest.Cluster) {
		held, source := ownedCatalog(c)
		other := ofGoods(c, "other")
		c.Make(other)
		owned(c, held, compattest.Patience, owner(source), owner(other))
		deleteWith(t, c, source)
		owned(c, held, compattest.Patience, owner(other))
		deleteWith(t, c, other)
		c.Gone(30*time.Second, held)
	})
	compattest.Check(t, "D6", func(t *testing.T, c *compattest.Cluster) {
		held, source := ownedCatalog(c)
		deleteWith(t, c, source, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		c.Gone(30*time.Second, source)
		owned(c, held, 30*time.Second)
	})
}

// TestConfigMapsOfOthers checks ConfigMaps that others own, that are immutable, or that cannot be written.
func TestConfigMapsOfOthers(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "D7", func(t *testing.T, c *compattest.Cluster) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "owner"}}
		c.Make(secret)
		held, source := goods(c, "goods"), ofGoods(c, "goods")
		controller := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID, Controller: new(true)}
		held.OwnerReferences = []metav1.OwnerReference{controller}
		c.Make(held, source)
		owned(c, held, compattest.Patience, controller, owner(source))
	})
	compattest.Check(t, "D8", func(t *testing.T, c *compattest.Cluster) {
		held := goods(c, "goods")
		held.Immutable = new(true)
		becomesOwner(t, c, held)
	})
	compattest.Check(t, "D9", func(t *testing.T, c *compattest.Cluster) {
		denied(t, c)
		source := ofGoods(c, "goods")
		c.Make(goods(c, "goods"), source)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			message := source.Status.Message
			if source.Status.Reason != "ConfigMapError" || !strings.HasPrefix(message, "unable to write owner onto catalog source configmap - ") || !strings.Contains(message, "allow the supervisor to patch ConfigMaps") {
				return fmt.Sprintf("%s: %s", source.Status.Reason, message)
			}
			var list corev1.PodList
			if err := c.List(t.Context(), &list, client.InNamespace(c.Namespace), client.MatchingLabels{"olm.catalogSource": "goods"}); err != nil || len(list.Items) == 0 {
				return fmt.Sprintf("no pods, %v", err)
			}
			return ""
		})
	})
}

// TestConfigMapOwnerChanges checks the owner references after a change of the CatalogSource or its ConfigMap.
func TestConfigMapOwnerChanges(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "D11", func(t *testing.T, c *compattest.Cluster) {
		held, source := ownedCatalog(c)
		other := goods(c, "goods2")
		c.Make(other)
		change(t, c, source, func() { source.Spec.ConfigMap = "goods2" })
		owned(c, other, compattest.Patience, owner(source))
		owned(c, held, compattest.Patience)
	})
	compattest.Check(t, "D12", func(t *testing.T, c *compattest.Cluster) {
		held, source := goods(c, "goods"), ofGoods(c, "goods")
		source.Annotations = map[string]string{api.AnnotationKeepConfigMap: "true"}
		c.Make(held, source)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if source.Status.ConfigMapResource == nil {
				return source.Status.Message
			}
			return ""
		})
		pause.For(t.Context(), 5*time.Second)
		owned(c, held, time.Second)
		deleteWith(t, c, source)
		// As long as the ConfigMap of D2 may exist.
		pause.For(t.Context(), 30*time.Second)
		owned(c, held, time.Second)
	})
	compattest.Check(t, "D13", func(t *testing.T, c *compattest.Cluster) {
		source := ofGoods(c, "goods")
		c.Make(source)
		held := goods(c, "goods")
		held.Labels, held.OwnerReferences = map[string]string{"olm.managed": "false"}, []metav1.OwnerReference{owner(source)}
		c.Make(held)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			if ref := source.Status.ConfigMapResource; ref == nil || ref.ResourceVersion != held.ResourceVersion {
				return fmt.Sprintf("the reference is %+v; %s", ref, source.Status.Message)
			}
			return ""
		})
		c.AtRest(5*time.Second, held)
	})
	compattest.Check(t, "D15", func(t *testing.T, c *compattest.Cluster) {
		held, source := ownedCatalog(c)
		change(t, c, source, func() {
			source.Spec.SourceType, source.Spec.ConfigMap, source.Spec.Address = operatorsv1alpha1.SourceTypeGrpc, "", "127.0.0.1:1"
		})
		owned(c, held, compattest.Patience)
	})
	compattest.Check(t, "D17", func(t *testing.T, c *compattest.Cluster) {
		held, source := ownedCatalog(c)
		deleteWith(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}})
		c.Gone(compattest.Patience, held, source)
	})
}

// denied refuses writes to ConfigMaps of users in the namespace of the case.
func denied(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	c.Make(denial(c, "", "v1", "configmaps")...)
	// Wait until the policy is in force.
	trial := goods(c, "trial")
	c.Make(trial)
	c.Eventually(compattest.Patience, func() string {
		trial.Labels = map[string]string{"trial": strconv.FormatInt(time.Now().UnixNano(), 10)}
		if err := c.Update(t.Context(), trial); err == nil {
			return "a ConfigMap can be changed"
		}
		return ""
	})
}

// denial returns a policy that denies each update of a resource in the namespace of the case.
func denial(c *compattest.Cluster, group, version, resource string) []client.Object {
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.Namespace}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
					}}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "not now", Reason: new(metav1.StatusReasonForbidden)}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: c.Namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}

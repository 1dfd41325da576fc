package compat_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// orphanTime is how long an APIService without an owner may exist.
const orphanTime = 30 * time.Second

// ownerLabelsOf returns the labels of objects of a version.
func ownerLabelsOf(namespace, name string) map[string]string {
	return map[string]string{"olm.owner": name, "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion"}
}

// localAPIService returns an APIService that needs no server.
func localAPIService(group string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"spec": map[string]any{"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10)},
	}}
	u.SetName("v1." + group)
	u.SetLabels(labels)
	return u
}

// ownsAPIs gives a version APIs, all served by its Deployment.
func ownsAPIs(groups ...string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		for _, group := range groups {
			csv.Spec.APIServiceDefinitions.Owned = append(csv.Spec.APIServiceDefinitions.Owned, operatorsv1alpha1.APIServiceDescription{
				Name: "hats", Group: group, Version: "v1", Kind: "Hat", ContainerPort: 443,
				DeploymentName: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name,
			})
		}
	}
}

// ownsWebhook gives a version a webhook for objects of a group.
func ownsWebhook(group string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{
			GenerateName: "lamps." + group, Type: operatorsv1alpha1.ValidatingAdmissionWebhook, ContainerPort: 443,
			DeploymentName: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name, AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), WebhookPath: new("/lamps"),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{"lamps"}},
			}},
		}}
	}
}

// oldestObjects returns the six objects that OLM's oldest releases created for an API, the Service first.
func oldestObjects(namespace, group string, labels map[string]string) []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)}
	}
	api := "v1." + group
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: api + "-cert"}
	return []client.Object{
		&corev1.Service{ObjectMeta: meta(namespace, strings.ReplaceAll(api, ".", "-")), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&corev1.Secret{ObjectMeta: meta(namespace, api+"-cert")},
		&rbacv1.Role{ObjectMeta: meta(namespace, api+"-cert")},
		&rbacv1.RoleBinding{ObjectMeta: meta(namespace, api+"-cert"), RoleRef: role},
		&rbacv1.RoleBinding{
			ObjectMeta: meta("kube-system", api+"-auth-reader"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("", api+"-system:auth-delegator"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		},
	}
}

// presentObjects returns the objects of version hat.v1 whose names Chandlery and OLM form in the same way.
func presentObjects(namespace string) []client.Object {
	certificate := metav1.ObjectMeta{Namespace: namespace, Name: "hat-v1-service-cert"}
	return []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hat-v1-service"}},
		&corev1.Secret{ObjectMeta: certificate}, &rbacv1.Role{ObjectMeta: certificate}, &rbacv1.RoleBinding{ObjectMeta: certificate},
	}
}

// delegatorBindings returns the bindings to roles of the cluster for a Service.
func delegatorBindings(service string) []client.Object {
	return []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: service + "-auth-reader"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: service + "-system:auth-delegator"}},
	}
}

// serving waits until the API server is configured to call the first API of a version.
func serving(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	service := localAPIService(csv.Spec.APIServiceDefinitions.Owned[0].Group, nil)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(service); left != "" {
			return left
		}
		name, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
		if want := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name + "-service"; name != want {
			return "the APIService names Service " + name
		}
		return ""
	})
}

// stay checks that objects exist after a time.
func stay(t *testing.T, c *compattest.Cluster, rest time.Duration, objects ...client.Object) {
	t.Helper()
	pause.For(t.Context(), rest)
	for _, o := range objects {
		uid := o.GetUID()
		if left := c.Read(o); left != "" || o.GetUID() != uid {
			t.Errorf("%T %s was deleted: %s", o, o.GetName(), left)
		}
	}
}

// untouched checks that objects are not written until after a time.
func untouched(t *testing.T, c *compattest.Cluster, rest time.Duration, objects ...client.Object) {
	t.Helper()
	pause.For(t.Context(), rest)
	for _, o := range objects {
		before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // each is one
		if left := c.Read(o); left != "" || o.GetUID() != before.GetUID() || o.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("%T %s was written: %s, before %s %s", o, o.GetName(), c.Manifest(o), c.Manifest(before), left)
		}
	}
}

// TestAPIServices checks the objects with which API servers call operators, and their former names.
func TestAPIServices(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "L1", testOldestNames)
	stays := func(id, group, owner string, others ...string) {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			for _, name := range others {
				c.Make(c.CSV(name))
			}
			var labels map[string]string
			if owner != "" {
				labels = ownerLabelsOf(c.Namespace, owner)
			}
			old := oldestObjects(c.Namespace, group, labels)
			c.Make(old...)
			server := newAPIServer(t)
			csv := c.CSV("hat.v1", ownsAPIs(group), server.port)
			server.join(t, c)
			c.Make(csv)
			serving(c, csv)
			reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
			untouched(t, c, restTime, old...)
		})
	}
	stays("L2", "l2.hats.example", "")
	stays("L3", "l3.hats.example", "scarf.v1", "scarf.v1")
	stays("L4", "l4.hats.example", "gloves.v1")
	compattest.Check(t, "L20", testUnlistedKind)
}

// testUnlistedKind has an API server that is available before it lists its kind.
func testUnlistedKind(t *testing.T, c *compattest.Cluster) {
	server := newAPIServer(t)
	server.unlisted.Store(true)
	csv := c.CSV("hat.v1", ownsAPIs("l20.hats.example"), server.port)
	server.join(t, c)
	c.Make(csv)
	serving(c, csv)
	service := localAPIService("l20.hats.example", nil)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(service); left != "" {
			return left
		}
		if conditions := c.Manifest(service.Object["status"]); !strings.Contains(conditions, `"Passed"`) {
			return conditions
		}
		return ""
	})
	pause.For(t.Context(), restTime)
	if left := c.Read(csv); left != "" || csv.Status.Phase != operatorsv1alpha1.CSVPhaseInstalling || csv.Status.Message != "apiServices not installed" {
		t.Fatalf("phase %s, message %q %s", csv.Status.Phase, csv.Status.Message, left)
	}
	server.unlisted.Store(false)
	reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
}

// testOldestNames has an API whose APIService names the old Service.
func testOldestNames(t *testing.T, c *compattest.Cluster) {
	server := newAPIServer(t)
	csv := c.CSV("hat.v1", ownsAPIs("l1.hats.example"), server.port)
	server.join(t, c)
	old := oldestObjects(c.Namespace, "l1.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
	service := formerAPIService(c.Namespace, "l1.hats.example", old[0])
	c.Make(append(old, service)...)
	server.behind(c, old[0])
	if compattest.KeepsOrphans() {
		answers(t, c, orphanTime/4, "l1.hats.example")
	}
	longest := longestGap(t, "l1.hats.example")
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(service.GroupVersionKind())
	switched := revisionOf(t, c, services, service.GetName(), func(e watch.Event) bool {
		name, _, _ := unstructured.NestedString(e.Object.(*unstructured.Unstructured).Object, "spec", "service", "name") //nolint:forcetypeassert // each is one
		return e.Type != watch.Deleted && name != old[0].GetName()
	})
	deleted := revisionOf(t, c, &corev1.ServiceList{}, old[0].GetName(), func(e watch.Event) bool { return e.Type == watch.Deleted })
	c.Make(csv)
	serving(c, csv)
	reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
	c.Gone(compattest.Limit(10*time.Second, compattest.Patience), old...)
	uid := service.GetUID()
	if left := c.Read(service); left != "" || service.GetUID() != uid {
		t.Errorf("the APIService was recreated: %s", left)
	}
	for _, o := range presentObjects(c.Namespace) {
		if left := c.Read(o); left != "" {
			t.Error(left)
		}
	}
	for _, o := range delegatorBindings("hat-v1-service." + c.Namespace) {
		if c.Read(o) == "" {
			continue
		}
		// The names of OLM lack the namespace.
		o.SetName(strings.Replace(o.GetName(), "."+c.Namespace, "", 1))
		if left := c.Read(o); left != "" {
			t.Error(left)
		}
	}
	pause.For(t.Context(), time.Second)
	// The simulated pods get the address and the certificate of the server late.
	if gap := longest(); gap > compattest.Stretched(compattest.Limit(time.Second, compattest.Patience)) {
		t.Errorf("no request was answered for %s", gap)
	}
	if s, d := switched(), deleted(); s == 0 || d < s {
		t.Errorf("the APIService named another Service at version %d, and the Service was deleted at %d", s, d)
	}
}

// TestFormerNames checks further objects with former names, and APIServices without an owner.
func TestFormerNames(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "L5", func(t *testing.T, c *compattest.Cluster) {
		groups := []string{"l5-a.hats.example", "l5-b.hats.example", "l5-c.hats.example", "l5-d.hats.example", "l5-e.hats.example", "l5-f.hats.example"}
		var old []client.Object
		for i, group := range groups {
			old = append(old, oldestObjects(c.Namespace, group, ownerLabelsOf(c.Namespace, "hat.v1"))[i])
		}
		c.Make(old...)
		csv := c.CSV("hat.v1", ownsAPIs(groups...))
		c.Make(csv)
		serving(c, csv)
		c.Gone(compattest.Patience, old...)
	})
	compattest.Check(t, "L6", func(t *testing.T, c *compattest.Cluster) {
		service := &corev1.Service{}
		old := oldestObjects(c.Namespace, "l6.service", ownerLabelsOf(c.Namespace, "v1-l6"))[0]
		c.Make(old)
		csv := c.CSV("v1-l6", ownsAPIs("l6.service"))
		c.Make(csv)
		serving(c, csv)
		stay(t, c, restTime, old)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), service); err != nil || service.Spec.Selector["app"] != "v1-l6" {
			t.Errorf("the Service selects the pods %v (%v)", service.Spec.Selector, err)
		}
	})
	compattest.Check(t, "L7", func(t *testing.T, c *compattest.Cluster) {
		server := newAPIServer(t)
		csv := c.CSV("hat.v1", ownsAPIs("l7.hats.example"), server.port)
		server.join(t, c)
		old := oldestObjects(c.Namespace, "l7.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		c.Make(old...)
		kept := old[len(old)-1]
		end := refuse(t, c, requests{
			rbacv1.GroupName, "clusterrolebindings", admissionregistrationv1.Delete, `has(request.name) && request.name == "` + kept.GetName() + `"`,
		})
		c.Make(csv)
		serving(c, csv)
		c.Gone(compattest.Patience, old[:len(old)-1]...)
		c.Eventually(compattest.Patience, func() string {
			return eventAbout(c, c.Namespace, csv.UID, csv.Name, corev1.EventTypeWarning, "FormerObjectKept", containing(kept.GetName()))
		})
		if left := c.Read(kept); left != "" {
			t.Error(left)
		}
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		end()
	})
	compattest.Check(t, "L8", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("hat.v1", ownsAPIs("l8.hats.example"))
		c.Make(csv)
		serving(c, csv)
		// The last pass of the installation may follow the phase.
		pause.For(t.Context(), restTime)
		old := oldestObjects(c.Namespace, "l8.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		// The Service would be a change of the version's Services.
		c.Make(old[1:]...)
		stay(t, c, restTime, old[1:]...)
	})
	compattest.Check(t, "L8-Reinstall", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("hat.v1", ownsAPIs("l8-again.hats.example"))
		c.Make(csv)
		serving(c, csv)
		pause.For(t.Context(), restTime)
		old := oldestObjects(c.Namespace, "l8-again.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		c.Make(old[1:]...)
		c.Read(csv)
		mergeStatus(t, c, csv, `{"status":{"phase":"InstallReady","reason":"AllRequirementsMet"}}`)
		c.Gone(compattest.Patience, old[1:]...)
	})
	testOrphans(t)
}

// testRecreatedVersion deletes a version with an API and creates it again.
func testRecreatedVersion(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	server := newAPIServer(t)
	create := func() *operatorsv1alpha1.ClusterServiceVersion {
		csv := c.CSV("hat.v1", ownsAPIs("l14.hats.example"), server.port)
		c.Make(csv)
		return csv
	}
	server.join(t, c)
	csv := create()
	reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
	if err := c.Delete(t.Context(), csv); err != nil {
		t.Fatal(err)
	}
	c.Gone(5*time.Second, csv.DeepCopy())
	again := create()
	serving(c, again)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "hat-v1"}}
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(deployment); left != "" {
			return left
		}
		owned := slices.ContainsFunc(deployment.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == again.UID })
		if !owned || deployment.Status.AvailableReplicas == 0 {
			return fmt.Sprintf("owners %v, %d replicas", deployment.OwnerReferences, deployment.Status.AvailableReplicas)
		}
		return ""
	})
	answers(t, c, compattest.Limit(5*time.Second, compattest.Patience), "l14.hats.example")
}

// TestDeletedVersions checks the objects of versions that are deleted or that share a name.
func TestDeletedVersions(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "L18", func(t *testing.T, c *compattest.Cluster) {
		other := c.NewNamespace()
		c.Make(operatorGroup(other, "group", other))
		for _, namespace := range []string{c.Namespace, other} {
			csv := c.CSV("hat.v1", ownsWebhook("l18.hats.example"))
			csv.Namespace = namespace
			c.Make(csv)
			reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		}
		for _, namespace := range []string{c.Namespace, other} {
			binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "hat-v1-service." + namespace + "-system:auth-delegator"}}
			if left := c.Read(binding); left != "" {
				t.Error(left)
			} else if len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != namespace {
				t.Errorf("subjects %v", binding.Subjects)
			}
		}
	})
	compattest.Check(t, "L19", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("hat.v1", ownsWebhook("l19.hats.example"))
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		objects := append(presentObjects(c.Namespace), delegatorBindings("hat-v1-service."+c.Namespace)...)
		for _, o := range objects {
			if left := c.Read(o); left != "" {
				t.Error(left)
			}
		}
		if err := c.Delete(t.Context(), csv); err != nil {
			t.Fatal(err)
		}
		c.Gone(compattest.Patience, objects...)
		var hooks admissionregistrationv1.ValidatingWebhookConfigurationList
		if err := c.List(t.Context(), &hooks, client.MatchingLabels(ownerLabelsOf(c.Namespace, "hat.v1"))); err != nil || len(hooks.Items) > 0 {
			t.Errorf("%d webhook configurations, error %v", len(hooks.Items), err)
		}
	})
}

// testOrphans has APIServices whose labels name an owner.
func testOrphans(t *testing.T) {
	t.Helper()
	compattest.Check(t, "L9", func(_ *testing.T, c *compattest.Cluster) {
		service := localAPIService("l9.hats.example", ownerLabelsOf("l9-no-namespace", "hat.v1"))
		c.Make(service)
		c.Gone(orphanTime, service)
	})
	compattest.Check(t, "L10", func(_ *testing.T, c *compattest.Cluster) {
		service := localAPIService("l10.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		c.Make(service)
		c.Gone(orphanTime, service)
	})
	compattest.Check(t, "L11", func(t *testing.T, c *compattest.Cluster) {
		service := localAPIService("l11.hats.example", nil)
		c.Make(service)
		mergePatch(t, c, service.DeepCopy(), `{"metadata":{"labels":`+c.Manifest(ownerLabelsOf(c.Namespace, "hat.v1"))+`}}`)
		c.Gone(orphanTime, service)
	})
	compattest.Check(t, "L12", func(t *testing.T, c *compattest.Cluster) {
		var services []client.Object
		for group, change := range map[string]func(map[string]string){
			"l12-a.hats.example": func(labels map[string]string) { delete(labels, "olm.owner.kind") },
			"l12-b.hats.example": func(labels map[string]string) { labels["olm.owner.kind"] = "OperatorGroup" },
			"l12-d.hats.example": func(labels map[string]string) { delete(labels, "olm.owner.namespace") },
			"l12-e.hats.example": func(labels map[string]string) { delete(labels, "olm.owner") },
			"l12-c.hats.example": func(labels map[string]string) { labels["olm.owner.kind"] = "clusterserviceversion" },
		} {
			labels := ownerLabelsOf(c.Namespace, "hat.v1")
			change(labels)
			services = append(services, localAPIService(group, labels))
		}
		c.Make(services...)
		stay(t, c, orphanTime/2, services...)
	})
	compattest.Check(t, "L13", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("hat.v1")
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		service := localAPIService("l13.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		c.Make(service)
		stay(t, c, orphanTime/2, service)
	})
	compattest.Check(t, "L15", func(t *testing.T, c *compattest.Cluster) {
		other := c.NewNamespace()
		targetNamespaces(t, c, c.Namespace, "group", c.Namespace, other)
		c.Make(c.CSV("hat.v1"))
		copied := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "hat.v1"}}
		c.Eventually(compattest.Patience, func() string { return c.Read(copied) })
		service := localAPIService("l15.hats.example", ownerLabelsOf(other, "hat.v1"))
		c.Make(service)
		c.Gone(orphanTime, service)
	})
	compattest.Check(t, "L17", func(t *testing.T, c *compattest.Cluster) {
		service := localAPIService("l17.hats.example", ownerLabelsOf(c.Namespace, "hat.v1"))
		c.Make(c.CSV("hat.v1"), service)
		stay(t, c, orphanTime/2, service)
	})
}

// TestAPIServiceOwners checks who may own an APIService, and what remains of it.
func TestAPIServiceOwners(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "L19-API", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("hat.v1", ownsAPIs("l19-api.hats.example"))
		c.Make(csv)
		serving(c, csv)
		objects := append(presentObjects(c.Namespace), localAPIService("l19-api.hats.example", nil))
		for _, o := range objects {
			c.Eventually(compattest.Patience, func() string { return c.Read(o) })
		}
		if err := c.Delete(t.Context(), csv); err != nil {
			t.Fatal(err)
		}
		c.Gone(compattest.Patience, objects...)
	})
	compattest.Check(t, "L-OtherOwner", func(_ *testing.T, c *compattest.Cluster) {
		other := c.CSV("scarf.v1")
		c.Make(other)
		reaches(c, other, operatorsv1alpha1.CSVPhaseSucceeded, "")
		service := localAPIService("l-other.hats.example", ownerLabelsOf(c.Namespace, other.Name))
		csv := c.CSV("hat.v1", ownsAPIs("l-other.hats.example"))
		c.Make(service, csv)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(csv); left != "" {
				return left
			}
			return recorded(csv, failedPhase, operatorsv1alpha1.CSVReasonOwnerConflict, exactly("unable to adopt APIService"))
		})
	})
	compattest.Check(t, "L-Predecessor", func(t *testing.T, c *compattest.Cluster) {
		first := c.CSV("hat.v1")
		c.Make(first)
		reaches(c, first, operatorsv1alpha1.CSVPhaseSucceeded, "")
		service := localAPIService("l-before.hats.example", ownerLabelsOf(c.Namespace, first.Name))
		csv := c.CSV("hat.v2", ownsAPIs("l-before.hats.example"), func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = first.Name })
		c.Make(service, csv)
		serving(c, csv)
		uid := service.GetUID()
		if left := c.Read(service); left != "" || service.GetUID() != uid || service.GetLabels()["olm.owner"] != csv.Name {
			t.Errorf("%s: UID %s, want %s; labels %v", left, service.GetUID(), uid, service.GetLabels())
		}
	})
}

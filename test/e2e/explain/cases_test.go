package explain_test

import (
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// broken is a case: the objects to create, and the words that the first line of the explanation
// must have. NAMESPACE stands for the namespace of the situation.
type broken struct {
	reason string
	make   func(*situation)
	words  []string
	// fine is set if nothing is wrong in the end, or if something only waits.
	fine bool
	// fix fixes the problem. Afterwards the Subscription must be healthy.
	fix func(*situation)
}

func cases() []broken {
	var all []broken
	for _, some := range [][]broken{catalogCases(), resolutionCases(), groupCases(), planCases(), versionCases(), podCases(), refusalCases(), goingCases()} {
		all = append(all, some...)
	}
	return all
}

func catalogCases() []broken {
	return []broken{
		{
			reason: "no CatalogSource of that name",
			make:   func(s *situation) { s.Create(s.group(), s.subscription()) },
			words:  []string{"CatalogSource NAMESPACE/wares does not exist", "spec.source"},
			fix: func(s *situation) {
				s.server.Serve(lamp(operator("lamp", 1)))
				s.Create(s.at())
			},
		},
		{
			reason: "the CatalogSource is in a namespace that serves others",
			make: func(s *situation) {
				s.server.Serve(lamp(operator("lamp", 1)))
				other := s.newSituation(s.T)
				elsewhere := s.at()
				elsewhere.SetName("mine")
				other.Create(elsewhere)
				s.Create(s.group(), s.at(), s.subscription(func(sub *operatorsv1alpha1.Subscription) {
					sub.Spec.CatalogSource, sub.Spec.CatalogSourceNamespace = "mine", other.Namespace
				}))
			},
			words: []string{"/mine serves neither namespace NAMESPACE"},
			fix: func(s *situation) {
				s.patch(&operatorsv1alpha1.Subscription{}, "lamp", fmt.Sprintf(`{"spec":{"source":"wares","sourceNamespace":%q}}`, s.Namespace))
			},
		},
		{
			reason: "the catalog's image cannot be pulled by the node",
			make: func(s *situation) {
				s.ward.ails(s.Namespace, waiting("ImagePullBackOff", "Back-off pulling image: ErrImagePull: the registry is closed on Sundays"))
				s.Create(s.group(), s.hosted(s.push(s.T, "wares"), wardName), s.subscription())
			},
			words: []string{"CatalogSource NAMESPACE/wares", "image ", "cannot be pulled: the registry is closed on Sundays"},
		},
		{
			reason: "the catalog's image is not in the registry",
			make: func(s *situation) {
				s.Create(s.group(), s.hosted(s.registry+"/nothing:1", wardName), s.subscription())
			},
			words: []string{"CatalogSource NAMESPACE/wares", "/nothing:1"},
		},
		{
			reason: "the catalog's pod crashes",
			make: func(s *situation) {
				s.ward.ails(s.Namespace, crashed("Error", 7, "no catalog in here"))
				s.Create(s.group(), s.hosted(s.push(s.T, "crashing"), wardName), s.subscription())
			},
			words: []string{"CatalogSource NAMESPACE/wares", "ended with exit code 7", "no catalog in here"},
		},
		{
			reason: "nothing answers at the catalog's address",
			make: func(s *situation) {
				s.server.Serve(lamp(operator("lamp", 1)))
				s.server.Stop()
				s.Create(s.group(), s.at(), s.subscription())
			},
			words: []string{"CatalogSource NAMESPACE/wares", "spec.address 127.0.0.1:", "does not answer"},
			fix:   func(s *situation) { s.server.Restart() },
		},
		{
			reason: "the node of the catalog is lost",
			make: func(s *situation) {
				s.Create(s.group(), s.hosted(s.push(s.T, "lost"), lostNode), s.subscription())
				s.until("a replica on the node", func() bool {
					var pods corev1.PodList
					err := s.List(s.T.Context(), &pods, client.InNamespace(s.Namespace))
					return err == nil && len(pods.Items) > 0 && pods.Items[0].Spec.NodeName == lostNode
				})
				if err := controlplane.Get(s.T).StopNode(s.T.Context(), lostNode); err != nil {
					s.T.Fatal(err)
				}
			},
			words: []string{"CatalogSource NAMESPACE/wares", "Node " + lostNode + " is lost"},
		},
		{
			reason: "the CatalogSource says neither image nor address",
			make:   func(s *situation) { s.Create(s.group(), s.source(map[string]any{}), s.subscription()) },
			words:  []string{"CatalogSource NAMESPACE/wares", "image and address unset"},
		},
		{
			reason: "the ConfigMap of a catalog is missing",
			make: func(s *situation) {
				u := catalogs.NewObject()
				u.SetName("wares")
				u.Object["spec"] = map[string]any{"sourceType": "configmap", "configMap": "goods"}
				s.Create(s.group(), u, s.subscription())
			},
			words: []string{"CatalogSource NAMESPACE/wares", "goods"},
		},
	}
}

func resolutionCases() []broken {
	spec := func(change func(*operatorsv1alpha1.SubscriptionSpec)) func(*situation) {
		return func(s *situation) {
			s.server.Serve(lamp(operator("lamp", 1)))
			s.Create(s.group(), s.at(), s.subscription(func(sub *operatorsv1alpha1.Subscription) { change(sub.Spec) }))
		}
	}
	return []broken{
		{
			reason: "no such package",
			make:   spec(func(spec *operatorsv1alpha1.SubscriptionSpec) { spec.Package = "candle" }),
			words:  []string{"CatalogSource NAMESPACE/wares has no package candle"},
			fix: func(s *situation) {
				s.patch(&operatorsv1alpha1.Subscription{}, "lamp", `{"spec":{"name":"lamp"}}`)
			},
		},
		{
			reason: "no such channel",
			make:   spec(func(spec *operatorsv1alpha1.SubscriptionSpec) { spec.Channel = "fast" }),
			words:  []string{"package lamp in CatalogSource NAMESPACE/wares has no channel fast"},
			fix: func(s *situation) {
				s.patch(&operatorsv1alpha1.Subscription{}, "lamp", `{"spec":{"channel":"stable"}}`)
			},
		},
		{
			reason: "no such version to start with",
			make:   spec(func(spec *operatorsv1alpha1.SubscriptionSpec) { spec.StartingCSV = "lamp.v9" }),
			words:  []string{"has no version lamp.v9 (spec.startingCSV)"},
		},
		{
			reason: "a dependency that no catalog has",
			make: func(s *situation) {
				entry := operator("lamp", 1)
				entry.Properties = []*api.Property{{Type: "olm.package.required", Value: `{"packageName":"wick","versionRange":">=1.0.0"}`}}
				s.wants(lamp(entry))
			},
			words: []string{"bundle lamp.v1 requires an operator", "wick"},
		},
		{
			reason: "another operator provides the same API",
			make: func(s *situation) {
				gvk := &api.Property{Type: "olm.gvk", Value: `{"group":"rivals.example.com","version":"v1","kind":"Light"}`}
				one, other := operator("lamp", 1), operator("torch", 1)
				one.Properties, other.Properties = []*api.Property{gvk}, []*api.Property{gvk}
				s.server.Serve(lamp(one), fakecatalog.Simple("torch", other))
				s.Create(s.group(), s.at(), s.subscribe("torch"))
				s.until("the other operator", func() bool {
					csv := &operatorsv1alpha1.ClusterServiceVersion{}
					err := s.Get(s.T.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "torch.v1"}, csv)
					return err == nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
				})
				s.Create(s.subscription())
			},
			words: []string{"torch.v1", "provide Light (rivals.example.com/v1)"},
		},
		{
			reason: "the bundle's image is not in the registry",
			make: func(s *situation) {
				s.wants(lamp(fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: s.registry + "/no-bundle:1"}))
			},
			words: []string{"/no-bundle:1", "NotFound"},
		},
		{
			reason: "the package is deprecated",
			make: func(s *situation) {
				p := lamp(operator("lamp", 1))
				p.Deprecation = "buy a torch instead"
				s.wants(p)
				s.installed("lamp.v1")
			},
			words: []string{"healthy", "lamp.v1 is installed", "buy a torch instead"}, fine: true,
		},
		{
			reason: "a version is pinned",
			make: func(s *situation) {
				s.server.Serve(lamp(operator("lamp", 1), operator("lamp", 2)))
				s.Create(s.group(), s.at(), s.subscription(func(sub *operatorsv1alpha1.Subscription) {
					sub.Spec.StartingCSV = "lamp.v1"
					sub.Annotations = map[string]string{"chandlery.dev/pin": "lamp.v1"}
				}))
			},
			words: []string{"lamp.v1 is installed", "annotation chandlery.dev/pin pins lamp.v1", "lamp.v2 is available"}, fine: true,
			fix: func(s *situation) {
				s.patch(&operatorsv1alpha1.Subscription{}, "lamp", `{"metadata":{"annotations":{"chandlery.dev/pin":null}}}`)
				s.installed("lamp.v2")
			},
		},
	}
}

func groupCases() []broken {
	one := func(s *situation) { s.server.Serve(lamp(operator("lamp", 1))) }
	return []broken{
		{
			reason: "no OperatorGroup",
			make: func(s *situation) {
				one(s)
				s.Create(s.at(), s.subscription())
			},
			words: []string{"namespace NAMESPACE has no OperatorGroup"},
			fix:   func(s *situation) { s.Create(s.group()) },
		},
		{
			reason: "two OperatorGroups",
			make: func(s *situation) {
				one(s)
				s.Create(s.group(), s.group(func(g *operatorsv1.OperatorGroup) { g.Name = "second" }), s.at(), s.subscription())
			},
			words: []string{"namespace NAMESPACE has 2 OperatorGroups (group, second)"},
			fix: func(s *situation) {
				g := s.group()
				g.Namespace = s.Namespace
				if err := s.Delete(s.T.Context(), g); err != nil {
					s.T.Fatal(err)
				}
			},
		},
		{
			reason: "the operator cannot watch all namespaces",
			make: func(s *situation) {
				// Until the version has failed, there are copies in all namespaces, which would
				// conflict with others of its name.
				s.server.Serve(lamp(operator("flood", 1, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
					csv.Spec.InstallModes[3].Supported = false
				})))
				s.Create(s.group(func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil }), s.at(), s.subscription())
			},
			words: []string{"ClusterServiceVersion NAMESPACE/flood.v1", "AllNamespaces", "not supported"},
			fix: func(s *situation) {
				s.patch(&operatorsv1.OperatorGroup{}, "group", fmt.Sprintf(`{"spec":{"targetNamespaces":[%q]}}`, s.Namespace))
			},
		},
		{
			reason: "the ServiceAccount of the OperatorGroup is missing",
			make: func(s *situation) {
				one(s)
				s.Create(s.group(func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = "installer" }), s.at(), s.subscription())
			},
			words: []string{"OperatorGroup NAMESPACE/group names ServiceAccount installer", "does not exist"},
		},
		{
			reason: "the ServiceAccount of the OperatorGroup lacks rights",
			make: func(s *situation) {
				s.server.Serve(lamp(bringing(operator("lamp", 1), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)))
				s.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "installer"}},
					s.group(func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = "installer" }), s.at(), s.subscription())
			},
			words: []string{"InstallPlan NAMESPACE/", "system:serviceaccount:NAMESPACE:installer", "forbidden"},
			fix: func(s *situation) {
				s.Create(&rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: "installer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "installer", Namespace: s.Namespace}},
				})
			},
		},
	}
}

func planCases() []broken {
	return []broken{
		{
			reason: "the plan waits for approval",
			make: func(s *situation) {
				s.server.Serve(lamp(operator("lamp", 1)))
				s.Create(s.group(), s.at(), s.subscription(func(sub *operatorsv1alpha1.Subscription) {
					sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
				}))
			},
			words: []string{"waiting: InstallPlan NAMESPACE/install-", "which installs lamp.v1", "waits for approval"}, fine: true,
			fix: func(s *situation) {
				s.patch(&operatorsv1alpha1.InstallPlan{}, s.plan(), `{"spec":{"approved":true}}`)
			},
		},
		{
			reason: "a step brings a kind that is not served",
			make: func(s *situation) {
				s.wants(lamp(bringing(operator("lamp", 1), `{"apiVersion":"monitoring.coreos.com/v1","kind":"ServiceMonitor","metadata":{"name":"lamp"}}`)))
			},
			words: []string{"InstallPlan NAMESPACE/install-", "ServiceMonitor lamp", "not found on the cluster"},
		},
		{
			reason: "an update drops a version in which objects are stored",
			make: func(s *situation) {
				const group = "stored.example.com"
				first := bringing(operator("lamp", 1, owning(group, "v1")), manifest(definition(group, "v1")))
				s.wants(lamp(first))
				s.installed("lamp.v1")
				old := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Lamp", "metadata": map[string]any{"name": "old"}}}
				s.Create(old)
				s.DeleteAtEnd(&unstructured.Unstructured{Object: definition(group, "v1")})
				s.server.Serve(lamp(first, bringing(operator("lamp", 2, owning(group, "v2")), manifest(definition(group, "v2")))))
			},
			words: []string{"InstallPlan NAMESPACE/install-", "CustomResourceDefinition lamps.stored.example.com", "v1"},
		},
		{
			reason: "a definition that belongs to another operator",
			make: func(s *situation) {
				const group = "owned.example.com"
				s.server.Serve(fakecatalog.Simple("torch", bringing(operator("torch", 1, owning(group, "v1")), manifest(definition(group, "v1")))))
				s.Create(s.group(), s.at(), s.subscribe("torch"))
				s.until("the other operator", func() bool {
					csv := &operatorsv1alpha1.ClusterServiceVersion{}
					err := s.Get(s.T.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "torch.v1"}, csv)
					return err == nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
				})
				s.DeleteAtEnd(&unstructured.Unstructured{Object: definition(group, "v1")})
				s.server.Serve(lamp(bringing(operator("lamp", 1, owning(group, "v1")), manifest(definition(group, "v1")))))
				s.Create(s.subscription())
			},
			words: []string{"lamps.owned.example.com", "torch.v1"},
		},
	}
}

func versionCases() []broken {
	return []broken{
		{
			reason: "the operator needs a newer Kubernetes",
			make: func(s *situation) {
				s.wants(lamp(operator("lamp", 1, func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.MinKubeVersion = "9.0.0" })))
			},
			words: []string{"ClusterServiceVersion NAMESPACE/lamp.v1: spec.minKubeVersion is not met", "9.0.0"},
		},
		{
			reason: "a definition that the operator requires is missing",
			make: func(s *situation) {
				s.DeleteAtEnd(&unstructured.Unstructured{Object: definition("needed.example.com", "v1")})
				s.wants(lamp(operator("lamp", 1, requiring("needed.example.com", "v1"))))
			},
			words: []string{"ClusterServiceVersion NAMESPACE/lamp.v1 needs CustomResourceDefinition lamps.needed.example.com", "not present"},
			fix: func(s *situation) {
				s.Create(&unstructured.Unstructured{Object: definition("needed.example.com", "v1")})
			},
		},
		{
			reason: "the operator does not let itself be upgraded",
			make: func(s *situation) {
				s.wants(lamp(operator("lamp", 1)))
				s.installed("lamp.v1")
				key := client.ObjectKey{Namespace: s.Namespace, Name: "lamp.v1"}
				s.until("an OperatorCondition", func() bool { return s.Get(s.T.Context(), key, &operatorsv2.OperatorCondition{}) == nil })
				s.patch(&operatorsv2.OperatorCondition{}, "lamp.v1", `{"spec":{"conditions":[{"type":"Upgradeable","status":"False","reason":"Migrating","message":"the wick is being changed","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
				s.server.Serve(lamp(operator("lamp", 1), operator("lamp", 2)))
			},
			words: []string{"waiting: OperatorCondition NAMESPACE/lamp.v1 blocks the upgrade of lamp.v1 to lamp.v2", "the wick is being changed"}, fine: true,
			fix: func(s *situation) {
				s.patch(&operatorsv2.OperatorCondition{}, "lamp.v1", `{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"Checked","message":"upgrade it"}]}}`)
				s.installed("lamp.v2")
			},
		},
		{
			reason: "an annotation for the Deployments cannot be read",
			make: func(s *situation) {
				s.server.Serve(lamp(operator("lamp", 1)))
				s.Create(s.group(), s.at(), s.subscription(func(sub *operatorsv1alpha1.Subscription) {
					sub.Annotations = map[string]string{"chandlery.dev/config": `{"replicas": "many"}`}
				}))
			},
			words: []string{"Subscription NAMESPACE/lamp", "chandlery.dev/config"},
			fix: func(s *situation) {
				s.patch(&operatorsv1alpha1.Subscription{}, "lamp", `{"metadata":{"annotations":{"chandlery.dev/config":null}}}`)
			},
		},
		{
			reason: "uninstalling waits for a custom resource that a finalizer holds",
			make: func(s *situation) {
				const group = "held.example.com"
				s.server.Serve(lamp(bringing(operator("lamp", 1, owning(group, "v1"), func(csv *operatorsv1alpha1.ClusterServiceVersion) {
					csv.Spec.Cleanup.Enabled = true
				}), manifest(definition(group, "v1")))))
				s.Create(s.group(), s.at(), s.subscription(func(sub *operatorsv1alpha1.Subscription) {
					sub.Annotations = map[string]string{"chandlery.dev/on-delete": "uninstall"}
				}))
				s.installed("lamp.v1")
				held := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Lamp", "metadata": map[string]any{
					"name": "eternal", "finalizers": []any{"example.com/never"},
				}}}
				s.Create(held)
				s.DeleteAtEnd(&unstructured.Unstructured{Object: definition(group, "v1")})
				sub := s.subscription()
				sub.Namespace = s.Namespace
				s.until("the finalizer of the uninstallation", func() bool {
					now := &operatorsv1alpha1.Subscription{}
					return s.Get(s.T.Context(), client.ObjectKeyFromObject(sub), now) == nil && len(now.Finalizers) > 0
				})
				if err := s.Delete(s.T.Context(), sub); err != nil {
					s.T.Fatal(err)
				}
				s.T.Cleanup(func() { s.letGo(held) })
			},
			words: []string{"Lamp NAMESPACE/eternal has finalizers", "lamp.v1"},
		},
	}
}

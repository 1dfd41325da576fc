package nodes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/programs"
)

// definition returns a CustomResourceDefinition. Its group is unique in the cluster.
func definition(c *compattest.Cluster, plural string) object {
	group := c.Namespace + ".example.com"
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": plural + "." + group},
		"spec": object{
			"group": group, "scope": "Namespaced", "names": object{"plural": plural, "singular": "lamp", "kind": "Lamp", "listKind": "LampList"},
			"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}}},
		},
	}
}

// key returns an entry of spec.customresourcedefinitions for the definition with plural lamps.
func key(c *compattest.Cluster) object {
	return object{"name": "lamps." + c.Namespace + ".example.com", "version": "v1", "kind": "Lamp"}
}

// served checks that lamp.v1.1.0 of catalog goods can be installed from a package.
func served(c *compattest.Cluster, name, channel string) {
	c.Subscribe("goods", name, func(s *operatorsv1alpha1.Subscription) {
		s.Name, s.Spec.Channel = "lamp", channel
	})
	installedWithin(c, time.Minute, "lamp.v1.1.0")
}

// begin serves a catalog with a change.
func begin(t *testing.T, c *compattest.Cluster, change func(*content)) *operatorsv1alpha1.CatalogSource {
	t.Helper()
	good := lamp(t, c)
	change(&good)
	_, source := serve(t, c, "goods", good.data(t))
	return source
}

// create creates a catalog without waiting.
func create(t *testing.T, c *compattest.Cluster, data map[string]string) *operatorsv1alpha1.CatalogSource {
	t.Helper()
	source := internal(c, "goods", "goods")
	c.Make(configMap(c, "goods", data), source)
	return source
}

// TestNamesInConfigMaps checks catalogs from ConfigMaps with unusual names of packages and channels.
func TestNamesInConfigMaps(t *testing.T) {
	t.Parallel()
	for id, tt := range map[string]struct {
		pkg, channel string
	}{
		"C1-LampShade": {"LampShade", "main"}, "C1-underscore": {"lamp_shade", "main"}, "C1-dot": {"lamp.shade", "main"},
		"C1-upper": {"Lamp-x", "main"}, "C1-long": {strings.Repeat("a", 70), "main"}, "C1-digit": {"9", "main"},
		"C2-space": {"lamp", "Main Line"}, "C2-slash": {"lamp", "v1/beta"},
	} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			source := begin(t, c, func(in *content) {
				in.packages = []any{pkg(tt.pkg, tt.channel, channel(tt.channel, "lamp.v1.1.0"))}
			})
			served(c, tt.pkg, tt.channel)
			odd := tt.pkg
			if tt.pkg == "lamp" {
				odd = tt.channel
			}
			warnings(c, source, 1, strconv.Quote(odd))
		})
	}
}

// TestDependenciesInConfigMaps checks dependencies between packages from ConfigMaps.
func TestDependenciesInConfigMaps(t *testing.T) {
	t.Parallel()
	// dependent adds package desk, which needs an API of lamp.v1.1.0.
	dependent := func(t *testing.T, c *compattest.Cluster, name string) func(*content) {
		t.Helper()
		return func(in *content) {
			head, _ := in.versions[1].(object)
			specOf(head)["customresourcedefinitions"] = object{"owned": []any{key(c)}}
			desk := version(t, c, "desk.v1.0.0", "1.0.0", "")
			specOf(desk)["customresourcedefinitions"] = object{"required": []any{key(c)}}
			in.definitions, in.versions = []any{definition(c, "lamps")}, append(in.versions, desk)
			in.packages = []any{pkg(name, "main", channel("main", "lamp.v1.1.0")), pkg("desk", "main", channel("main", "desk.v1.0.0"))}
		}
	}
	both := func(c *compattest.Cluster) {
		c.Subscribe("goods", "desk")
		installed(c, "lamp.v1.1.0")
		installed(c, "desk.v1.0.0")
	}
	compattest.Check(t, "C3", func(t *testing.T, c *compattest.Cluster) {
		begin(t, c, dependent(t, c, "lamp"))
		both(c)
		sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp-main-goods-" + c.Namespace}}
		if left := c.Read(sub); left != "" {
			t.Error(left)
		}
	})
	compattest.Check(t, "C4", func(t *testing.T, c *compattest.Cluster) {
		begin(t, c, dependent(t, c, "LampShade"))
		both(c)
		var list operatorsv1alpha1.SubscriptionList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		name := regexp.MustCompile("^lampshade-main-goods-" + c.Namespace + "-x[a-z0-9]+$")
		found := false
		for i := range list.Items {
			found = found || list.Items[i].Namespace == c.Namespace && list.Items[i].Spec.Package == "LampShade" && name.MatchString(list.Items[i].Name)
		}
		if !found {
			t.Errorf("the dependency has no Subscription %s", name)
		}
		var plans operatorsv1alpha1.InstallPlanList
		if err := c.List(t.Context(), &plans); err != nil {
			t.Fatal(err)
		}
		for i := range plans.Items {
			if p := &plans.Items[i]; p.Namespace == c.Namespace && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
				t.Errorf("InstallPlan %s is %s", p.Name, p.Status.Phase)
			}
		}
	})
}

// TestLabelsOfNamesInConfigMaps checks that names that no label can hold leave nothing to write.
func TestLabelsOfNamesInConfigMaps(t *testing.T) {
	t.Parallel()
	for id, name := range map[string]string{"C4b-upper": "LampShade", "C4b-space": "Lamp Shade"} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			source := begin(t, c, func(in *content) { in.packages = []any{pkg(name, "main", channel("main", "lamp.v1.1.0"))} })
			served(c, name, "main")
			warnings(c, source, 1)
			label := "operators.coreos.com/" + strings.ReplaceAll(name, " ", "-") + "." + c.Namespace
			csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1.1.0"}}
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp-v1-1-0"}}
			for _, o := range []client.Object{csv, deployment} {
				c.Eventually(compattest.Patience, func() string {
					if left := c.Read(o); left != "" {
						return left
					}
					if _, labelled := o.GetLabels()[label]; !labelled {
						return fmt.Sprintf("labels of %T: %v", o, o.GetLabels())
					}
					return ""
				})
			}
			var operators operatorsv1.OperatorList
			if err := c.List(t.Context(), &operators); err != nil {
				t.Fatal(err)
			}
			for i := range operators.Items {
				if contains(operators.Items[i].Name, c.Namespace) {
					t.Errorf("there is Operator %s", operators.Items[i].Name)
				}
			}
			sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp"}}
			pause.For(t.Context(), 5*time.Second)
			c.AtRest(5*time.Second, csv, sub, deployment)
		})
	}
}

// TestVersionsInConfigMaps checks packages, channels and versions from ConfigMaps.
func TestVersionsInConfigMaps(t *testing.T) {
	t.Parallel()
	// D16 is the same case by the ConfigMap.
	for _, id := range []string{"C5", "D16"} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			source := begin(t, c, func(in *content) { in.packages = append(in.packages, pkg("lamp", "", channel("next", "lamp.v1.1.0"))) })
			sub := c.Subscribe("goods", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Name, s.Spec.Channel = "old", "main" })
			unresolved(c, sub, "no operators found in channel main of package lamp in the catalog referenced by subscription old")
			if err := c.Delete(t.Context(), sub); err != nil {
				t.Fatal(err)
			}
			served(c, "lamp", "next")
			warnings(c, source, 1, `"lamp"`)
		})
	}
	compattest.Check(t, "C6", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.packages = append(in.packages, in.packages[0]) })
		served(c, "lamp", "main")
		warnings(c, source, 1)
	})
	compattest.Check(t, "C7-other", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.packages = []any{pkg("lamp", "other", channel("main", "lamp.v1.1.0"))} })
		served(c, "lamp", "")
		warnings(c, source, 1)
	})
	compattest.Check(t, "C7-empty", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.packages = []any{pkg("lamp", "", channel("main", "lamp.v1.1.0"))} })
		served(c, "lamp", "")
		warnings(c, source, 0)
	})
	compattest.Check(t, "C8", func(t *testing.T, c *compattest.Cluster) {
		in := lamp(t, c)
		in.packages = []any{pkg("lamp", "other", channel("main", "lamp.v1.1.0"), channel("old", "lamp.v1.0.0"))}
		refused(c, create(t, c, in.data(t)), "lamp", "main", "old")
	})
	compattest.Check(t, "C9", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.versions[1] = version(t, c, "lamp.v1.1.0", "1.0.0", "lamp.v1.0.0") })
		c.Subscribe("goods", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.StartingCSV = "lamp.v1.0.0" })
		installed(c, "lamp.v1.1.0")
		warnings(c, source, 1)
	})
	for id, tt := range map[string]struct {
		number, versions string
		inRange          bool
	}{
		"C10-none": {"", ">=0.0.0", false}, "C10-text": {"latest", ">=0.0.0", false},
		"C10-major": {"1", ">=1.0.0 <1.0.1", true}, "C10-minor": {"1.0", ">=1.0.0 <1.0.1", true}, "C10-v": {"v1.0.0", ">=1.0.0 <1.0.1", true},
	} {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			source := begin(t, c, func(in *content) {
				desk := annotate(version(t, c, "desk.v1.0.0", "1.0.0", ""), "olm.properties",
					`[{"type":"olm.package.required","value":{"packageName":"lamp","versionRange":"`+tt.versions+`"}}]`)
				in.versions = []any{version(t, c, "lamp.v1.0.0", tt.number, ""), desk}
				in.packages = []any{pkg("lamp", "main", channel("main", "lamp.v1.0.0")), pkg("desk", "main", channel("main", "desk.v1.0.0"))}
			})
			desk := c.Subscribe("goods", "desk")
			if tt.inRange {
				completed(t, c, desk, "desk.v1.0.0", "lamp.v1.0.0")
			} else {
				unresolved(c, desk, "desk.v1.0.0")
				// It is chosen, but the API cannot decode a ClusterServiceVersion with this version.
				unusable(c, c.Subscribe("goods", "lamp"), "lamp.v1.0.0")
			}
			warnings(c, source, 1)
		})
	}
}

// TestDefinitionsInConfigMaps checks CustomResourceDefinitions and their ClusterServiceVersions from ConfigMaps.
func TestDefinitionsInConfigMaps(t *testing.T) {
	t.Parallel()
	bad := object{"metadata": object{"name": "bad.example.com"}, "spec": object{"group": "example.com"}}
	compattest.Check(t, "C11", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.definitions = []any{bad} })
		served(c, "lamp", "main")
		warnings(c, source, 1)
	})
	owning := func(in *content, keys ...any) {
		head, _ := in.versions[1].(object)
		specOf(head)["customresourcedefinitions"] = object{"owned": keys}
	}
	compattest.Check(t, "C12", func(t *testing.T, c *compattest.Cluster) {
		in := lamp(t, c)
		in.definitions = []any{bad}
		owning(&in, object{"name": "bad.example.com", "version": "v1", "kind": "Bad"})
		refused(c, create(t, c, in.data(t)), "bad.example.com", "customResourceDefinitions[0]")
	})
	compattest.Check(t, "C13", func(t *testing.T, c *compattest.Cluster) {
		warnings(c, begin(t, c, func(in *content) { owning(in, key(c)) }), 1)
	})
	compattest.Check(t, "C14", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.versions[0] = version(t, c, "lamp.v1.0.0", "1.0.0", "lamp.v0.9.0") })
		served(c, "lamp", "main")
		warnings(c, source, 1)
	})
	compattest.Check(t, "C15", func(t *testing.T, c *compattest.Cluster) {
		old := content{versions: []any{version(t, c, "lamp.v0.9.0", "0.9.0", "")}, packages: []any{pkg("lamp", "main", channel("main", "lamp.v0.9.0"))}}
		held, source := serve(t, c, "goods", old.data(t))
		sub := c.Subscribe("goods", "lamp")
		installed(c, "lamp.v0.9.0")
		current(c, sub, "lamp.v0.9.0", compattest.Patience)
		in := lamp(t, c)
		head, _ := in.versions[1].(object)
		specOf(head)["skips"] = []any{"lamp.v0.9.0"}
		change(t, c, held, source, in.data(t))
		ready(c, source, compattest.Patience)
		installed(c, "lamp.v1.1.0")
		// lamp.v1.0.0 is not installed in between.
		completed(t, c, sub, "lamp.v1.1.0")
		var plans operatorsv1alpha1.InstallPlanList
		if err := c.List(t.Context(), &plans, client.InNamespace(c.Namespace)); err != nil || len(plans.Items) != 2 {
			t.Errorf("there are %d InstallPlans, want 2 (%v)", len(plans.Items), err)
		}
		warnings(c, source, 0)
	})
	compattest.Check(t, "C16", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.versions = append(in.versions, version(t, c, "lamp.v9.0.0", "9.0.0", "")) })
		served(c, "lamp", "main")
		if found := slices.Sorted(maps.Keys(bundlesOf(t, c, "goods"))); !slices.Equal(found, []string{"lamp.v1.0.0", "lamp.v1.1.0"}) {
			t.Errorf("%v are served", found)
		}
		warnings(c, source, 1, `"lamp.v9.0.0"`)
	})
	compattest.Check(t, "C17", func(t *testing.T, c *compattest.Cluster) {
		in := lamp(t, c)
		in.definitions = []any{definition(c, "lamps"), definition(c, "lamps")}
		refused(c, create(t, c, in.data(t)), "customResourceDefinitions[0]", "customResourceDefinitions[1]")
	})
	compattest.Check(t, "C18", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) {
			in.definitions = []any{definition(c, "others"), definition(c, "lamps")}
			owning(in, key(c))
		})
		served(c, "lamp", "main")
		warnings(c, source, 1)
		if left := c.Read(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps." + c.Namespace + ".example.com"}}); left != "" {
			t.Error(left)
		}
	})
	compattest.Check(t, "C19", func(t *testing.T, c *compattest.Cluster) {
		in := lamp(t, c)
		in.versions = append(in.versions, in.versions[0])
		refused(c, create(t, c, in.data(t)), "lamp.v1.0.0")
	})
}

// TestIncompleteConfigMaps checks ConfigMaps with missing, repeated or unknown parts.
func TestIncompleteConfigMaps(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "C20", func(t *testing.T, c *compattest.Cluster) {
		data := lamp(t, c).data(t)
		data[keyDefinitions] = ""
		_, source := serve(t, c, "goods", data)
		served(c, "lamp", "main")
		warnings(c, source, 0)
	})
	compattest.Check(t, "C21", func(t *testing.T, c *compattest.Cluster) {
		refused(c, create(t, c, map[string]string{keyVersions: lamp(t, c).data(t)[keyVersions]}), keyDefinitions, keyPackages)
	})
	compattest.Check(t, "C22", func(t *testing.T, c *compattest.Cluster) {
		_, source := serve(t, c, "goods", content{}.data(t))
		unresolved(c, c.Subscribe("goods", "lamp"), "no operators found from catalog goods in namespace "+c.Namespace+" referenced by subscription lamp, "+
			"no operators found in package lamp in the catalog referenced by subscription lamp")
		warnings(c, source, 1)
	})
	compattest.Check(t, "C23", func(t *testing.T, c *compattest.Cluster) {
		data := lamp(t, c).data(t)
		data[keyVersions] = strings.Replace(data[keyVersions], `"version":"1.1.0"`, `"version":"0.1.0","version":"1.1.0"`, 1)
		_, source := serve(t, c, "goods", data)
		served(c, "lamp", "main")
		csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp.v1.1.0"}}
		if left := c.Read(csv); left != "" || csv.Spec.Version.String() != "1.1.0" {
			t.Errorf("version %s %s", csv.Spec.Version, left)
		}
		warnings(c, source, 1, keyVersions+"[1]: spec.version ")
	})
	compattest.Check(t, "C24", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) {
			head, _ := in.versions[1].(object)
			specOf(head)["shade"] = "green"
		})
		served(c, "lamp", "main")
		if text := bundlesOf(t, c, "goods")["lamp.v1.1.0"]; !contains(text, `"shade":"green"`) {
			t.Errorf("served is %s", text)
		}
		warnings(c, source, 0)
		plan := completed(t, c, &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "lamp"}}, "lamp.v1.1.0")
		c.Eventually(compattest.Patience, func() string {
			for _, e := range eventsOf(c, plan, "AppliedWithWarnings") {
				if contains(e.Message, `unknown field "spec.shade"`) {
					return ""
				}
			}
			return "no Event of the InstallPlan names the field"
		})
	})
}

// TestPropertiesInConfigMaps checks properties of ClusterServiceVersions from ConfigMaps, and restarts with warnings.
func TestPropertiesInConfigMaps(t *testing.T) {
	t.Parallel()
	annotated := func(in *content, text string) {
		head, _ := in.versions[1].(object)
		annotate(head, "olm.properties", text)
	}
	compattest.Check(t, "C25", func(t *testing.T, c *compattest.Cluster) {
		in := lamp(t, c)
		annotated(&in, "nonsense")
		refused(c, create(t, c, in.data(t)), "lamp.v1.1.0")
	})
	compattest.Check(t, "C26", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { annotated(in, `[{"type":"olm.wish.required","value":{"a":1}}]`) })
		served(c, "lamp", "main")
		warnings(c, source, 1)
	})
	compattest.Check(t, "C27", func(t *testing.T, c *compattest.Cluster) {
		data := lamp(t, c).data(t)
		delete(data, keyPackages)
		source := create(t, c, data)
		refused(c, source, keyPackages)
		in := lamp(t, c)
		in.packages = []any{pkg("LampShade", "main", channel("main", "lamp.v1.1.0"))}
		change(t, c, configMap(c, "goods", nil), source, in.data(t))
		ready(c, source, compattest.Patience)
		served(c, "LampShade", "main")
		warnings(c, source, 1)
	})
	compattest.Check(t, "C31", func(t *testing.T, c *compattest.Cluster) {
		source := begin(t, c, func(in *content) { in.packages = []any{pkg("LampShade", "main", channel("main", "lamp.v1.1.0"))} })
		replica := pods(t, c, "goods")[0]
		before := connected(source)
		if err := c.Delete(t.Context(), &replica); err != nil {
			t.Fatal(err)
		}
		moves(c, source, before, compattest.Patience)
		served(c, "LampShade", "main")
	})
}

// testWarningAtRest leaves a catalog with a warning alone, and restarts the manager.
func testWarningAtRest(t *testing.T, c *compattest.Cluster, reach func(int)) {
	t.Helper()
	in := lamp(t, c)
	in.packages = []any{pkg("LampShade", "main", channel("main", "lamp.v1.1.0"))}
	_, source := serve(t, c, "goods", in.data(t))
	warnings(c, source, 1)
	settled(c, source)
	pause.For(t.Context(), 2*time.Second)
	before := eventsOf(c, source, "CatalogWarnings")
	c.AtRest(c.Rest(), source)
	connectedAt := connected(source)
	reach(restarted)
	moves(c, source, connectedAt, compattest.Patience)
	pause.For(t.Context(), 10*time.Second)
	warnings(c, source, 1)
	// A repeated Event is another one, or a write of the same one.
	if after := eventsOf(c, source, "CatalogWarnings"); len(after) != 1 || after[0].ResourceVersion != before[0].ResourceVersion {
		t.Errorf("the Events are %+v, before %+v", after, before)
	}
}

// unusable waits until a Subscription states that it chose a version whose bundle cannot be used.
func unusable(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, version string) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		failed := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionBundleUnpackFailed)
		if failed.Status != "True" || !contains(failed.Message, "bundle "+version+" ") {
			return "the conditions are " + c.Manifest(sub.Status.Conditions)
		}
		return ""
	})
}

// planned waits until a Subscription has an InstallPlan, and checks for which versions it is.
func planned(t *testing.T, c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, versions ...string) *operatorsv1alpha1.InstallPlan {
	t.Helper()
	plan := &operatorsv1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace}}
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if sub.Status.InstallPlanRef == nil {
			return fmt.Sprintf("no InstallPlan: %+v", sub.Status.Conditions)
		}
		plan.Name = sub.Status.InstallPlanRef.Name
		return c.Read(plan)
	})
	if found := slices.Sorted(slices.Values(plan.Spec.ClusterServiceVersionNames)); !slices.Equal(found, versions) {
		t.Errorf("the InstallPlan is for %v, want %v", found, versions)
	}
	return plan
}

// completed is planned for an InstallPlan that becomes Complete.
func completed(t *testing.T, c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, versions ...string) *operatorsv1alpha1.InstallPlan {
	t.Helper()
	plan := planned(t, c, sub, versions...)
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(plan); left != "" || plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			return fmt.Sprintf("the InstallPlan is %s: %+v %s", plan.Status.Phase, plan.Status.Conditions, left)
		}
		return ""
	})
	return plan
}

// unresolved waits until a Subscription has ResolutionFailed with a text.
func unresolved(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, text string) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		condition := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionResolutionFailed)
		if !contains(condition.Message, text) {
			return fmt.Sprintf("ResolutionFailed is %+v", condition)
		}
		return ""
	})
}

// TestValidate checks the command that judges catalogs.
func TestValidate(t *testing.T) {
	t.Parallel()
	validate := func(t *testing.T, files map[string]string, flags ...string) (output string, code int) {
		t.Helper()
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), programs.Registry(t), append([]string{"validate", dir, "-o", "json"}, flags...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	compattest.Check(t, "C29", func(t *testing.T, c *compattest.Cluster) {
		in := lamp(t, c)
		in.packages = []any{pkg("LampShade", "main", channel("main", "lamp.v1.1.0"))}
		out, code := validate(t, in.data(t))
		var reports []struct {
			Problems []struct{ Severity, File string }
		}
		if err := json.Unmarshal([]byte(out), &reports); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, out)
		}
		if found := reports[0].Problems; len(found) != 1 || found[0].Severity != "warning" || !strings.HasSuffix(found[0].File, "/"+keyPackages+"[0]") {
			t.Errorf("the problems are %+v", found)
		}
		if out, code := validate(t, in.data(t), "--strict"); code != 1 {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	compattest.Check(t, "C30", func(t *testing.T, _ *compattest.Cluster) {
		bundle := func(name, version string) string {
			return `{"schema":"olm.bundle","name":"` + name + `","package":"PKG","image":"a.example/b:1","properties":[{"type":"olm.package","value":{"packageName":"PKG","version":"` + version + `"}}]}`
		}
		head := `{"schema":"olm.package","name":"PKG","defaultChannel":"main"}`
		one := `{"schema":"olm.channel","package":"PKG","name":"main","entries":[{"name":"a"}]}`
		for fault, text := range map[string]string{
			"C1":  strings.ReplaceAll(head+one+bundle("a", "1.0.0"), "PKG", "LampShade"),
			"C9":  strings.ReplaceAll(head+`{"schema":"olm.channel","package":"PKG","name":"main","entries":[{"name":"a","replaces":"b"},{"name":"b"}]}`+bundle("a", "1.0.0")+bundle("b", "1.0.0"), "PKG", "lamp"),
			"C16": strings.ReplaceAll(head+one+bundle("a", "1.0.0")+bundle("b", "2.0.0"), "PKG", "lamp"),
		} {
			if out, code := validate(t, map[string]string{"catalog.json": text}); code != 1 || !contains(out, `"severity": "error"`) {
				t.Errorf("%s: exit code %d: %s", fault, code, out)
			}
		}
	})
}

package nodes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registry "github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/nodes"
)

func TestMain(m *testing.M) { os.Exit(compattest.MainOnNodes(m)) }

// The keys of a ConfigMap with a catalog.
const (
	keyDefinitions = "customResourceDefinitions"
	keyVersions    = "clusterServiceVersions"
	keyPackages    = "packages"
)

// content is the content of a ConfigMap.
type content struct {
	definitions, versions, packages []any
}

func (c content) data(t *testing.T) map[string]string {
	t.Helper()
	data := map[string]string{}
	for key, list := range map[string][]any{keyDefinitions: c.definitions, keyVersions: c.versions, keyPackages: c.packages} {
		if list == nil {
			list = []any{}
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		data[key] = string(text)
	}
	return data
}

// object is a manifest.
type object = map[string]any

// version returns a ClusterServiceVersion for a ConfigMap.
func version(t *testing.T, c *compattest.Cluster, name, number, replaces string) object {
	t.Helper()
	var csv object
	if err := json.Unmarshal([]byte(c.Manifest(c.CSV(name))), &csv); err != nil {
		t.Fatal(err)
	}
	delete(csv, "status")
	spec := specOf(csv)
	spec["version"], spec["minKubeVersion"] = number, "1.0.0"
	if replaces != "" {
		spec["replaces"] = replaces
	}
	return csv
}

func specOf(o object) object {
	spec, _ := o["spec"].(object)
	return spec
}

func annotate(o object, key, value string) object {
	metadata, _ := o["metadata"].(object)
	metadata["annotations"] = object{key: value}
	return o
}

func channel(name, current string) object { return object{"name": name, "currentCSV": current} }

func pkg(name, defaultChannel string, channels ...any) object {
	return object{"packageName": name, "defaultChannel": defaultChannel, "channels": channels}
}

// lamp returns the good catalog: package lamp with channel main, and lamp.v1.1.0 that replaces lamp.v1.0.0.
func lamp(t *testing.T, c *compattest.Cluster) content {
	t.Helper()
	return content{
		versions: []any{version(t, c, "lamp.v1.0.0", "1.0.0", ""), version(t, c, "lamp.v1.1.0", "1.1.0", "lamp.v1.0.0")},
		packages: []any{pkg("lamp", "main", channel("main", "lamp.v1.1.0"))},
	}
}

// oldLamp returns the catalog with lamp.v1.0.0 only.
func oldLamp(t *testing.T, c *compattest.Cluster) content {
	t.Helper()
	return content{
		versions: []any{version(t, c, "lamp.v1.0.0", "1.0.0", "")},
		packages: []any{pkg("lamp", "main", channel("main", "lamp.v1.0.0"))},
	}
}

// configMap returns a ConfigMap with the label of OLM's objects. OLM gives the value false to a ConfigMap without it, and
// watches only those with true.
func configMap(c *compattest.Cluster, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Labels: map[string]string{api.LabelManaged: "true"}}, Data: data,
	}
}

// internal returns a CatalogSource of a ConfigMap.
func internal(c *compattest.Cluster, name, configMap string) *operatorsv1alpha1.CatalogSource {
	return &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeInternal, ConfigMap: configMap},
	}
}

// serve creates a ConfigMap and its CatalogSource, and waits until the catalog is READY.
func serve(t *testing.T, c *compattest.Cluster, name string, data map[string]string, change ...func(*corev1.ConfigMap)) (*corev1.ConfigMap, *operatorsv1alpha1.CatalogSource) {
	t.Helper()
	held, source := configMap(c, name, data), internal(c, name, name)
	for _, f := range change {
		f(held)
	}
	c.Make(held, source)
	ready(c, source, compattest.Patience)
	return held, source
}

// ready waits until a catalog is READY, and if it has a ConfigMap, until the newest version is served. It reads both
// fields at once, as clients do.
func ready(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, limit time.Duration) {
	c.Eventually(limit, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		return unready(source)
	})
}

func unready(source *operatorsv1alpha1.CatalogSource) string {
	state, ref := source.Status.GRPCConnectionState, source.Status.ConfigMapResource
	switch {
	case state == nil || state.LastObservedState != "READY" || state.LastConnectTime.IsZero():
		return fmt.Sprintf("the connection is %+v; %s; %+v", state, source.Status.Message, source.Status.Conditions)
	case source.Spec.ConfigMap != "" && (ref == nil || !state.LastConnectTime.After(ref.LastUpdateTime.Time)):
		return fmt.Sprintf("connected at %s, ConfigMap %+v; %s", state.LastConnectTime, ref, source.Status.Message)
	default:
		return ""
	}
}

// change replaces the data of a ConfigMap, and waits until the status of the CatalogSource names the new version.
func change(t *testing.T, c *compattest.Cluster, held *corev1.ConfigMap, source *operatorsv1alpha1.CatalogSource, data map[string]string) {
	t.Helper()
	update(t, c, held, func() { held.Data = data })
	seen(c, held, source)
}

// seen waits until the status of the CatalogSource names the version of the ConfigMap.
func seen(c *compattest.Cluster, held *corev1.ConfigMap, source *operatorsv1alpha1.CatalogSource) {
	c.Eventually(5*time.Second, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		if ref := source.Status.ConfigMapResource; ref == nil || ref.ResourceVersion != held.ResourceVersion || ref.UID != held.UID {
			return fmt.Sprintf("the reference is %+v, the ConfigMap has version %s", ref, held.ResourceVersion)
		}
		return ""
	})
}

// update changes an object. It reads the object again after a conflict.
func update(t *testing.T, c *compattest.Cluster, o client.Object, change func()) {
	t.Helper()
	c.Eventually(10*time.Second, func() string {
		if left := c.Read(o); left != "" {
			return left
		}
		change()
		if err := c.Update(t.Context(), o); err != nil {
			return err.Error()
		}
		return ""
	})
}

// installed waits until a version has succeeded.
func installed(c *compattest.Cluster, name string) { installedWithin(c, compattest.Patience, name) }

// installedWithin waits at most until a limit until a version has succeeded.
func installedWithin(c *compattest.Cluster, limit time.Duration, name string) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	c.Eventually(limit, func() string {
		if left := c.Read(csv); left != "" {
			return left
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s is %s: %s", name, csv.Status.Phase, csv.Status.Message)
		}
		return ""
	})
}

// current waits until a Subscription names a version.
func current(c *compattest.Cluster, sub *operatorsv1alpha1.Subscription, name string, limit time.Duration) {
	c.Eventually(limit, func() string {
		if left := c.Read(sub); left != "" {
			return left
		}
		if sub.Status.CurrentCSV != name {
			return fmt.Sprintf("currentCSV is %q, %s; %+v", sub.Status.CurrentCSV, sub.Status.State, sub.Status.Conditions)
		}
		return ""
	})
}

// warnings waits for the number of warnings of a catalog, and for one Event if there are some. The condition and the Event
// contain all texts.
func warnings(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, want int, texts ...string) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		condition := apimeta.FindStatusCondition(source.Status.Conditions, api.ConditionContentWarnings)
		if source.Status.Reason != "" || (condition != nil) != (want > 0) {
			return fmt.Sprintf("reason %q, message %q, condition %+v, want %d warnings", source.Status.Reason, source.Status.Message, condition, want)
		}
		if want == 0 {
			return ""
		}
		found := eventsOf(c, source, "CatalogWarnings")
		if len(found) != 1 || found[0].Type != corev1.EventTypeWarning {
			return fmt.Sprintf("the Events about warnings are %+v", found)
		}
		for _, text := range append(slices.Clone(texts), fmt.Sprintf("problems (%d)", want)) {
			if !contains(condition.Message, text) || !contains(found[0].Message, text) {
				return fmt.Sprintf("condition %q, Event %q, want %q", condition.Message, found[0].Message, text)
			}
		}
		return ""
	})
}

func eventsOf(c *compattest.Cluster, about client.Object, reason string) []corev1.Event {
	var found []corev1.Event
	for _, e := range c.Events(about) {
		if e.Reason == reason {
			found = append(found, e)
		}
	}
	return found
}

// refused waits until the content of a ConfigMap is refused with a message that contains all texts.
func refused(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, texts ...string) {
	refusedWithin(c, source, compattest.Patience, texts...)
}

// refusedWithin is refused with a limit.
func refusedWithin(c *compattest.Cluster, source *operatorsv1alpha1.CatalogSource, limit time.Duration, texts ...string) {
	c.Eventually(limit, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		if source.Status.Reason != operatorsv1alpha1.CatalogSourceConfigMapError {
			return fmt.Sprintf("reason %q, message %q", source.Status.Reason, source.Status.Message)
		}
		for _, text := range texts {
			if !contains(source.Status.Message, text) {
				return fmt.Sprintf("message %q, want %q", source.Status.Message, text)
			}
		}
		return ""
	})
}

// pods returns the pods of a catalog that are not being deleted.
func pods(t *testing.T, c *compattest.Cluster, catalog string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelCatalogSource: catalog}); err != nil {
		t.Fatal(err)
	}
	var found []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			found = append(found, list.Items[i])
		}
	}
	return found
}

func bed(t *testing.T) *nodes.Bed {
	t.Helper()
	return compattest.NodesOf(t)
}

// bundlesOf returns the ClusterServiceVersions that the pod of a catalog serves, by name. It skips the case if the tests did
// not start the nodes, because pods of other nodes may have addresses that the test cannot reach.
func bundlesOf(t *testing.T, c *compattest.Cluster, catalog string) map[string]string {
	t.Helper()
	bed(t)
	conn, err := grpc.NewClient(pods(t, c, catalog)[0].Status.PodIP+":50051", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := registry.NewRegistryClient(conn).ListBundles(t.Context(), &registry.ListBundlesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for {
		one, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[one.GetCsvName()] = one.GetCsvJson()
	}
}

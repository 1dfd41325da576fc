package explain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// hospital holds what all situations share.
type hospital struct {
	ward *ward
	// registry is the address of an image registry without TLS.
	registry string
}

func newHospital(t *testing.T) *hospital {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &hospital{ward: openWard(t, controlplane.Client(t)), registry: strings.TrimPrefix(server.URL, "http://")}
}

// push pushes an image to the registry and returns its reference.
func (h *hospital) push(t *testing.T, repository string) string {
	t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	text := h.registry + "/" + repository + ":1"
	ref, err := name.ParseReference(text, name.Insecure)
	if err == nil {
		err = remote.Write(ref, image, remote.WithContext(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// situation is one namespace with a problem of the Subscription lamp.
type situation struct {
	*hospital
	*testenv.World

	server *fakecatalog.Server
}

// newSituation creates a namespace with an OperatorGroup and an empty catalog, wares.
func (h *hospital) newSituation(t *testing.T) *situation {
	t.Helper()
	return &situation{hospital: h, World: testenv.New(t), server: fakecatalog.StartExtended(t)}
}

// patch changes an object of the namespace.
func (s *situation) patch(o client.Object, named, patch string) {
	s.T.Helper()
	o.SetNamespace(s.Namespace)
	o.SetName(named)
	if err := s.Patch(s.T.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.T.Fatalf("changing %T %s: %v", o, named, err)
	}
}

// until waits for a condition that the next step of a situation needs.
func (s *situation) until(what string, is func() bool) {
	s.T.Helper()
	testenv.Until(s.T, patience, what, func(context.Context) string {
		if is() {
			return ""
		}
		return "there is not " + what
	})
}

// installed waits until a version is installed.
func (s *situation) installed(csv string) {
	s.T.Helper()
	s.until(csv, func() bool {
		sub := &operatorsv1alpha1.Subscription{}
		err := s.Get(s.T.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "lamp"}, sub)
		return err == nil && sub.Status.InstalledCSV == csv && sub.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest
	})
}

// plan waits for the InstallPlan of the Subscription and returns its name.
func (s *situation) plan() string {
	s.T.Helper()
	sub := &operatorsv1alpha1.Subscription{}
	s.until("a plan", func() bool {
		err := s.Get(s.T.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "lamp"}, sub)
		return err == nil && sub.Status.InstallPlanRef != nil
	})
	return sub.Status.InstallPlanRef.Name
}

// group returns the OperatorGroup of the namespace.
func (s *situation) group(change ...func(*operatorsv1.OperatorGroup)) *operatorsv1.OperatorGroup {
	g := fixtures.OperatorGroup(s.Namespace, "group", s.Namespace)
	for _, c := range change {
		c(g)
	}
	return g
}

// source returns the CatalogSource wares.
func (s *situation) source(spec map[string]any) client.Object {
	u := catalogs.NewObject()
	u.SetName("wares")
	spec["sourceType"] = "grpc"
	u.Object["spec"] = spec
	return u
}

// at returns the CatalogSource of the situation's own server.
func (s *situation) at() client.Object {
	return s.source(map[string]any{"address": s.server.Address()})
}

// hosted returns a CatalogSource whose pods run on a node.
func (s *situation) hosted(image, node string) client.Object {
	return s.source(map[string]any{"image": image, "grpcPodConfig": map[string]any{
		"nodeSelector": map[string]any{corev1.LabelHostname: node}, "tolerations": []any{map[string]any{"key": wardName, "operator": "Exists"}},
		"securityContextConfig": "restricted",
	}})
}

// subscription returns the Subscription lamp.
func (s *situation) subscription(change ...func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
	return s.subscribe("lamp", change...)
}

func (s *situation) subscribe(pkg string, change ...func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
	sub := fixtures.Subscription(s.Namespace, pkg, pkg, "wares")
	sub.Spec.Channel = "stable"
	for _, c := range change {
		c(sub)
	}
	return sub
}

// wants creates the group, a catalog with some packages, and the Subscription.
func (s *situation) wants(packages ...fakecatalog.Package) {
	s.T.Helper()
	s.server.Serve(packages...)
	s.Create(s.group(), s.at(), s.subscription())
}

// lamp returns the package with versions. Each replaces the previous one.
func lamp(entries ...fakecatalog.Entry) fakecatalog.Package {
	return fakecatalog.Simple("lamp", entries...)
}

// operator returns the nth version of an operator.
func operator(pkg string, n int, change ...func(*operatorsv1alpha1.ClusterServiceVersion)) fakecatalog.Entry {
	number := fmt.Sprintf("%d.0.0", n)
	csv := fixtures.Operator("", pkg, fmt.Sprintf("%s.v%d", pkg, n))
	csv.TypeMeta = metav1.TypeMeta{APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind}
	csv.Spec.Version = version.OperatorVersion{Version: semver.MustParse(number)}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = new(int32(0))
	fixtures.PodSpec(csv).Containers[0].Image = "registry.example.com/" + pkg + ":" + number
	entry := fakecatalog.Entry{Name: csv.Name, Version: number}
	if n > 1 {
		entry.Replaces = fmt.Sprintf("%s.v%d", pkg, n-1)
		csv.Spec.Replaces = entry.Replaces
	}
	for _, c := range change {
		c(csv)
	}
	entry.Objects = []string{manifest(csv)}
	return entry
}

// bringing adds objects to a version.
func bringing(entry fakecatalog.Entry, objects ...string) fakecatalog.Entry {
	entry.Objects = append(entry.Objects, objects...)
	return entry
}

func manifest(o any) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// pods changes the pod template of a version and runs one replica on the ward.
func pods(change ...func(*corev1.PodSpec)) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		d := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
		d.Replicas = new(int32(1))
		spec := &d.Template.Spec
		spec.NodeSelector = map[string]string{corev1.LabelHostname: wardName}
		spec.Tolerations = []corev1.Toleration{{Key: wardName, Operator: corev1.TolerationOpExists}}
		for _, c := range change {
			c(spec)
		}
	}
}

// definition returns a CustomResourceDefinition of the kind Lamp in a group, with versions of which
// the first is stored.
func definition(group string, versions ...string) map[string]any {
	var list []any
	for i, v := range versions {
		list = append(list, map[string]any{"name": v, "served": true, "storage": i == 0, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}})
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "lamps." + group},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "versions": list, "names": map[string]any{"kind": "Lamp", "listKind": "LampList", "plural": "lamps", "singular": "lamp"}},
	}
}

func owning(group, v string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{Name: "lamps." + group, Version: v, Kind: "Lamp"})
	}
}

func requiring(group, v string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Spec.CustomResourceDefinitions.Required = append(csv.Spec.CustomResourceDefinitions.Required, operatorsv1alpha1.CRDDescription{Name: "lamps." + group, Version: v, Kind: "Lamp"})
	}
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

package migration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// object returns an object with a kind, NAMESPACE/NAME and further fields by path.
func object(kind, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	namespace, name, _ := strings.Cut(name, "/")
	o.SetNamespace(namespace)
	o.SetName(name)
	for path, value := range fields {
		if err := unstructured.SetNestedField(o.Object, value, strings.Split(path, "|")...); err != nil {
			panic(err)
		}
	}
	return o
}

// by adds a managed fields entry of a manager to an object.
func by(o *unstructured.Unstructured, manager, fields string) *unstructured.Unstructured {
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", FieldsV1: &metav1.FieldsV1{}}
	entry.FieldsV1.SetRawBytes([]byte(fields))
	o.SetManagedFields(append(o.GetManagedFields(), entry))
	return o
}

func ownedBy(o *unstructured.Unstructured, kind, name string, uid types.UID) *unstructured.Unstructured {
	o.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Name: name, UID: uid}})
	return o
}

// hashFields is the managed fields of a manager that writes the annotation with the hash of an object.
const hashFields = `{"f:metadata":{"f:annotations":{"f:chandlery.dev/applied-hash":{}}}}`

// applied adds a managed fields entry of a supervisor to an object.
func applied(o *unstructured.Unstructured) *unstructured.Unstructured {
	return by(o, "chandlery-supervisor", hashFields)
}

// restorationCase is recorded and live objects, and the operations that restore the recorded ones.
type restorationCase struct {
	reason   string
	recorded []*unstructured.Unstructured
	live     []*unstructured.Unstructured
	want     []string
}

// restorationsOfCatalogs has the objects that serve a catalog.
func restorationsOfCatalogs() []restorationCase {
	source := object("CatalogSource", "olm/shop", map[string]any{"metadata|uid": "s1"})
	service := func(colour string) *unstructured.Unstructured {
		return ownedBy(object("Service", "olm/shop", map[string]any{"spec|colour": colour}), "CatalogSource", "shop", "s1")
	}
	return []restorationCase{
		{"as it was", []*unstructured.Unstructured{service("red")}, []*unstructured.Unstructured{source, applied(service("red"))}, nil},
		{"changed by us", []*unstructured.Unstructured{service("red")}, []*unstructured.Unstructured{source, applied(service("blue"))}, []string{"Restore Service olm/shop"}},
		{"changed by another client", []*unstructured.Unstructured{service("red")}, []*unstructured.Unstructured{source, by(service("blue"), "kubectl-edit", hashFields)}, nil},
		{"gone", []*unstructured.Unstructured{service("red")}, []*unstructured.Unstructured{source}, []string{"Recreate Service olm/shop"}},
		{"gone with its catalog", []*unstructured.Unstructured{service("red")}, nil, nil},
		{
			"gone with its catalog, and there is another of the name",
			[]*unstructured.Unstructured{service("red")},
			[]*unstructured.Unstructured{object("CatalogSource", "olm/shop", map[string]any{"metadata|uid": "s2"})},
			nil,
		},
		{
			"pods come before what leads to them, and after what they run as",
			[]*unstructured.Unstructured{
				service("red"), ownedBy(object("Pod", "olm/shop-x", nil), "CatalogSource", "shop", "s1"), ownedBy(object("ServiceAccount", "olm/shop", nil), "CatalogSource", "shop", "s1"),
			},
			[]*unstructured.Unstructured{source},
			[]string{"Recreate ServiceAccount olm/shop", "Recreate Pod olm/shop-x", "Recreate Service olm/shop"},
		},
		{
			"a Deployment of a catalog", nil,
			[]*unstructured.Unstructured{source, ownedBy(object("Deployment", "olm/shop", map[string]any{"metadata|labels": map[string]any{labelManagedBy: managedBy}}), "CatalogSource", "shop", "s1")},
			[]string{"Delete Deployment olm/shop"},
		},
		{
			"a Deployment of somebody else", nil,
			[]*unstructured.Unstructured{source, ownedBy(object("Deployment", "olm/shop", nil), "CatalogSource", "shop", "s1")},
			nil,
		},
	}
}

// restorationsOfBindings has the bindings of webhooks and APIs.
func restorationsOfBindings() []restorationCase {
	version := object("ClusterServiceVersion", "lamps/lamp.v1", map[string]any{"metadata|uid": "v1"})
	binding := func(name string) *unstructured.Unstructured {
		return object("ClusterRoleBinding", "/"+name, map[string]any{
			"subjects":        []any{"lamp"},
			"metadata|labels": map[string]any{"olm.owner": "lamp.v1", "olm.owner.namespace": "lamps", "olm.owner.kind": "ClusterServiceVersion"},
		})
	}
	return []restorationCase{
		{
			"a binding in place of another",
			[]*unstructured.Unstructured{binding("lamp-service-system:auth-delegator")},
			[]*unstructured.Unstructured{version, applied(binding("lamp-service.lamps-system:auth-delegator"))},
			[]string{"Recreate ClusterRoleBinding lamp-service-system:auth-delegator", "Delete ClusterRoleBinding lamp-service.lamps-system:auth-delegator"},
		},
		{
			"a binding of an operator that came later stays: it needs it", nil,
			[]*unstructured.Unstructured{version, by(binding("lamp-service.lamps-system:auth-delegator"), "chandlery-supervisor", `{}`)},
			nil,
		},
	}
}

// restorationsOfMetadata has annotations and finalizers that OLM does not know.
func restorationsOfMetadata() []restorationCase {
	return []restorationCase{
		{
			"marks of ours", nil,
			[]*unstructured.Unstructured{applied(object("Secret", "lamps/cert", map[string]any{"metadata|annotations": map[string]any{"chandlery.dev/applied-hash": "1"}}))},
			[]string{"RemoveLabels Secret lamps/cert"},
		},
		{
			"a finalizer of ours, which OLM would not remove", nil,
			[]*unstructured.Unstructured{object("Subscription", "lamps/lamp", map[string]any{"metadata|finalizers": []any{"chandlery.dev/uninstall", "a/b"}})},
			[]string{"RemoveLabels Subscription lamps/lamp"},
		},
		{
			"the same on what is being deleted", nil,
			[]*unstructured.Unstructured{object("Subscription", "lamps/lamp", map[string]any{
				"metadata|finalizers": []any{"chandlery.dev/uninstall"}, "metadata|deletionTimestamp": "2026-11-29T00:00:00Z",
			})},
			[]string{"RemoveLabels Subscription lamps/lamp"},
		},
		{
			"marks of ours on what another version has taken over",
			[]*unstructured.Unstructured{ownedBy(object("Role", "lamps/cert", nil), "ClusterServiceVersion", "lamp.v0", "v0")},
			[]*unstructured.Unstructured{applied(object("Role", "lamps/cert", map[string]any{"metadata|annotations": map[string]any{"chandlery.dev/applied-hash": "1"}}))},
			[]string{"RemoveLabels Role lamps/cert"},
		},
		{
			"marks that people made", nil,
			[]*unstructured.Unstructured{applied(object("Subscription", "lamps/lamp", map[string]any{"metadata|annotations": map[string]any{"chandlery.dev/pin": "lamp.v1"}}))},
			nil,
		},
	}
}

func TestRestoration(t *testing.T) {
	for _, tt := range slices.Concat(restorationsOfCatalogs(), restorationsOfBindings(), restorationsOfMetadata()) {
		t.Run(tt.reason, func(t *testing.T) {
			checkRestoration(t, tt.recorded, tt.live, tt.want)
		})
	}
}

// checkRestoration checks the operations that restore recorded objects.
func checkRestoration(t *testing.T, recorded, objects []*unstructured.Unstructured, want []string) {
	t.Helper()
	live := objectsByKey{}
	live.add(objects)
	var got []string
	for _, o := range restoration(recorded, live) {
		got = append(got, fmt.Sprintf("%s %s %s", o.Verb, o.Kind, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

// TestRestorationOfConfigMaps checks that a handback deletes copies of the content of catalogs, and keeps the content, what
// OLM unpacked, and its own record.
func TestRestorationOfConfigMaps(t *testing.T) {
	const ours, fields = "chandlery-supervisor", `{"f:metadata":{"f:labels":{"f:chandlery.dev/takeover":{}}}}`
	source := object("CatalogSource", "olm/shop", map[string]any{"metadata|uid": "s1"})
	of := func(name string) *unstructured.Unstructured {
		return ownedBy(object("ConfigMap", "olm/"+name, nil), "CatalogSource", "shop", "s1")
	}
	record := object("ConfigMap", "home/chandlery-takeover", map[string]any{"metadata|labels": map[string]any{api.LabelRecord: "record"}})
	checkRestoration(t, nil, []*unstructured.Unstructured{
		source, by(of("shop-0123456789ab"), ours, `{"f:data":{},"f:immutable":{}}`), of("unpacked"),
		by(of("goods"), ours, `{"f:metadata":{"f:ownerReferences":{}}}`), object("ConfigMap", "olm/content", nil), by(record, ours, fields),
	}, []string{"Delete ConfigMap olm/shop-0123456789ab"})
}

// TestRestorationOfCatalogCertificates checks that a handback deletes the certificates with which catalogs served TLS.
func TestRestorationOfCatalogCertificates(t *testing.T) {
	source := object("CatalogSource", "olm/shop", map[string]any{"metadata|uid": "s1"})
	certificate := func(kind, name, manager string) *unstructured.Unstructured {
		return by(ownedBy(object(kind, "olm/"+name, nil), "CatalogSource", "shop", "s1"), manager, `{"f:data":{".":{},"f:ca.crt":{}}}`)
	}
	const ours = "chandlery-supervisor"
	checkRestoration(t, nil, []*unstructured.Unstructured{
		source, certificate("Secret", "shop-catalog-cert", ours), certificate("ConfigMap", "shop-catalog-ca", ours),
		certificate("Secret", "other", "kubectl"), certificate("ConfigMap", "other", "kubectl"), object("Secret", "olm/registry-credentials", nil),
	}, []string{"Delete ConfigMap olm/shop-catalog-ca", "Delete Secret olm/shop-catalog-cert"})
}

// TestRestorationOfConditions checks that a handback removes the conditions that OLM does not know, and no others.
func TestRestorationOfConditions(t *testing.T) {
	conditions := func(types ...string) map[string]any {
		var list []any
		for _, one := range types {
			list = append(list, map[string]any{"type": one, "status": "True"})
		}
		return map[string]any{"status": map[string]any{"conditions": list}}
	}
	source := object("CatalogSource", "olm/shop", conditions("Available", "ResolvedImage", "Progressing", "ConnectionSecured"))
	checkRestoration(t, nil, []*unstructured.Unstructured{
		source, object("CatalogSource", "olm/other", conditions("ResolvedImage")),
		object("Subscription", "lamps/lamp", conditions("CatalogSourcesUnhealthy", "Blocked")),
		object("ClusterServiceVersion", "lamps/lamp.v1", conditions("Available")),
	}, []string{"RemoveConditions CatalogSource olm/shop", "RemoveConditions Subscription lamps/lamp"})
	if diff := cmp.Diff(conditions("ResolvedImage")["status"], withoutConditions(source).Object["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	bare := withoutConditions(object("OLMConfig", "/cluster", conditions("IneffectiveSettings")))
	if _, found, _ := unstructured.NestedSlice(bare.Object, "status", "conditions"); found {
		t.Errorf("an empty list of conditions is left: %v", bare)
	}
}

// TestRestorationOfLabels checks that a handback removes labels that OLM does not set, if supervisors have set them.
func TestRestorationOfLabels(t *testing.T) {
	const ours = "chandlery-supervisor"
	labelled := func(kind, name, label, manager string) *unstructured.Unstructured {
		o := object(kind, "lamps/"+name, nil)
		o.SetLabels(map[string]string{label: "true"})
		return by(o, manager, `{"f:metadata":{"f:labels":{"f:`+label+`":{}}}}`)
	}
	checkRestoration(t, nil, []*unstructured.Unstructured{
		labelled("ClusterServiceVersion", "a", "olm.api.1244d9d7720c3ced", ours), labelled("ClusterServiceVersion", "b", "olm.api.1244d9d7720c3ced", "olm"),
		labelled("ClusterServiceVersion", "c", "olm.managed", ours),
		labelled("OperatorCondition", "d", "olm.managed", ours), labelled("Role", "e", "olm.managed", ours), labelled("Role", "f", "chandlery.dev/lifted", ours),
	}, []string{"RemoveLabels ClusterServiceVersion lamps/a", "RemoveLabels OperatorCondition lamps/d", "RemoveLabels Role lamps/f"})
}

// TestFollowsStart checks what is removed before OLM starts: the annotations that OLM would copy to pods.
func TestFollowsStart(t *testing.T) {
	olm := func(kind, name string) *unstructured.Unstructured {
		return object(kind, name, map[string]any{"apiVersion": "operators.coreos.com/v1alpha1"})
	}
	copied := olm("ClusterServiceVersion", "lamps/lamp.v1")
	copied.SetLabels(map[string]string{"olm.copiedFrom": "shop"})
	labels, annotations := apply.MetadataKeys{Labels: []string{"a"}}, apply.MetadataKeys{Labels: []string{"a"}, Annotations: []string{"b"}}
	for _, tt := range []struct {
		live    *unstructured.Unstructured
		keys    apply.MetadataKeys
		follows bool
	}{
		{olm("ClusterServiceVersion", "shop/lamp.v1"), annotations, false},
		{olm("ClusterServiceVersion", "shop/lamp.v1"), labels, true},
		{copied, annotations, true},
		{olm("CatalogSource", "olm/shop"), annotations, false},
		{olm("CatalogSource", "olm/shop"), labels, true},
		{olm("Subscription", "shop/lamp"), annotations, true},
		{olm("Subscription", "shop/lamp"), apply.MetadataKeys{Finalizers: []string{"c"}}, false},
		{object("Role", "shop/lamp", nil), annotations, true},
	} {
		if got := removal(tt.live, tt.keys).followsStart(); got != tt.follows {
			t.Errorf("%s %s, %v: got %v, want %v", tt.live.GetKind(), tt.live.GetName(), tt.keys, got, tt.follows)
		}
		if newOperation(RemoveConditions, tt.live, tt.live).followsStart() {
			t.Errorf("%s %s: its conditions are removed late", tt.live.GetKind(), tt.live.GetName())
		}
	}
	role := ownedBy(object("Role", "shop/lamp.v1", nil), "OperatorCondition", "lamp.v1", "c1")
	binding, plan := object("ClusterRoleBinding", "/lamp", nil), object("InstallPlan", "shop/install-a", nil)
	for _, tt := range []struct {
		op      Operation
		follows bool
	}{
		{newOperation(ReplaceContent, role, role), true},
		{newOperation(ReplaceContent, binding, binding), false},
		{newOperation(Delete, binding, nil), true},
		{newOperation(Delete, plan, nil), false},
		{newOperation(Create, nil, role), false},
	} {
		if got := tt.op.followsStart(); got != tt.follows {
			t.Errorf("%s %s: got %v, want %v", tt.op.Verb, tt.op.Kind, got, tt.follows)
		}
	}
}

// TestBatches checks which operations are done at the same time.
func TestBatches(t *testing.T) {
	var got []string
	for _, batch := range batches([]Operation{
		{Verb: Create, Kind: "Pod", Name: "c"},
		{Verb: Create, Kind: "ServiceAccount", Name: "a"},
		{Verb: Create, Kind: "ServiceAccount", Name: "b"},
		{Verb: ReplaceContent, Kind: "Role", Name: "d"},
		{Verb: Delete, Kind: "Service", Name: "e"},
		{Verb: RemoveMetadata, Kind: "CatalogSource", Name: "f"},
		{Verb: RemoveConditions, Kind: "CatalogSource", Name: "f"},
	}) {
		var names strings.Builder
		for _, op := range batch {
			names.WriteString(op.Name)
		}
		got = append(got, names.String())
	}
	if diff := cmp.Diff([]string{"ab", "cd", "ef", "f"}, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

// TestRestorationOfAuthorities checks that a handback keeps certificate authorities, whose certificates may have been renewed.
func TestRestorationOfAuthorities(t *testing.T) {
	const ours = "chandlery-supervisor"
	service := func(ca, colour string) *unstructured.Unstructured {
		return by(object("APIService", "/v1.hats", map[string]any{"spec|caBundle": ca, "spec|colour": colour}), ours, `{}`)
	}
	webhook := func(ca, colour string) *unstructured.Unstructured {
		hook := map[string]any{"name": "hats", "colour": colour, "clientConfig": map[string]any{"caBundle": ca}}
		return by(object("ValidatingWebhookConfiguration", "/hats", map[string]any{"webhooks": []any{hook}}), ours, `{}`)
	}
	recorded := []*unstructured.Unstructured{service("old", "red"), webhook("old", "red")}
	checkRestoration(t, recorded, []*unstructured.Unstructured{service("new", "red"), webhook("new", "red")}, nil)
	live := objectsByKey{}
	live.add([]*unstructured.Unstructured{service("new", "blue"), webhook("new", "blue")})
	operations := restoration(recorded, live)
	if len(operations) != 2 {
		t.Fatalf("operations %v", operations)
	}
	for _, op := range operations {
		text := fmt.Sprint(op.want.Object)
		if op.Verb != ReplaceContent || !strings.Contains(text, "new") || !strings.Contains(text, "red") {
			t.Errorf("%s %s: %s", op.Verb, op.Kind, text)
		}
	}
}

// TestRestorationOfPackages checks that a handback returns the APIService of OLM's package server with the authority of its own
// certificate.
func TestRestorationOfPackages(t *testing.T) {
	packages := func(ca, service string, labels map[string]any) *unstructured.Unstructured {
		return by(object("APIService", "/v1.packages.operators.coreos.com", map[string]any{
			"spec|caBundle": ca, "spec|service": map[string]any{"namespace": "olm", "name": service}, "metadata|labels": labels,
		}), "chandlery-supervisor", `{}`)
	}
	live := objectsByKey{}
	live.add([]*unstructured.Unstructured{packages("ours", "chandlery-packagemanifests-service", nil)})
	operations := restoration([]*unstructured.Unstructured{packages("theirs", "packageserver-service", map[string]any{"team": "olm"})}, live)
	if len(operations) != 1 || operations[0].Verb != ReplaceContent {
		t.Fatalf("operations %v, want one replacement", operations)
	}
	text := fmt.Sprint(operations[0].want.Object)
	for _, want := range []string{"theirs", "packageserver-service", "team"} {
		if !strings.Contains(text, want) {
			t.Errorf("the restored object lacks %s: %s", want, text)
		}
	}
	ours := packages("ours", "chandlery-packagemanifests-service", map[string]any{"app.kubernetes.io/part-of": "chandlery"})
	live = objectsByKey{}
	live.add([]*unstructured.Unstructured{ours})
	if operations := restoration(nil, live); len(operations) != 1 || operations[0].Verb != Delete {
		t.Errorf("operations without OLM's package server %v, want one deletion", operations)
	}
}

// TestRestorationOfPlans checks which InstallPlans are deleted: those that OLM does not continue.
func TestRestorationOfPlans(t *testing.T) {
	const ours = "chandlery-supervisor"
	plan := func(name, manager string, status map[string]any) *unstructured.Unstructured {
		return by(object("InstallPlan", "lamps/"+name, map[string]any{"status": status}), manager, `{}`)
	}
	checkRestoration(t, nil, []*unstructured.Unstructured{
		plan("new", ours, map[string]any{}),
		plan("planning", ours, map[string]any{"phase": "Planning", "bundleLookups": []any{"lamp.v1"}}),
		plan("stepped", ours, map[string]any{"phase": "Planning", "plan": []any{"lamp.v1"}}),
		plan("waits", ours, map[string]any{"phase": "RequiresApproval"}),
		plan("theirs", "catalog", map[string]any{"phase": "Planning"}),
	}, []string{"Delete InstallPlan lamps/new", "Delete InstallPlan lamps/planning"})
}

// TestPack packs objects of any size into chunks and reads them again.
func TestPack(t *testing.T) {
	var all []*unstructured.Unstructured
	for i := range 40 {
		all = append(all, object("Service", fmt.Sprintf("olm/s%d", i), map[string]any{"spec|text": strings.Repeat(strconv.Itoa(i*7919), 50)}))
	}
	for _, limit := range []int{1, 300, 1 << 20} {
		chunks, err := pack(all, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []*unstructured.Unstructured
		for _, chunk := range chunks {
			objects, err := decompress(chunk)
			if err != nil {
				t.Fatal(err)
			}
			if len(chunk) > limit && len(objects) > 1 {
				t.Errorf("limit %d: a chunk of %d bytes has %d objects", limit, len(chunk), len(objects))
			}
			got = append(got, objects...)
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("limit %d:\n%s", limit, diff)
		}
	}
}

// TestSnapshotOfPod checks that a recorded pod can be created again on another node.
func TestSnapshotOfPod(t *testing.T) {
	pod := object("Pod", "olm/shop-x", map[string]any{
		"status|phase": "Running", "metadata|resourceVersion": "7", "spec|nodeName": "node-1",
		"metadata|labels": map[string]any{"topology.kubernetes.io/zone": "a", "olm.catalogSource": "shop"},
		"spec|volumes":    []any{map[string]any{"name": "kube-api-access-x"}, map[string]any{"name": "mine"}},
		"spec|containers": []any{map[string]any{"name": "c", "volumeMounts": []any{map[string]any{"name": "kube-api-access-x"}, map[string]any{"name": "mine"}}}},
	})
	want := object("Pod", "olm/shop-x", map[string]any{
		"metadata|labels": map[string]any{"olm.catalogSource": "shop"},
		"spec|volumes":    []any{map[string]any{"name": "mine"}},
		"spec|containers": []any{map[string]any{"name": "c", "volumeMounts": []any{map[string]any{"name": "mine"}}}},
	})
	if diff := cmp.Diff(want, recordedForm(pod)); diff != "" {
		t.Error(diff)
	}
}

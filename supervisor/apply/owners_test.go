package apply

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	dataA = `{"f:data":{"f:a":{}}}`
	dataB = `{"f:data":{"f:b":{}}}`
	owned = `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
	e.FieldsV1.SetRawBytes([]byte(fields))
	return e
}

// TestOwnership checks which fields count as set by this package, for different managers of an object.
func TestOwnership(t *testing.T) {
	const update, applied = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	const both = `{"f:data":{"f:a":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`
	const labelled = `{"f:metadata":{"f:labels":{"f:olm.owner":{}}}}`
	const component = `{"f:metadata":{"f:labels":{"f:operators.coreos.com/lamp.lamps":{}}}}`
	const none = `{}`
	status, old := entry("olm", update, dataA), entry("olm", update, dataA)
	status.Subresource, old.APIVersion = "status", "v1beta1"
	older := entry(api.ManifestFieldManager, update, dataA)
	older.APIVersion = "v1beta1"
	const foreignOwner = `{"f:data":{"f:a":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"2\"}":{}}}}`
	subscribed := []metav1.OwnerReference{{Kind: "Subscription", Name: "lamp", UID: "2"}}
	for name, tt := range map[string]struct {
		kind string
		// unmarked objects have no ClusterServiceVersion among their owners.
		unmarked     bool
		labels       map[string]string
		owners       []metav1.OwnerReference
		entries      []metav1.ManagedFieldsEntry
		mine, others string
	}{
		"what was written":                 {entries: []metav1.ManagedFieldsEntry{entry(api.ManifestFieldManager, update, dataA)}, mine: dataA, others: none},
		"what an earlier release applied":  {entries: []metav1.ManagedFieldsEntry{entry(api.FieldManager, applied, dataA), entry(api.ManifestFieldManager, update, dataB)}, mine: `{"f:data":{"f:a":{},"f:b":{}}}`, others: none},
		"what the supervisor patched":      {entries: []metav1.ManagedFieldsEntry{entry(api.FieldManager, update, dataA)}, mine: none, others: dataA},
		"what was written in old versions": {entries: []metav1.ManagedFieldsEntry{older}, mine: none, others: none},
		"OLM's":                            {entries: []metav1.ManagedFieldsEntry{entry("catalog", update, dataA)}, mine: dataA, others: none},
		"OLM's, beside ours":               {entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA), entry(api.FieldManager, applied, dataB)}, mine: `{"f:data":{"f:a":{},"f:b":{}}}`, others: none},
		"the manager that gave the owner":  {entries: []metav1.ManagedFieldsEntry{entry("tool", update, both)}, mine: dataA, others: owned},
		"the manager that labelled it":     {entries: []metav1.ManagedFieldsEntry{entry("tool", update, labelled)}, mine: labelled, others: none},
		"the label of a component": {
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:operators.coreos.com/lamp.lamps":{}}}}`)},
			mine:    dataA, others: component,
		},
		"what others added stays theirs": {entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA), entry("somebody", update, dataB)}, mine: dataA, others: dataB},
		"what a person changed":          {entries: []metav1.ManagedFieldsEntry{entry("kubectl-edit", update, both)}, mine: none, others: both},
		"a controller's":                 {entries: []metav1.ManagedFieldsEntry{entry("kube-controller-manager", update, both)}, mine: none, others: both},
		"what a person patched":          {entries: []metav1.ManagedFieldsEntry{entry("kubectl-patch", update, both)}, mine: none, others: both},
		"what a person labelled":         {entries: []metav1.ManagedFieldsEntry{entry("kubectl-label", update, labelled)}, mine: none, others: labelled},
		"what a person annotated":        {entries: []metav1.ManagedFieldsEntry{entry("kubectl-annotate", update, both)}, mine: none, others: both},
		"a manager that gave another owner": {
			owners: subscribed, entries: []metav1.ManagedFieldsEntry{entry("tool", update, foreignOwner)}, mine: none, others: foreignOwner,
		},
		"what is applied":             {entries: []metav1.ManagedFieldsEntry{entry("olm", applied, dataA)}, mine: none, others: dataA},
		"the status":                  {entries: []metav1.ManagedFieldsEntry{status}, mine: none, others: dataA},
		"another version of the kind": {entries: []metav1.ManagedFieldsEntry{old}, mine: none, others: dataA},
		"an unowned object":           {unmarked: true, entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}, mine: none, others: dataA},
		"an object of another owner": {
			unmarked: true, owners: subscribed, entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}, mine: none, others: dataA,
		},
		"an object that is not managed": {
			unmarked: true, labels: map[string]string{"olm.managed": "false"},
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}, mine: none, others: dataA,
		},
		"an object that is managed": {
			unmarked: true, labels: map[string]string{"olm.managed": "true"},
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}, mine: dataA, others: none,
		},
		"an object with an owner in its labels": {
			unmarked: true, labels: map[string]string{"olm.owner": "lamp.v0"},
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}, mine: dataA, others: none,
		},
		"a definition": {kind: kindCRD, entries: []metav1.ManagedFieldsEntry{entry("catalog", update, dataA)}, mine: none, others: dataA},
		"what a ServiceAccount refers to": {
			kind: "ServiceAccount", entries: []metav1.ManagedFieldsEntry{entry("olm", update, `{"f:imagePullSecrets":{},"f:secrets":{".":{},"k:{\"name\":\"x\"}":{}}}`)},
			mine: none, others: `{"f:imagePullSecrets":{},"f:secrets":{".":{},"k:{\"name\":\"x\"}":{}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			if tt.kind != "" {
				live.SetKind(tt.kind)
			}
			owners := tt.owners
			if !tt.unmarked {
				owners = append(slices.Clone(owners), metav1.OwnerReference{Kind: kindCSV, Name: "lamp.v0", UID: "1"})
			}
			live.SetOwnerReferences(owners)
			live.SetLabels(tt.labels)
			live.SetManagedFields(tt.entries)
			got, err := ownership(live, "v1")
			if err != nil {
				t.Fatal(err)
			}
			for side, fields := range map[string]struct {
				want string
				got  *fieldpath.Set
			}{"mine": {tt.mine, got.Mine}, "others": {tt.others, got.Others}} {
				text, err := fields.got.ToJSON()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(fields.want, string(text)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", side, diff)
				}
			}
		})
	}
}

// TestKeepOwners checks whether an object keeps an owner that a manifest lacks.
func TestKeepOwners(t *testing.T) {
	version := metav1.OwnerReference{Kind: kindCSV, Name: "lamp.v0", UID: "1"}
	other := metav1.OwnerReference{Kind: "Subscription", Name: "lamp", UID: "1"}
	next := metav1.OwnerReference{Kind: kindCSV, Name: "lamp.v1", UID: "2"}
	for name, tt := range map[string]struct {
		live   metav1.OwnerReference
		ours   bool
		wanted []metav1.OwnerReference
		want   []metav1.OwnerReference
	}{
		"a version":                    {live: version, ours: true, wanted: []metav1.OwnerReference{next}, want: []metav1.OwnerReference{next, version}},
		"a version that is wanted too": {live: version, ours: true, wanted: []metav1.OwnerReference{version}, want: []metav1.OwnerReference{version}},
		"a version that others set":    {live: version, wanted: []metav1.OwnerReference{next}, want: []metav1.OwnerReference{next}},
		"an owner of another kind":     {live: other, ours: true, wanted: []metav1.OwnerReference{next}, want: []metav1.OwnerReference{next}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, live, mine := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}, &fieldpath.Set{}
			wanted.SetOwnerReferences(tt.wanted)
			live.SetOwnerReferences([]metav1.OwnerReference{tt.live})
			if tt.ours {
				mine.Insert(pathOf(tt.live))
			}
			keepOwners(wanted, live, mine)
			if diff := cmp.Diff(tt.want, wanted.GetOwnerReferences()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManagers checks which field managers are OLM's and which are the supervisor's.
func TestManagers(t *testing.T) {
	for manager, want := range map[string]struct{ olm, ours bool }{
		"olm": {olm: true}, "catalog": {olm: true}, "olm-operator": {olm: true}, "catalog-operator": {olm: true},
		"chandlery-supervisor": {ours: true}, "chandlery-supervisor-manifests": {ours: true},
		"": {}, "kubectl-create": {}, "chandlery": {}, "olm-operators": {},
	} {
		if olm, ours := IsOLM(manager), IsOurs(manager); olm != want.olm || ours != want.ours {
			t.Errorf("%q: OLM's %t, ours %t; want %+v", manager, olm, ours, want)
		}
	}
}

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
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

// TestOwnership gives, for the managers of an object, which fields count as set by this
// package.
func TestOwnership(t *testing.T) {
	const update, applied = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	const both = `{"f:data":{"f:a":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`
	const labelled = `{"f:metadata":{"f:labels":{"f:olm.owner":{}}}}`
	const component = `{"f:metadata":{"f:labels":{"f:operators.coreos.com/lamp.lamps":{}}}}`
	const none = `{}`
	status, old := entry("olm", update, dataA), entry("olm", update, dataA)
	status.Subresource, old.APIVersion = "status", "v1beta1"
	older := entry(ManifestManager, update, dataA)
	older.APIVersion = "v1beta1"
	for name, tt := range map[string]struct {
		kind         string
		unmarked     bool
		entries      []metav1.ManagedFieldsEntry
		mine, others string
	}{
		"what was written":                 {entries: []metav1.ManagedFieldsEntry{entry(ManifestManager, update, dataA)}, mine: dataA, others: none},
		"what an earlier release applied":  {entries: []metav1.ManagedFieldsEntry{entry(FieldManager, applied, dataA), entry(ManifestManager, update, dataB)}, mine: `{"f:data":{"f:a":{},"f:b":{}}}`, others: none},
		"what the supervisor patched":      {entries: []metav1.ManagedFieldsEntry{entry(FieldManager, update, dataA)}, mine: none, others: dataA},
		"what was written in old versions": {entries: []metav1.ManagedFieldsEntry{older}, mine: none, others: none},
		"OLM's":                            {entries: []metav1.ManagedFieldsEntry{entry("catalog", update, dataA)}, mine: dataA, others: none},
		"OLM's, beside ours":               {entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA), entry(FieldManager, applied, dataB)}, mine: `{"f:data":{"f:a":{},"f:b":{}}}`, others: none},
		"the manager that gave the owner":  {entries: []metav1.ManagedFieldsEntry{entry("tool", update, both)}, mine: dataA, others: owned},
		"the manager that labelled it":     {entries: []metav1.ManagedFieldsEntry{entry("tool", update, labelled)}, mine: labelled, others: none},
		"the label of a component": {
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:operators.coreos.com/lamp.lamps":{}}}}`)},
			mine:    dataA, others: component,
		},
		"what others added stays theirs": {entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA), entry("somebody", update, dataB)}, mine: dataA, others: dataB},
		"what a person changed":          {entries: []metav1.ManagedFieldsEntry{entry("kubectl-edit", update, both)}, mine: none, others: both},
		"a controller's":                 {entries: []metav1.ManagedFieldsEntry{entry("kube-controller-manager", update, both)}, mine: none, others: both},
		"what is applied":                {entries: []metav1.ManagedFieldsEntry{entry("olm", applied, dataA)}, mine: none, others: dataA},
		"the status":                     {entries: []metav1.ManagedFieldsEntry{status}, mine: none, others: dataA},
		"another version of the kind":    {entries: []metav1.ManagedFieldsEntry{old}, mine: none, others: dataA},
		"an object of nobody":            {unmarked: true, entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}, mine: none, others: dataA},
		"a definition":                   {kind: kindCRD, entries: []metav1.ManagedFieldsEntry{entry("catalog", update, dataA)}, mine: none, others: dataA},
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
			if !tt.unmarked {
				live.SetOwnerReferences([]metav1.OwnerReference{{Kind: kindCSV, Name: "lamp.v0", UID: "1"}})
			}
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

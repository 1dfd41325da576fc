package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// TestAdopt gives, for the managers of an object, whose fields are whose after it.
func TestAdopt(t *testing.T) {
	const update, applied = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	const both = `{"f:data":{"f:a":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`
	status, old := entry("olm", update, dataA), entry("olm", update, dataA)
	status.Subresource, old.APIVersion = "status", "v1beta1"
	for name, tt := range map[string]struct {
		kind     string
		unmarked bool
		entries  []metav1.ManagedFieldsEntry
		want     map[string]string // nil: nothing is taken
	}{
		"OLM's":                      {entries: []metav1.ManagedFieldsEntry{entry("catalog", update, dataA)}, want: map[string]string{FieldManager: dataA}},
		"OLM's, beside ours":         {entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA), entry(FieldManager, applied, dataB)}, want: map[string]string{FieldManager: `{"f:data":{"f:a":{},"f:b":{}}}`}},
		"that of who gave the owner": {entries: []metav1.ManagedFieldsEntry{entry("tool", update, both)}, want: map[string]string{FieldManager: dataA, "tool": owned}},
		"that of who labelled it": {
			entries: []metav1.ManagedFieldsEntry{entry("tool", update, `{"f:metadata":{"f:labels":{"f:olm.owner":{}}}}`)},
			want:    map[string]string{FieldManager: `{"f:metadata":{"f:labels":{"f:olm.owner":{}}}}`},
		},
		"the label of a component": {
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:operators.coreos.com/lamp.lamps":{}}}}`)},
			want:    map[string]string{FieldManager: dataA, "olm": `{"f:metadata":{"f:labels":{"f:operators.coreos.com/lamp.lamps":{}}}}`},
		},
		"what others added stays theirs": {
			entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA), entry("somebody", update, dataB)},
			want:    map[string]string{FieldManager: dataA, "somebody": dataB},
		},
		"what a person changed":       {entries: []metav1.ManagedFieldsEntry{entry("kubectl-edit", update, both)}},
		"a controller's":              {entries: []metav1.ManagedFieldsEntry{entry("kube-controller-manager", update, both)}},
		"what is applied":             {entries: []metav1.ManagedFieldsEntry{entry("olm", applied, dataA)}},
		"the status":                  {entries: []metav1.ManagedFieldsEntry{status}},
		"another version of the kind": {entries: []metav1.ManagedFieldsEntry{old}},
		"taken before":                {entries: []metav1.ManagedFieldsEntry{entry("olm", update, owned), entry(FieldManager, applied, dataA)}},
		"an object of nobody":         {unmarked: true, entries: []metav1.ManagedFieldsEntry{entry("olm", update, dataA)}},
		"a definition":                {kind: kindCRD, entries: []metav1.ManagedFieldsEntry{entry("catalog", update, dataA)}},
		"what a ServiceAccount refers to": {
			kind: "ServiceAccount", entries: []metav1.ManagedFieldsEntry{entry("olm", update, `{"f:imagePullSecrets":{},"f:secrets":{".":{},"k:{\"name\":\"x\"}":{}}}`)},
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
			fields, taken, err := adopt(live, "v1")
			if err != nil || taken != (tt.want != nil) {
				t.Fatalf("taken %v, error %v", taken, err)
			}
			if !taken {
				return
			}
			got := map[string]string{}
			for _, f := range fields {
				got[f.Manager] = f.FieldsV1.GetRawString()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("fields by manager (-want +got):\n%s", diff)
			}
		})
	}
}

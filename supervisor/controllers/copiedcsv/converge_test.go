package copiedcsv

import (
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// TestDecideConverges repeatedly executes the decided steps on an observation. The result must have
// the wanted copies and no further steps.
func TestDecideConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawn(t)
		fp := fingerprint{content: digest{1}, status: digest{1}}
		h := &versionState{records: map[string]record{}, failures: map[string]failure{}}
		for pass := range 20 {
			h.prune(o)
			w := decide(o, h, fp)
			h.setOutdated(o.now, w.outdated)
			if len(w.steps) == 0 && w.wait == 0 {
				rested(t, o, w)
				return
			}
			for i, s := range w.steps {
				takeInMemory(o, h, s, fp, fmt.Sprintf("%d-%d", pass, i))
			}
			o.now = o.now.Add(max(w.wait, time.Millisecond))
		}
		t.Fatalf("there is no end to it: %v", outline(decide(o, h, fp).steps))
	})
}

// rested checks the final state.
func rested(t *rapid.T, o *input, w decision) {
	if w.placement.mode == modeUpdate || w.placement.mode == modeNone {
		return
	}
	for namespace := range o.copies {
		if o.namespaces.Has(namespace) && !w.placement.wanted.Has(namespace) {
			t.Errorf("there is a copy in %s, where none is wanted", namespace)
		}
	}
	for namespace := range w.placement.wanted {
		if w.placement.mode == modeSync && o.copies[namespace] == nil && o.conflicts[namespace] == "" {
			t.Errorf("there is no copy in %s", namespace)
		}
	}
	for namespace, granted := range o.granted {
		if len(granted.bindings) > 0 && o.namespaces.Has(namespace) && (w.placement.allNamespaces || !w.placement.wanted.Has(namespace)) {
			t.Errorf("there are rights in %s, which the version does not serve", namespace)
		}
	}
}

// drawn draws the state of a version and its copies.
func drawn(t *rapid.T) *input {
	names := []string{"cellar", "garden", "pantry", "attic", home}
	subset := func(label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID[string]).Draw(t, label)
	}
	targets := subset("targets")
	if rapid.Bool().Draw(t, "global") {
		targets = []string{""}
	}
	slices.Sort(targets)
	o := seen(targets, nil)
	o.namespaces = sets.New(subset("namespaces")...)
	o.enabled = rapid.Bool().Draw(t, "enabled")
	o.protected = subset("protected")
	o.rbac = owned()
	for _, namespace := range subset("copies") {
		if namespace == home {
			continue
		}
		o.copies[namespace] = copyIn(namespace)
		if rapid.Bool().Draw(t, "granted") {
			o.granted[namespace] = copied(o, namespace)
		}
	}
	for _, namespace := range subset("taken") {
		if o.copies[namespace] == nil {
			o.conflicts[namespace] = "it is there"
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "origin") {
	case 0:
		o.origin, o.rbac = nil, rbac{}
	case 1:
		o.origin.DeletionTimestamp = new(metav1.NewTime(noon()))
	case 2:
		o.origin.Status.Phase = operatorsv1alpha1.CSVPhaseNone
	case 3:
		o.groups = append(o.groups, operatorsv1.OperatorGroup{})
	}
	return o
}

// takeInMemory applies a step to an observation.
func takeInMemory(o *input, h *versionState, s step, want fingerprint, id string) {
	granted := o.granted[s.namespace]
	switch s.action {
	case createCopy:
		meta := copyIn(s.namespace)
		meta.UID = types.UID(id)
		o.copies[s.namespace] = meta
		h.records[s.namespace] = record{uid: meta.UID, version: meta.ResourceVersion, fingerprint: want, at: o.now}
	case syncCopy:
		meta := o.copies[s.namespace]
		h.records[s.namespace] = record{uid: meta.UID, version: meta.ResourceVersion, fingerprint: want, at: o.now}
	case deleteCopy:
		delete(o.copies, s.namespace)
	case deleteBinding:
		granted.bindings = nil
	case deleteRole:
		granted.roles = nil
	case applyRole:
		role := *s.role
		role.UID = types.UID(id)
		granted.roles = append(granted.roles[:0:0], role)
	case applyBinding:
		binding := *s.binding
		binding.UID = types.UID(id)
		granted.bindings = append(granted.bindings[:0:0], binding)
	}
	o.granted[s.namespace] = granted
}

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

// TestDecideSettles repeatedly executes the decided steps on an observation. The result must have
// the wanted copies and no further steps.
func TestDecideSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawn(t)
		says := fingerprint{content: digest{1}, status: digest{1}}
		h := &history{records: map[string]record{}, setbacks: map[string]setback{}}
		for pass := range 20 {
			h.prune(o)
			w := decide(o, h, says)
			h.note(o.now, w.outdated)
			if len(w.steps) == 0 && w.wait == 0 {
				rested(t, o, w)
				return
			}
			for i, s := range w.steps {
				takeInMemory(o, h, s, says, fmt.Sprintf("%d-%d", pass, i))
			}
			o.now = o.now.Add(max(w.wait, time.Millisecond))
		}
		t.Fatalf("there is no end to it: %v", outline(decide(o, h, says).steps))
	})
}

// rested checks the final state.
func rested(t *rapid.T, o *observation, w work) {
	if w.place.stand == keep || w.place.stand == leave {
		return
	}
	for namespace := range o.copies {
		if o.namespaces.Has(namespace) && !w.place.wanted.Has(namespace) {
			t.Errorf("there is a copy in %s, where none is wanted", namespace)
		}
	}
	for namespace := range w.place.wanted {
		if w.place.stand == spread && o.copies[namespace] == nil && o.taken[namespace] == "" {
			t.Errorf("there is no copy in %s", namespace)
		}
	}
	for namespace, granted := range o.granted {
		if len(granted.bindings) > 0 && o.namespaces.Has(namespace) && (w.place.global || !w.place.wanted.Has(namespace)) {
			t.Errorf("there are rights in %s, which the version does not serve", namespace)
		}
	}
}

// drawn draws the state of a version and its copies.
func drawn(t *rapid.T) *observation {
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
	o.rights = owned()
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
			o.taken[namespace] = "it is there"
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "origin") {
	case 0:
		o.origin, o.rights = nil, rights{}
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
func takeInMemory(o *observation, h *history, s step, says fingerprint, id string) {
	granted := o.granted[s.namespace]
	switch s.action {
	case publish:
		meta := copyIn(s.namespace)
		meta.UID = types.UID(id)
		o.copies[s.namespace] = meta
		h.records[s.namespace] = record{uid: meta.UID, version: meta.ResourceVersion, says: says, at: o.now}
	case compare:
		meta := o.copies[s.namespace]
		h.records[s.namespace] = record{uid: meta.UID, version: meta.ResourceVersion, says: says, at: o.now}
	case withdraw:
		delete(o.copies, s.namespace)
	case unbind:
		granted.bindings = nil
	case revoke:
		granted.roles = nil
	case grant:
		role := *s.role
		role.UID = types.UID(id)
		granted.roles = append(granted.roles[:0:0], role)
	case bind:
		binding := *s.binding
		binding.UID = types.UID(id)
		granted.bindings = append(granted.bindings[:0:0], binding)
	}
	o.granted[s.namespace] = granted
}

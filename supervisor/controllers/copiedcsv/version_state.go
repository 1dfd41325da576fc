package copiedcsv

import (
	"maps"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// record describes the content of a copy at its last read or write by this process. For a role or a
// binding, it describes a copied one.
type record struct {
	uid types.UID
	// version is the copy's resource version at that time. The content is known while it matches.
	version string
	// fingerprint identifies the content. That of a role or a binding has no status.
	fingerprint fingerprint
	// at is the time of the read or write.
	at time.Time
}

// describes reports whether the record describes a copy in the cache. The cache may briefly have an
// older version than the record.
func (r record) describes(copied metav1.Object) bool {
	if r.uid != copied.GetUID() {
		return false
	}
	if r.version == copied.GetResourceVersion() {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(copied.GetResourceVersion(), r.version)
	return err == nil && order < 0
}

// failure is a step that failed.
type failure struct {
	namespace string
	times     int
	due       time.Time
	problem   string
}

// versionState is what this process has observed of a version and its copies. It is not safe for
// concurrent use.
type versionState struct {
	// uid and version identify the content of the version that lastFingerprint was computed from.
	uid             types.UID
	version         string
	lastFingerprint fingerprint
	records         map[string]record  // by namespace
	failures        map[string]failure // by step
	// rbac are the records of roles and bindings that the cache lacks a part of.
	rbac map[rbacKey]record
	// outdated is since when copies have an outdated status.
	outdated time.Time
	// disabledEvent is the UID of the version that has the Event that it is not copied.
	disabledEvent types.UID
	// blocked holds the last reported problem of each namespace without a copy.
	blocked map[string]string
}

// rbacKey identifies a copied role or binding by the step that creates it.
type rbacKey struct {
	action          action
	namespace, name string
}

func rbacKeyOf(s step) rbacKey {
	return rbacKey{action: s.action, namespace: s.namespace, name: s.name}
}

// versionStates holds the states of all versions.
type versionStates struct {
	mu     sync.Mutex
	states map[types.NamespacedName]*versionState
}

func newVersionStates() *versionStates {
	return &versionStates{states: map[types.NamespacedName]*versionState{}}
}

func (m *versionStates) get(key types.NamespacedName) *versionState {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.states[key]
	if h == nil {
		h = &versionState{records: map[string]record{}, failures: map[string]failure{}}
		m.states[key] = h
	}
	return h
}

func (m *versionStates) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, key)
}

// fingerprint returns the fingerprint of a version's template. It is computed once per content,
// because that takes longer than the rest of a pass.
func (h *versionState) fingerprint(csv, template *operatorsv1alpha1.ClusterServiceVersion) (fingerprint, error) {
	if csv.UID == h.uid && csv.ResourceVersion == h.version && h.version != "" {
		return h.lastFingerprint, nil
	}
	want, err := fingerprintOf(template)
	if err != nil {
		return want, err
	}
	h.uid, h.version, h.lastFingerprint = csv.UID, csv.ResourceVersion, want
	return want, nil
}

// prune deletes the records of copies that are gone.
func (h *versionState) prune(o *input) {
	for namespace, r := range h.records {
		if o.copies[namespace] == nil && o.now.Sub(r.at) > cacheLag {
			delete(h.records, namespace)
		}
	}
	maps.DeleteFunc(h.rbac, func(key rbacKey, _ record) bool { return o.copies[key.namespace] == nil })
}

// record records what a step found or wrote. Of roles and bindings, it records those that the cache
// lacks a part of.
func (h *versionState) record(s step, found record) {
	switch {
	case s.role == nil && s.binding == nil:
		h.records[s.namespace] = found
	case s.trimmed:
		wanted, err := digestOf(s.object())
		if err != nil {
			return
		}
		if h.rbac == nil {
			h.rbac = map[rbacKey]record{}
		}
		found.fingerprint.content = wanted
		h.rbac[rbacKeyOf(s)] = found
	}
}

// matches reports whether this process has found a role or binding, of which the cache lacks a part, as
// the step wants it.
func (h *versionState) matches(s step, live metav1.Object) bool {
	known, ok := h.rbac[rbacKeyOf(s)]
	if !ok || !s.trimmed || !known.describes(live) {
		return false
	}
	wanted, err := digestOf(s.object())
	return err == nil && wanted == known.fingerprint.content
}

// pruneFailures deletes the failures of steps that are not needed any more.
func (h *versionState) pruneFailures(steps []step) {
	if len(h.failures) == 0 {
		return
	}
	wanted := make(map[string]bool, len(steps))
	for _, s := range steps {
		wanted[s.String()] = true
	}
	maps.DeleteFunc(h.failures, func(name string, _ failure) bool { return !wanted[name] })
}

// backoff is the pauses before a failed step is repeated.
var backoff = apply.Backoff{First: time.Second, Max: 5 * time.Minute}

// fail records the failure of a step and when to repeat it.
func (h *versionState) fail(s step, now time.Time, err error) {
	times := h.failures[s.String()].times + 1
	h.failures[s.String()] = failure{namespace: s.namespace, times: times, due: now.Add(backoff.After(times)), problem: err.Error()}
}

// retryIn returns how long a step must still wait.
func (h *versionState) retryIn(s step, now time.Time) time.Duration {
	return max(0, h.failures[s.String()].due.Sub(now))
}

package copiedcsv

import (
	"maps"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// record describes the content of a copy at its last read or write by this process. For a role or a
// binding, it describes a copied one.
type record struct {
	uid types.UID
	// version is the copy's resource version at that time. The content is known while it matches.
	version string
	// says is the fingerprint of the content. That of a role or a binding has no status.
	says fingerprint
	// at is the time of the read or write.
	at time.Time
}

// covers reports whether the record describes a copy in the cache. The cache may briefly have an
// older version than the record.
func (r record) covers(copied metav1.Object) bool {
	if r.uid != copied.GetUID() {
		return false
	}
	if r.version == copied.GetResourceVersion() {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(copied.GetResourceVersion(), r.version)
	return err == nil && order < 0
}

// setback is a step that failed.
type setback struct {
	namespace string
	times     int
	due       time.Time
	problem   string
}

// history is the state that this process remembers of a version and its copies. It is not safe for
// concurrent use.
type history struct {
	// uid and version identify the content of the version that says was computed from.
	uid      types.UID
	version  string
	says     fingerprint
	records  map[string]record  // by namespace
	setbacks map[string]setback // by step
	// rights are the records of roles and bindings that the cache lacks a part of.
	rights map[rightKey]record
	// outdated is since when copies have an outdated status.
	outdated time.Time
	// announced is the UID of the version that has the Event that it is not copied.
	announced types.UID
	// blocked holds the last reported problem of each namespace without a copy.
	blocked map[string]string
}

// rightKey identifies a copied role or binding by the step that creates it.
type rightKey struct {
	action          action
	namespace, name string
}

func keyOf(s step) rightKey { return rightKey{action: s.action, namespace: s.namespace, name: s.name} }

// memory holds the histories of all versions.
type memory struct {
	mu        sync.Mutex
	histories map[types.NamespacedName]*history
}

func newMemory() *memory {
	return &memory{histories: map[types.NamespacedName]*history{}}
}

func (m *memory) of(key types.NamespacedName) *history {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.histories[key]
	if h == nil {
		h = &history{records: map[string]record{}, setbacks: map[string]setback{}}
		m.histories[key] = h
	}
	return h
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.histories, key)
}

// fingerprint returns the fingerprint of a version's image. It is computed once per content,
// because that takes longer than the rest of a pass.
func (h *history) fingerprint(csv, image *operatorsv1alpha1.ClusterServiceVersion) (fingerprint, error) {
	if csv.UID == h.uid && csv.ResourceVersion == h.version && h.version != "" {
		return h.says, nil
	}
	says, err := fingerprintOf(image)
	if err != nil {
		return says, err
	}
	h.uid, h.version, h.says = csv.UID, csv.ResourceVersion, says
	return says, nil
}

// prune deletes the records of copies that are gone.
func (h *history) prune(o *observation) {
	for namespace, r := range h.records {
		if o.copies[namespace] == nil && o.now.Sub(r.at) > cacheLag {
			delete(h.records, namespace)
		}
	}
	maps.DeleteFunc(h.rights, func(key rightKey, _ record) bool { return o.copies[key.namespace] == nil })
}

// remember records what a step found or wrote. Of roles and bindings, it records those that the cache
// lacks a part of.
func (h *history) remember(s step, found record) {
	switch {
	case s.role == nil && s.binding == nil:
		h.records[s.namespace] = found
	case s.trimmed:
		wanted, err := digestOf(s.right())
		if err != nil {
			return
		}
		if h.rights == nil {
			h.rights = map[rightKey]record{}
		}
		found.says.content = wanted
		h.rights[keyOf(s)] = found
	}
}

// confirms reports whether this process has found a role or binding, of which the cache lacks a part, as
// the step wants it.
func (h *history) confirms(s step, live metav1.Object) bool {
	known, ok := h.rights[keyOf(s)]
	if !ok || !s.trimmed || !known.covers(live) {
		return false
	}
	wanted, err := digestOf(s.right())
	return err == nil && wanted == known.says.content
}

// resume deletes the failures of steps that are not needed any more.
func (h *history) resume(steps []step) {
	if len(h.setbacks) == 0 {
		return
	}
	wanted := make(map[string]bool, len(steps))
	for _, s := range steps {
		wanted[s.String()] = true
	}
	maps.DeleteFunc(h.setbacks, func(name string, _ setback) bool { return !wanted[name] })
}

// First and last pause before a failed step is repeated. The pause doubles.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// fail records the failure of a step and when to repeat it.
func (h *history) fail(s step, now time.Time, err error) {
	before := h.setbacks[s.String()]
	pause := lastPause
	if before.times < 9 {
		pause = min(lastPause, firstPause<<before.times)
	}
	h.setbacks[s.String()] = setback{namespace: s.namespace, times: before.times + 1, due: now.Add(pause), problem: err.Error()}
}

// rests returns how long a step must still wait.
func (h *history) rests(s step, now time.Time) time.Duration {
	return max(0, h.setbacks[s.String()].due.Sub(now))
}

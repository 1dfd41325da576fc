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

// record is what a copy was found to say when it was last read or written here.
type record struct {
	uid types.UID
	// version is the copy's resource version then: while it has that, it still says so.
	version string
	// says is what it says.
	says fingerprint
	// at is when that was.
	at time.Time
}

// covers says whether a copy, as a cache shows it, is one that the record is about. A
// cache may show less than what was written last, and does for a moment.
func (r record) covers(copied *metav1.PartialObjectMetadata) bool {
	if r.uid != copied.UID {
		return false
	}
	if r.version == copied.ResourceVersion {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(copied.ResourceVersion, r.version)
	return err == nil && order < 0
}

// setback is a step that failed.
type setback struct {
	namespace string
	times     int
	due       time.Time
	problem   string
}

// history is what this process remembers of a version and its copies. One pass at a time
// uses it.
type history struct {
	// uid and version name the content of the version that says stands for.
	uid      types.UID
	version  string
	says     fingerprint
	records  map[string]record  // by namespace
	setbacks map[string]setback // by step
	// outdated is since when copies show a status that the version has no longer.
	outdated time.Time
	// announced is the version of which it was said that it is not copied.
	announced types.UID
	// blocked is what was last said of namespaces without a copy.
	blocked map[string]string
}

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

// fingerprint returns that of the image of a version. It is made once for each content,
// because it takes longer than all the rest of a pass.
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

// prune forgets copies that are gone.
func (h *history) prune(o *observation) {
	for namespace, r := range h.records {
		if o.copies[namespace] == nil && o.now.Sub(r.at) > cacheLag {
			delete(h.records, namespace)
		}
	}
}

// resume forgets failures of steps that nobody takes any more.
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

// Failed steps are repeated after a pause that doubles.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// fail notes that a step has failed, and when to take it again.
func (h *history) fail(s step, now time.Time, err error) {
	before := h.setbacks[s.String()]
	pause := lastPause
	if before.times < 9 {
		pause = min(lastPause, firstPause<<before.times)
	}
	h.setbacks[s.String()] = setback{namespace: s.namespace, times: before.times + 1, due: now.Add(pause), problem: err.Error()}
}

// rests says for how long yet a step is not taken.
func (h *history) rests(s step, now time.Time) time.Duration {
	return max(0, h.setbacks[s.String()].due.Sub(now))
}

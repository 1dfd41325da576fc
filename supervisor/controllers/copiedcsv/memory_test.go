package copiedcsv

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/chandlery/chandlery/supervisor/api"
)

// perCopy is the maximum memory per copy in this process, in bytes. It includes the record and the
// indexes.
const perCopy = 2048

// TestMemoryOfACopy fills a store with copies that have large annotations. Each copy must take at
// most perCopy bytes.
func TestMemoryOfACopy(t *testing.T) {
	const copies = 4500
	before := heap()
	store, states := fill(t, copies)
	after := heap()
	each := (int64(after) - int64(before)) / copies
	t.Logf("a copy takes %d bytes", each)
	if each > perCopy {
		t.Errorf("a copy takes %d bytes, want %d at most", each, perCopy)
	}
	if got := len(store.List()); got != copies || len(states) == 0 {
		t.Errorf("%d copies in store, want %d", got, copies)
	}
}

func BenchmarkMemory(b *testing.B) {
	for _, copies := range []int{4500, 45000} {
		b.Run(strconv.Itoa(copies), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				store, states := fill(b, copies)
				b.ReportMetric(float64(heap()-before)/float64(copies), "B/copy")
				runtime.KeepAlive(store)
				runtime.KeepAlive(states)
			}
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// fill creates copies of fifteen versions and their histories.
func fill(tb testing.TB, copies int) (cache.Indexer, map[int]*versionState) {
	tb.Helper()
	const versions = 15
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		indexName:            func(obj any) ([]string, error) { return byName(obj.(*metav1.PartialObjectMetadata)), nil },
	})
	states := map[int]*versionState{}
	for i := range copies {
		meta, err := stripMetadata(fetched(i/versions, i%versions))
		if err != nil {
			tb.Fatal(err)
		}
		if err := store.Add(meta); err != nil {
			tb.Fatal(err)
		}
		h := states[i%versions]
		if h == nil {
			h = &versionState{records: map[string]record{}, failures: map[string]failure{}}
			states[i%versions] = h
		}
		kept := meta.(*metav1.PartialObjectMetadata)
		h.records[kept.Namespace] = record{uid: kept.UID, version: kept.ResourceVersion, at: time.Unix(int64(i), 0)}
	}
	return store, states
}

// fetched returns the metadata of a copy as the API server sends it: with large annotations and
// managed fields.
func fetched(namespace, version int) *metav1.PartialObjectMetadata {
	meta := copyMetadata()
	meta.ObjectMeta = metav1.ObjectMeta{
		Namespace: fmt.Sprintf("namespace-%04d", namespace), Name: fmt.Sprintf("operator-with-a-name.v1.2.%d", version),
		UID:             types.UID(fmt.Sprintf("0b5ad9a2-7d8e-4f2f-8a4e-%06d%06d", namespace, version)),
		ResourceVersion: strconv.Itoa(1000000 + namespace*100 + version),
		Labels:          map[string]string{api.LabelCopiedFrom: strings.Clone("operators"), "olm.api.1234567890abcdef": strings.Clone("provided")},
		Annotations:     map[string]string{"alm-examples": strings.Repeat("x", 32<<10)},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "x", FieldsV1: metav1.NewFieldsV1(strings.Repeat("y", 16<<10))}},
	}
	return meta
}

package informer

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// bounds are the maximum sizes of the kept metadata of an object, in bytes of memory. The API server bounds
// annotations at 256 KiB in total, and the rest only by the size of the object.
type bounds struct{ labels, annotations, owners, finalizers int }

// boundsOf returns the bounds for an object. Real objects stay below the usual bounds, and an object that is
// large in any respect has lower ones.
func boundsOf(large bool) bounds {
	if large {
		return bounds{labels: 1 << 10, annotations: 0, owners: 512, finalizers: 256}
	}
	return bounds{labels: 3 << 10, annotations: 4 << 10, owners: 2 << 10, finalizers: 1 << 10}
}

// Trimmed reports whether an object from a cache lacks a part of the object in the cluster.
func Trimmed(o metav1.Object) bool {
	_, trimmed := o.GetAnnotations()[api.AnnotationTrimmed]
	return trimmed
}

// mark marks an object as trimmed.
func mark(o metav1.Object) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	annotations[api.AnnotationTrimmed] = ""
	o.SetAnnotations(annotations)
}

// boundMetadata removes metadata beyond the bounds, and reports whether it removed anything that a controller
// could read.
func boundMetadata(o metav1.Object, most bounds) (cut bool) {
	labels, cutLabels := boundMap(o.GetLabels(), most.labels)
	annotations, cutAnnotations := boundMap(o.GetAnnotations(), most.annotations)
	owners, cutOwners := boundList(o.GetOwnerReferences(), most.owners,
		func(ref metav1.OwnerReference) bool {
			return strings.HasPrefix(ref.APIVersion, "operators.coreos.com/")
		})
	finalizers, cutFinalizers := boundList(o.GetFinalizers(), most.finalizers, isManagerKey)
	if cutLabels {
		o.SetLabels(labels)
	}
	if cutAnnotations {
		o.SetAnnotations(annotations)
	}
	if cutOwners {
		o.SetOwnerReferences(owners)
	}
	if cutFinalizers {
		o.SetFinalizers(finalizers)
	}
	return cutLabels || cutAnnotations || cutOwners || cutFinalizers
}

// isManagerKey reports whether lifecycle managers write and read a label, an annotation or a finalizer.
func isManagerKey(key string) bool {
	return strings.HasPrefix(key, "olm.") || strings.HasPrefix(key, api.Prefix) ||
		strings.HasPrefix(key, "kubernetes.io/") || key == "app"
}

// boundMap returns a map that takes at most a number of bytes, and whether entries are missing. Keys of
// lifecycle managers come first, component labels next.
func boundMap(m map[string]string, budget int) (bounded map[string]string, cut bool) {
	if len(m) == 0 || memorySize(&m, budget) <= budget {
		return m, false
	}
	// A map with more than a few entries takes at most this for an entry. It is the size of two strings in a table
	// with eight slots to seven entries, just after it doubled.
	const slot = 80
	budget -= mapSize(1, 0)
	bounded = map[string]string{}
	for _, key := range slices.SortedFunc(maps.Keys(m), byImportance) {
		if need := slot + allocated(len(key)) + allocated(len(m[key])); need <= budget {
			bounded[key] = m[key]
			budget -= need
		}
	}
	return bounded, true
}

func byImportance(a, b string) int {
	if rank := rankOf(a) - rankOf(b); rank != 0 {
		return rank
	}
	return strings.Compare(a, b)
}

func rankOf(key string) int {
	switch {
	case isManagerKey(key):
		return 0
	case strings.HasPrefix(key, api.PrefixComponent):
		return 1
	default:
		return 2
	}
}

// boundList returns items of a list that take at most a number of bytes, those that matter first, and whether
// items are missing.
func boundList[T any](list []T, budget int, matters func(T) bool) (bounded []T, cut bool) {
	if len(list) == 0 || memorySize(&list, budget) <= budget {
		return list, false
	}
	for _, wanted := range []bool{true, false} {
		for i := range list {
			if need := memorySize(&list[i], budget); need <= budget && matters(list[i]) == wanted {
				bounded = append(bounded, list[i])
				budget -= need
			}
		}
	}
	return slices.Clip(bounded), true
}

// clip returns a string with at most n bytes. It copies the bytes, since a substring would keep the whole
// string in memory.
func clip(s string, n int) (clipped string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], "")), true
}

package informer

import (
	"reflect"
	"time"
)

// heapSize returns how many bytes of memory a value takes with all that it refers to, rounded
// up as Go allocates. Beyond a size it may return less, but more than that size.
//
// The encoding of an object says little of that: an empty element of a list is two bytes in
// protobuf, and has the size of a whole struct in memory.
func heapSize[T any](value *T, most int) int {
	v := reflect.ValueOf(value).Elem()
	return sizeOfType(v.Type()) + referenced(v, most)
}

// referenced returns the size of what a value refers to.
func referenced(v reflect.Value, most int) int {
	if v.Type() == reflect.TypeFor[time.Time]() {
		// All times share their time zone.
		return 0
	}
	switch v.Kind() {
	case reflect.String:
		return allocated(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return allocated(sizeOfType(v.Elem().Type())) + referenced(v.Elem(), most)
	case reflect.Slice, reflect.Map, reflect.Struct:
		return ofElements(v, most)
	default:
		return 0
	}
}

// ofElements does so for what has elements, up to a size.
func ofElements(v reflect.Value, most int) (sum int) {
	switch v.Kind() {
	case reflect.Slice:
		sum = allocated(v.Cap() * sizeOfType(v.Type().Elem()))
		for i := 0; i < v.Len() && sum <= most; i++ {
			sum += referenced(v.Index(i), most)
		}
	case reflect.Map:
		sum = mapSize(v.Len(), sizeOfType(v.Type().Key())+sizeOfType(v.Type().Elem()))
		for entries := v.MapRange(); sum <= most && entries.Next(); {
			sum += referenced(entries.Key(), most) + referenced(entries.Value(), most)
		}
	default:
		for i := 0; i < v.NumField() && sum <= most; i++ {
			sum += referenced(v.Field(i), most)
		}
	}
	return sum
}

func sizeOfType(t reflect.Type) int {
	return int(t.Size())
}

// allocated returns what Go allocates for a number of bytes, or somewhat more.
func allocated(bytes int) int {
	if bytes == 0 {
		return 0
	}
	return (bytes + bytes/8 + 15) &^ 7
}

// mapSize returns what Go allocates for a map. Tables have a power of two of slots, of which
// at most seven eighths are taken, and a byte for each.
func mapSize(entries, entry int) int {
	const header, group = 48, 8
	if entries == 0 {
		return header
	}
	slots := group
	for slots < entries || slots > group && slots*7/8 < entries {
		slots *= 2
	}
	return header + allocated(slots*(entry+1))
}

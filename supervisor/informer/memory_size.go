package informer

import (
	"reflect"
	"time"
)

// memorySize returns the memory of a value with all that it refers to, in bytes, rounded up as Go allocates.
// Beyond most, it may return less than the actual size, but more than most.
//
// The size of an object's encoding is no measure: an empty element of a list takes two bytes in protobuf, and a
// whole struct in memory.
func memorySize[T any](value *T, most int) int {
	v := reflect.ValueOf(value).Elem()
	return sizeOfType(v.Type()) + referenced(v, most)
}

// referenced returns the size of the values that a value refers to.
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

// ofElements returns the size of the elements of a value, up to most.
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

// allocated returns the number of bytes that Go allocates for a size, or somewhat more.
func allocated(bytes int) int {
	if bytes == 0 {
		return 0
	}
	return (bytes + bytes/8 + 15) &^ 7
}

// mapSize returns the number of bytes that Go allocates for a map. Tables have a power of two of slots, of
// which at most seven eighths are used, and a byte for each.
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

// Package listpages records the pages that a fake API server returns, for tests of code that reads lists.
package listpages

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bytes of memory that a decoded object takes whose encoding has 1.5 MB.
const (
	// WholeObject is for an object with arrays of empty objects.
	WholeObject = 70 << 20
	// Metadata is for the metadata of an object with many short labels.
	Metadata = 14 << 20
)

// allowed is the number of bytes of a page that leaves enough of the memory of a supervisor (900 MiB).
const allowed = 300 << 20

// Recorder records pages of objects of type T. The zero value is ready to use. It is not safe for concurrent use.
type Recorder[T any] struct {
	// Again runs the tested code again. Page calls it once, during the first read, with a cancelled context. The
	// code must return an error and must not read another page.
	Again func(ctx context.Context) error

	pages []weak.Pointer[T]
	// reading is true while Again runs.
	reading bool
	// waits reports whether Again returned context.Canceled.
	waits bool
	// overlaps is true if Again has read a page.
	overlaps bool
	// largest is the largest number of objects in a page.
	largest int
	// alive is the largest number of earlier pages in memory.
	alive int
}

// Page records the items of a page. A fake reader calls it before it writes them into the list of its caller,
// which may still hold the page before. The reader must not keep the slice.
func (r *Recorder[T]) Page(ctx context.Context, items []T) {
	r.largest = max(r.largest, len(items))
	if r.reading {
		r.overlaps = true
		return
	}
	runtime.GC()
	alive := 0
	for _, page := range r.pages {
		if page.Value() != nil {
			alive++
		}
	}
	r.alive = max(r.alive, alive)
	if len(items) > 0 {
		r.pages = append(r.pages, weak.Make(&items[0]))
	}
	if again := r.Again; again != nil {
		r.Again, r.reading = nil, true
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		r.waits = errors.Is(again(ctx), context.Canceled)
		r.reading = false
	}
}

// Check reports an error unless the process had one page at a time and each page fits into memory. size is the
// number of bytes that an object takes. Again must have been set.
func (r *Recorder[T]) Check(t *testing.T, size int) {
	t.Helper()
	if r.largest*size > allowed {
		t.Errorf("%d objects are read at once: they take up to %d MiB, more than %d", r.largest, r.largest*size>>20, allowed>>20)
	}
	if r.alive > 0 {
		t.Errorf("%d earlier pages are in memory while another one is read", r.alive)
	}
	if r.overlaps || !r.waits {
		t.Errorf("a list does not wait for the page of another one: read %t, waited %t", r.overlaps, r.waits)
	}
}

// Reader returns as many objects as a request allows, and records its pages.
type Reader[T any] struct {
	client.Reader
	Recorder[T]

	All []T
}

// List implements client.Reader. The list must have items of type T.
func (r *Reader[T]) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	from, to := len(o.Continue), len(r.All)
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	items := slices.Clone(r.All[from:to])
	r.Page(ctx, items)
	reflect.ValueOf(into).Elem().FieldByName("Items").Set(reflect.ValueOf(items))
	next := ""
	if to < len(r.All) {
		next = strings.Repeat("x", to)
	}
	into.SetContinue(next)
	return nil
}

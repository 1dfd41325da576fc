package index

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// ErrTruncated is returned when the file that an index is mapped from has become
// shorter. It wraps [ErrDamaged].
var ErrTruncated = fmt.Errorf("%w: its file was truncated", ErrDamaged)

// File is the file that an [Index] is mapped from. It stays open for as long as
// something refers to it, whatever its name leads to by then.
type File struct {
	handle *os.File
	name   string
	size   int64
}

func newFile(handle *os.File, size int64) *File {
	return &File{handle: handle, name: handle.Name(), size: size}
}

// FileOf returns the file that an index is mapped from, and nil for an index that
// is in memory.
func FileOf(x *Index) *File { return x.mapping.file }

// Name returns the name that the file had when it was opened or created.
func (f *File) Name() string { return f.name }

// WatchPath returns a path that leads to the file and to no other, also when the
// file was renamed. It is valid while f is referred to, on systems that have /proc.
func (f *File) WatchPath() string { return fmt.Sprintf("/proc/self/fd/%d", f.handle.Fd()) }

// CheckSize returns [ErrTruncated] when the file is shorter than the index. Without
// a file it returns nil.
func (f *File) CheckSize() error {
	if f == nil {
		return nil
	}
	size, err := fileSize(f.handle)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if size < f.size {
		return fmt.Errorf("%w: it has %d bytes instead of %d", ErrTruncated, size, f.size)
	}
	return nil
}

// CheckFile returns [ErrTruncated] when the file that the message is part of is
// shorter than the index.
func (m Message) CheckFile() error {
	if m.owner == nil {
		return nil
	}
	return m.owner.file.CheckSize()
}

// errUnreadable is why data cannot be read whose file is as long as it should be.
var errUnreadable = fmt.Errorf("%w: a part of its file cannot be read", ErrDamaged)

// Guard calls read, and returns [ErrDamaged] when read panics because a page of a
// mapped file cannot be read: the file was truncated, or the disk fails. Without
// Guard such a read ends the process. Other panics pass.
func Guard(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		switch {
		case cause == nil:
		case isFault(cause):
			err = errUnreadable
		default:
			panic(cause) //nolint:forbidigo // a defect stays one
		}
	}()
	return read()
}

// fault is what the runtime panics with for an address at which there is nothing.
type fault interface {
	runtime.Error
	Addr() uintptr
}

// isFault reports whether what recover returned is a read of an address at which
// there is nothing, after [debug.SetPanicOnFault]. A nil pointer is none.
func isFault(cause any) bool {
	_, ok := cause.(fault)
	return ok
}

// FaultIn reports whether what recover returned, after [debug.SetPanicOnFault], is a
// read of the file that an index is mapped from.
func FaultIn(x *Index, cause any) bool {
	at, ok := cause.(fault)
	if !ok || x.mapping.file == nil {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(x.mapping.bytes))) //nolint:gosec // it is only compared
	return at.Addr() >= first && at.Addr()-first < uintptr(len(x.mapping.bytes))
}

// guarded does what [Guard] does for a read of the mapping, and tells a truncated
// file from one that cannot be read.
func (m *mapping) guarded(read func() error) error {
	err := Guard(read)
	if errors.Is(err, errUnreadable) {
		if truncated := m.file.CheckSize(); truncated != nil {
			return truncated
		}
	}
	return err
}

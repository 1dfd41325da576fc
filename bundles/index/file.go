package index

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// ErrTruncated is returned if the file that an index is mapped from has become shorter. It wraps [ErrDamaged].
var ErrTruncated = fmt.Errorf("%w: its file was truncated", ErrDamaged)

// File is the file that an [Index] is mapped from. It stays open as long as something refers to it,
// even if it is renamed or deleted.
type File struct {
	handle *os.File
	name   string
	size   int64
}

func newFile(handle *os.File, size int64) *File {
	return &File{handle: handle, name: handle.Name(), size: size}
}

// FileOf returns the file that an index is mapped from, or nil for an index in memory.
func FileOf(x *Index) *File { return x.mapping.file }

// Name returns the name that the file had when it was opened or created.
func (f *File) Name() string { return f.name }

// WatchPath returns a path of exactly this file, even after it was renamed. The path is valid as
// long as f is referenced, on systems with /proc.
func (f *File) WatchPath() string { return fmt.Sprintf("/proc/self/fd/%d", f.handle.Fd()) }

// CheckSize returns [ErrTruncated] if the file is shorter than the index. Without a file it returns nil.
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

// CheckFile returns [ErrTruncated] if the file of the message is shorter than the index.
func (m Message) CheckFile() error {
	if m.owner == nil {
		return nil
	}
	return m.owner.file.CheckSize()
}

// errUnreadable means that data cannot be read although the file has its full size.
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

// fault is the runtime's panic value for an invalid address.
type fault interface {
	runtime.Error
	Addr() uintptr
}

// isFault reports whether a value from recover means a read from an invalid address, after
// [debug.SetPanicOnFault]. A nil pointer does not count.
func isFault(cause any) bool {
	_, ok := cause.(fault)
	return ok
}

// FaultIn reports whether a value from recover, after [debug.SetPanicOnFault], means a failed read
// from the file that an index is mapped from.
func FaultIn(x *Index, cause any) bool {
	at, ok := cause.(fault)
	if !ok || x.mapping.file == nil {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(x.mapping.bytes))) //nolint:gosec // it is only compared
	return at.Addr() >= first && at.Addr()-first < uintptr(len(x.mapping.bytes))
}

// guarded is [Guard] for a read of the mapping. It distinguishes a truncated file from an unreadable one.
func (m *mapping) guarded(read func() error) error {
	err := Guard(read)
	if errors.Is(err, errUnreadable) {
		if truncated := m.file.CheckSize(); truncated != nil {
			return truncated
		}
	}
	return err
}

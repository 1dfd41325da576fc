package compressed

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// memory is memory outside the heap: its size does not affect the garbage collection. It ends when nothing refers to it.
type memory struct{ bytes []byte }

// Move moves texts from the heap to one piece of memory, which lives as long as any of them.
func Move(texts []*Text) error {
	size := 0
	for _, t := range texts {
		size += len(t.blocks)
	}
	if size == 0 {
		return nil
	}
	bytes, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("allocating %d bytes: %w", size, err)
	}
	m := &memory{bytes: bytes}
	runtime.AddCleanup(m, func(bytes []byte) {
		_ = unix.Munmap(bytes) // the whole mapping, so this cannot fail
	}, bytes)
	for _, t := range texts {
		n := copy(bytes, t.blocks)
		t.blocks, t.memory = bytes[:n:n], m
		bytes = bytes[n:]
	}
	return nil
}

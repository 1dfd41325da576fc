package nodes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// settings are settings of the kernel, by file, that a kubelet changes for the machine
// that it believes to have for itself.
type settings map[string][]byte

func readSettings() (settings, error) {
	s := settings{}

	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		file := "/proc/sys/" + name

		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("read a setting of the kernel: %w", err)
		}

		s[file] = value
	}

	return s, nil
}

// restore sets what was read.
func (s settings) restore() error {
	var failures []error

	for file, value := range s {
		err := os.WriteFile(file, value, 0o644)
		if err != nil {
			failures = append(failures, fmt.Errorf("restore a setting of the kernel: %w", err))
		}
	}

	return errors.Join(failures...)
}

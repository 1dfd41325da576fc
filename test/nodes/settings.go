package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// settings maps files to their contents.
type settings map[string]string

// kernelSettings returns the files of the kernel settings that a kubelet changes.
func kernelSettings() []string {
	return []string{
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/panic",
		"/proc/sys/kernel/panic_on_oops", "/proc/sys/kernel/keys/root_maxkeys", "/proc/sys/kernel/keys/root_maxbytes",
	}
}

// readSettings reads files and stores their contents in the file notes. If a killed bed has not
// restored its settings, it returns those.
func readSettings(notes string, files []string) (settings, error) {
	s := settings{}

	data, err := os.ReadFile(notes)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}

	if !errors.Is(err, fs.ErrNotExist) {
		return s, wrapSettings(err)
	}

	for _, file := range files {
		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return nil, wrapSettings(err)
		}

		s[file] = string(value)
	}

	data, err = json.Marshal(s)
	if err == nil {
		err = os.WriteFile(notes, data, 0o600)
	}

	return s, wrapSettings(err)
}

// restore restores the stored settings and removes the file notes. It does nothing if nothing was read.
func (s settings) restore(notes string) error {
	if s == nil {
		return nil
	}

	var failures []error
	for file, value := range s {
		failures = append(failures, os.WriteFile(file, []byte(value), 0o644))
	}

	return wrapSettings(errors.Join(append(failures, os.Remove(notes))...))
}

func wrapSettings(err error) error {
	if err != nil {
		return fmt.Errorf("keep the settings of the kernel: %w", err)
	}

	return nil
}

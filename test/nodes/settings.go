package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// settings are values of files.
type settings map[string]string

// kernelSettings are the files of the settings that a kubelet changes for the machine
// that it believes to have for itself.
func kernelSettings() []string {
	return []string{
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/panic",
		"/proc/sys/kernel/panic_on_oops", "/proc/sys/kernel/keys/root_maxkeys", "/proc/sys/kernel/keys/root_maxbytes",
	}
}

// readSettings reads files and notes in a file what they said. Where an earlier bed was
// killed and could not restore what it had noted, that is what is returned.
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

// restore sets what was read and removes the notes. It does nothing where nothing was read.
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

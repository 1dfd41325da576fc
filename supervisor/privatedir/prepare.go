// Package privatedir prepares directories for caches.
package privatedir

import (
	"errors"
	"fmt"
	"os"
)

var errOwner = errors.New("is not owned by this process, or is writable by others")

// Prepare creates a directory, and checks that it is writable. The caller trusts the files in it, so it must belong
// to this user alone. content is what the directory holds, and flag is the flag that names it.
func Prepare(dir, content, flag string) error {
	remedy := "name another one with " + flag
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory for %s; %s: %w", content, remedy, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("looking at the directory for %s; %s: %w", content, remedy, err)
	}
	if !info.IsDir() || !isOwnedByUser(info) {
		return fmt.Errorf("the directory for %s, %s, %w; %s", content, dir, errOwner, remedy)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("writing to the directory for %s; %s: %w", content, remedy, err)
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return fmt.Errorf("writing to the directory for %s; %s: %w", content, remedy, err)
	}
	return nil
}

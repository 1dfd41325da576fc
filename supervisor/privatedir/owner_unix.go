//go:build unix

package privatedir

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwnedByUser reports whether a directory belongs to this user and no other user can write to it.
func isOwnedByUser(info fs.FileInfo) bool {
	const othersWrite = 0o022
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid() && info.Mode().Perm()&othersWrite == 0
}

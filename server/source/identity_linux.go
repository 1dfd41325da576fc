package source

import (
	"encoding/binary"
	"io/fs"
	"syscall"
)

// appendIdentity appends metadata that distinguishes a file from another one of the same name, size
// and time: the device, the inode and its change time. No program can set the change time.
func appendIdentity(text []byte, info fs.FileInfo) []byte {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return text
	}
	seconds, nanoseconds := stat.Ctim.Unix()
	text = binary.AppendUvarint(text, stat.Dev)
	text = binary.AppendUvarint(text, stat.Ino)
	text = binary.AppendVarint(text, seconds)
	return binary.AppendVarint(text, nanoseconds)
}

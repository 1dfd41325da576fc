package source

import (
	"encoding/binary"
	"io/fs"
	"syscall"
)

// appendIdentity appends what tells a file from another one of the same name,
// size and time: device, inode and the time of the last change of its inode,
// which no program can set back.
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

//go:build unix && !linux

package process

import "syscall"

// attributes puts the process into a group of its own, so that an interrupt typed
// at the terminal reaches only the program that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

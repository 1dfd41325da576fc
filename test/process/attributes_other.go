//go:build unix && !linux

package process

import "syscall"

// attributes puts the process into its own group, so an interrupt at the terminal reaches only the parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

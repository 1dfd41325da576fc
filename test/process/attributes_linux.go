package process

import "syscall"

// attributes puts the process into a group of its own, so that an interrupt typed
// at the terminal reaches only the program that started it, and lets it die with
// that program.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

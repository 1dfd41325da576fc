package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/chandlery/chandlery/test/process"
)

// switchOn is the script of a machine's first process.
//
//go:embed switch-on.sh
var switchOn string

// machine is a node or the client: namespaces with processes in them.
type machine struct {
	name     string
	number   int
	dir      string
	logs     string
	programs programs

	// power is locked while the machine is started or stopped.
	power sync.Mutex

	mu sync.Mutex
	// first is the first process, with which the others end; nil while the machine is off.
	first   *process.Process
	running []*process.Process
}

// on starts the first process of the machine.
func (m *machine) on(ctx context.Context) error {
	for _, folder := range []string{"run", "lib", "log", "tmp"} {
		err := os.MkdirAll(filepath.Join(m.dir, folder), 0o755)
		if err != nil {
			return fmt.Errorf("make a folder of %s: %w", m.name, err)
		}
	}

	ready := filepath.Join(m.dir, "ready")

	err := os.Remove(ready)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("switch %s on: %w", m.name, err)
	}

	first, err := process.Start(ctx, process.Spec{
		Name: m.name, Path: "nsenter", Log: m.log("machine"), Env: m.environment(),
		Args: []string{
			"--net=" + filepath.Join(netnsFolder, netns(m.name)), "--",
			// The kernel ends every process of a process namespace with its first process, and the
			// mounts of a mount namespace with its last process.
			"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
			"sh", "-c", switchOn, "switch-on", m.dir, m.programs.kubernetes, m.programs.containerd,
		},
	})
	if err != nil {
		return err
	}

	m.mu.Lock()
	m.first, m.running = first, nil
	m.mu.Unlock()

	return wait(ctx, m.name+" to be switched on", first.Unexpected, func(context.Context) error {
		_, err := os.Stat(ready)

		return err
	})
}

// off ends every process of the machine at once.
func (m *machine) off() error {
	m.mu.Lock()
	first, running := m.first, m.running
	m.first, m.running = nil, nil
	m.mu.Unlock()

	if first == nil {
		return nil
	}

	err := first.Kill()

	for _, p := range running {
		// Processes that entered the namespace end after its first process.
		select {
		case <-p.Done():
		case <-time.After(killLimit):
			err = errors.Join(err, fmt.Errorf("%s of %s did not end within %s of its machine", p.Name(), m.name, killLimit))
		}
	}

	return err
}

// start runs a program on the machine.
func (m *machine) start(ctx context.Context, program string, args ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	namespaces := fmt.Sprintf("/proc/%d/ns", m.first.PID())
	enter := []string{
		"--net=" + filepath.Join(namespaces, "net"),
		"--mount=" + filepath.Join(namespaces, "mnt"),
		"--pid=" + filepath.Join(namespaces, "pid_for_children"),
		"--", program,
	}

	p, err := process.Start(ctx, process.Spec{
		Name: filepath.Base(program) + " of " + m.name, Path: "nsenter", Args: append(enter, args...),
		Log: m.log(filepath.Base(program)), Env: m.environment(),
	})
	if err != nil {
		return err
	}

	m.running = append(m.running, p)

	return nil
}

// environment returns the only variables of the caller that programs of the machine get.
func (m *machine) environment() []string {
	return []string{machineHome, "TMPDIR=/run/node/tmp", "PATH=/run/programs/containerd:" + os.Getenv("PATH")}
}

// root returns the path of the machine's root folder on this machine.
func (m *machine) root() string {
	m.mu.Lock()
	defer m.mu.Unlock()

	return fmt.Sprintf("/proc/%d/root", m.first.PID())
}

// isOn reports whether the machine is switched on.
func (m *machine) isOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.first != nil
}

// err returns the errors of programs that ended while the machine is on.
func (m *machine) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.first == nil {
		return nil
	}

	failures := []error{m.first.Unexpected()}
	for _, p := range m.running {
		failures = append(failures, p.Unexpected())
	}

	return errors.Join(failures...)
}

func (m *machine) log(program string) string {
	return filepath.Join(m.logs, m.name+"-"+program+".log")
}

// write writes a file to /run/node of the machine.
func (m *machine) write(name, content string) error {
	file := filepath.Join(m.dir, filepath.FromSlash(name))

	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o600)
	}

	if err != nil {
		return fmt.Errorf("configure %s: %w", m.name, err)
	}

	return nil
}

// copy copies a file to /run/node of the machine.
func (m *machine) copy(name, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("configure %s: %w", m.name, err)
	}

	return m.write(name, string(data))
}

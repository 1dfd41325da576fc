package buildcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chandlery/chandlery/test/filelock"
)

// BuildError is the error of a package that did not build, with the output of the go command.
type BuildError struct {
	// Package is the import path of the package.
	Package string
	// Output is the output of the go command, without its download notices.
	Output string
	// Err is the error of the go command.
	Err error
}

// Error returns the name of the package and the output of the go command.
func (e *BuildError) Error() string {
	return fmt.Sprintf("build %s: %v\n%s", e.Package, e.Err, e.Output)
}

// Unwrap returns the error of the go command.
func (e *BuildError) Unwrap() error { return e.Err }

// Build returns the directory with the programs and files of m. It builds what is missing first. If
// names are given, only these programs are built. All programs of m have the same directory, so a
// later call can add others. Build writes a line to progress before and after each program that it
// builds, and nothing otherwise. A program that does not build is a *BuildError.
func Build(ctx context.Context, m Module, progress io.Writer, names ...string) (string, error) {
	err := m.validate()
	if err != nil {
		return "", err
	}

	root, err := Root()
	if err != nil {
		return "", err
	}

	version, err := goOutput(ctx, m, "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}

	digest, err := key(m, version)
	if err != nil {
		return "", err
	}

	dir := filepath.Join(root, m.Name, digest)

	if len(names) > 0 {
		m.Programs = slices.DeleteFunc(slices.Clone(m.Programs), func(p Program) bool { return !slices.Contains(names, p.Name) })
	}

	if missing := m.missing(dir); missing.empty() {
		return dir, nil
	}

	err = os.MkdirAll(dir, 0o755)
	if err != nil {
		return "", fmt.Errorf("make the folder of %s: %w", m.Name, err)
	}

	held, err := filelock.Acquire(ctx, dir+".lock", func() {
		fmt.Fprintln(progress, "waiting for another process that builds "+m.Name)
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", m.Name, err)
	}

	b := builder{module: m, dir: dir, held: held, progress: progress}

	err = errors.Join(b.run(ctx), held.Release())
	if err != nil {
		return "", err
	}

	return dir, nil
}

// entries are parts of a module.
type entries struct {
	programs []Program
	files    []File
}

func (e entries) empty() bool { return len(e.programs) == 0 && len(e.files) == 0 }

// missing returns the entries that dir lacks. An entry is renamed into place after it is complete,
// so an existing one is complete.
func (m Module) missing(dir string) entries {
	var out entries

	for _, p := range m.Programs {
		if !exists(filepath.Join(dir, p.Name)) {
			out.programs = append(out.programs, p)
		}
	}

	for _, f := range m.Files {
		if !exists(filepath.Join(dir, filepath.FromSlash(f.Name))) {
			out.files = append(out.files, f)
		}
	}

	return out
}

func exists(name string) bool {
	_, err := os.Stat(name)

	return err == nil
}

type builder struct {
	module   Module
	dir      string
	held     *filelock.Lock
	progress io.Writer
}

// run builds what is missing while the lock is held. The previous holder of the lock may have built everything.
func (b builder) run(ctx context.Context) error {
	missing := b.module.missing(b.dir)

	for i, p := range missing.programs {
		fmt.Fprintf(b.progress, "building %s (%d of %d)\n", p.Name, i+1, len(missing.programs))

		start := time.Now()
		err := b.build(ctx, p)
		if err != nil {
			fmt.Fprintln(b.progress, "could not build "+p.Name)

			return err
		}

		fmt.Fprintf(b.progress, "built %s in %.0f s\n", p.Name, time.Since(start).Seconds())
	}

	for _, f := range missing.files {
		err := b.copy(ctx, f)
		if err != nil {
			return fmt.Errorf("copy %s of module %s: %w", f.Path, f.Module, err)
		}
	}

	return nil
}

func (b builder) build(ctx context.Context, p Program) error {
	target := filepath.Join(b.dir, p.Name)
	temporary := filepath.Join(b.dir, fmt.Sprintf(".%s.%d", p.Name, os.Getpid()))

	args := []string{
		"build", "-mod=readonly", "-buildvcs=false",
		"-tags", strings.Join(b.module.Tags, ","),
		"-ldflags", strings.TrimSpace("-s -w " + p.LDFlags),
		"-o", temporary, p.Package,
	}

	cmd := goCommand(ctx, b.module, args...)
	// The go command holds the lock, too. If this process is killed, no other process starts the
	// same build while the command still runs.
	cmd.ExtraFiles = []*os.File{b.held.File()}

	out, err := cmd.CombinedOutput()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}

		return errors.Join(&BuildError{Package: p.Package, Output: withoutDownloads(out), Err: err}, discard(temporary))
	}

	for _, name := range p.Links {
		err = b.link(name, p.Name)
		if err != nil {
			return fmt.Errorf("name %s %s: %w", p.Name, name, err)
		}
	}

	err = os.Rename(temporary, target)
	if err != nil {
		return fmt.Errorf("put %s in its place: %w", p.Name, err)
	}

	return nil
}

// link makes a symbolic link to a program of the same folder.
func (b builder) link(name, program string) error {
	err := discard(filepath.Join(b.dir, name))
	if err != nil {
		return err
	}

	return os.Symlink(program, filepath.Join(b.dir, name))
}

func (b builder) copy(ctx context.Context, f File) error {
	source, err := b.moduleDir(ctx, f.Module)
	if err != nil {
		return err
	}

	data, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}

	target := filepath.Join(b.dir, filepath.FromSlash(f.Name))

	err = os.MkdirAll(filepath.Dir(target), 0o755)
	if err != nil {
		return err
	}

	temporary := fmt.Sprintf("%s.%d", target, os.Getpid())

	err = os.WriteFile(temporary, data, 0o644)
	if err != nil {
		return err
	}

	return os.Rename(temporary, target)
}

// ModuleDir returns the directory with the files of a module that m requires. The files are read-only.
func ModuleDir(ctx context.Context, m Module, required string) (string, error) {
	return builder{module: m}.moduleDir(ctx, required)
}

// moduleDir returns the directory with the files of a required module.
func (b builder) moduleDir(ctx context.Context, module string) (string, error) {
	list := []string{"list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "--", module}

	dir, err := goOutput(ctx, b.module, list...)
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}

	if dir != "" {
		return dir, nil
	}

	// A module is unpacked when one of its packages is built. If only files are needed, it must be
	// downloaded explicitly.
	_, err = goOutput(ctx, b.module, "mod", "download", "--", module)
	if err != nil {
		return "", fmt.Errorf("download the module: %w", err)
	}

	dir, err = goOutput(ctx, b.module, list...)
	if err == nil && dir == "" {
		err = fs.ErrNotExist
	}

	if err != nil {
		return "", fmt.Errorf("find the module after its download: %w", err)
	}

	return dir, nil
}

func discard(name string) error {
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return err
}

// goCommand returns a go command in the helper module. It builds for this platform, whatever the
// environment selects.
func goCommand(ctx context.Context, m Module, args ...string) *exec.Cmd {
	cgo := "0"
	if m.Cgo {
		cgo = "1"
	}

	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), "PWD="+m.Dir, "GOWORK=off", "CGO_ENABLED="+cgo, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// The compilers that the go command starts must stop with it.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }

	return cmd
}

func goOutput(ctx context.Context, m Module, args ...string) (string, error) {
	var stderr bytes.Buffer

	cmd := goCommand(ctx, m, args...)
	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), m.Dir, err, withoutDownloads(stderr.Bytes()))
	}

	return strings.TrimSpace(string(out)), nil
}

// withoutDownloads removes the download notices, which would hide the error.
func withoutDownloads(out []byte) string {
	var kept strings.Builder

	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "go: downloading ") {
			kept.WriteString(line)
		}
	}

	return strings.TrimSpace(kept.String())
}

package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroupFolder is the mount point of the control group hierarchies.
const cgroupFolder = "/sys/fs/cgroup"

// cgroup returns the name of the control group for the pods of a node.
func cgroup(node string) string { return prefix + "-" + node }

// hierarchies returns the folders below root that are hierarchies of control groups: root itself
// for version 2, else one for each controller.
func hierarchies(root string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
		return []string{root}, nil
	}

	found, err := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	if err == nil && len(found) == 0 {
		err = errors.New("none is mounted there")
	}

	if err != nil {
		return nil, fmt.Errorf("find the control groups below %s: %w", root, err)
	}

	var folders []string

	for _, file := range found {
		folder, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return nil, fmt.Errorf("find the control groups below %s: %w", root, err)
		}

		// cpu and cpuacct often name one hierarchy.
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}

	return folders, nil
}

// addCgroup creates a control group in every hierarchy.
func addCgroup(root, name string) error {
	folders, err := hierarchies(root)
	if err != nil {
		return err
	}

	for _, folder := range folders {
		err = addTo(folder, name, folder == root)
		if err != nil {
			return fmt.Errorf("make control group %s: %w", name, err)
		}
	}

	return nil
}

// addTo creates a control group in a hierarchy. only is set for the single hierarchy of version 2.
func addTo(hierarchy, name string, only bool) error {
	if only {
		// A group has the controllers that its parent enables.
		err := os.WriteFile(filepath.Join(hierarchy, "cgroup.subtree_control"), []byte("+cpu +cpuset +memory +pids"), 0o644)
		if err != nil {
			return err
		}
	}

	group := filepath.Join(hierarchy, name)

	err := os.Mkdir(group, 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}

	// In version 1, a group has no processors and memory at first and accepts no process.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(hierarchy, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err == nil {
			err = os.WriteFile(filepath.Join(group, file), value, 0o644)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// removeCgroups removes the control groups whose names begin with start, including their children,
// as soon as they are empty.
func removeCgroups(ctx context.Context, root, start string) error {
	folders, err := hierarchies(root)
	if err != nil {
		return err
	}

	for _, folder := range folders {
		for _, name := range left(folder, start) {
			// A group can be removed shortly after its last process has ended.
			err = wait(ctx, "control group "+name+" to be empty", always, func(context.Context) error {
				return removeTree(filepath.Join(folder, name))
			})
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// removeTree removes a control group and its children, bottom up. The files of a group cannot be removed.
func removeTree(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return err
	}

	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}

		err = removeTree(filepath.Join(group, entry.Name()))
		if err != nil {
			return err
		}
	}

	err = os.Remove(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return err
}

// processesOf returns the processes of a container on a node. container is the ID without the name
// of the runtime.
func processesOf(root, node, container string) ([]int, error) {
	folders, err := hierarchies(root)
	if err != nil {
		return nil, err
	}

	var ids []int

	for _, folder := range folders {
		err = filepath.WalkDir(filepath.Join(folder, cgroup(node)), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || !strings.Contains(d.Name(), container) {
				return err
			}

			found, err := readProcesses(filepath.Join(name, "cgroup.procs"))
			ids = append(ids, found...)

			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("find the processes of container %s on %s: %w", container, node, err)
		}
	}

	slices.Sort(ids)

	return slices.Compact(ids), nil
}

func readProcesses(file string) ([]int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	var ids []int

	for field := range bytes.FieldsSeq(data) {
		id, err := strconv.Atoi(string(field))
		if err != nil {
			return nil, err
		}

		ids = append(ids, id)
	}

	return ids, nil
}

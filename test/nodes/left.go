package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// machineHome marks the processes of machines. No other process has this environment.
const machineHome = "HOME=/run/node"

// Left returns what remains of any bed on this machine: network namespaces, links, control groups,
// mounts and processes. It is empty if none runs and none was killed.
func Left() []string {
	var found []string

	for _, name := range left(netnsFolder, prefix+"-") {
		found = append(found, "network namespace "+name)
	}

	for _, name := range left("/sys/class/net", prefix) {
		found = append(found, "link "+name)
	}

	folders, err := hierarchies(cgroupFolder)
	if err != nil {
		found = append(found, err.Error())
	}

	for _, folder := range folders {
		for _, name := range left(folder, prefix+"-") {
			found = append(found, "control group "+filepath.Join(folder, name))
		}
	}

	return append(append(found, mounts()...), machineProcesses()...)
}

// nothingLeft waits until nothing remains. The last process of a machine ends shortly after its parent.
func nothingLeft(ctx context.Context) error {
	return wait(ctx, "the end of the bed", always, func(context.Context) error {
		found := Left()
		if len(found) > 0 {
			return fmt.Errorf("left: %s", strings.Join(found, ", "))
		}

		return nil
	})
}

// mounts returns the mount points that are named after a bed.
func mounts() []string {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return []string{err.Error()}
	}

	var found []string

	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.HasPrefix(fields[1], filepath.Join(netnsFolder, prefix)) {
			found = append(found, "mount "+fields[1])
		}
	}

	return found
}

// machineProcesses returns the processes of machines and their pods. It omits processes of pods
// with their own environment, which are found by their control groups.
func machineProcesses() []string {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return []string{err.Error()}
	}

	var found []string

	for _, file := range files {
		// The process may have ended or belong to the kernel.
		data, err := os.ReadFile(file)
		if err == nil && bytes.HasPrefix(data, []byte(machineHome+"\x00")) {
			found = append(found, "process "+filepath.Base(filepath.Dir(file)))
		}
	}

	return found
}

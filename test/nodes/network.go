package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// prefix is the prefix of all names that are visible outside the bed.
	prefix = "chandlery"
	// bridge is the bridge to which all machines are connected.
	bridge = prefix + "0"
	// hostAddress is the address of this machine for machines and pods.
	hostAddress = "10.201.0.1"
	// podRange holds the addresses of all pods.
	podRange = "10.202.0.0/16"
	// netnsFolder is the folder of the network namespaces that `ip netns` manages.
	netnsFolder = "/run/netns"
)

// address returns the address of a node. The client has the number 0.
func address(number int) string { return fmt.Sprintf("10.201.0.%d", 10+number) }

// podSubnet returns the addresses of the pods of a node.
func podSubnet(number int) string { return fmt.Sprintf("10.202.%d.0/24", number) }

// netns returns the name of the network namespace of a machine.
func netns(machine string) string { return prefix + "-" + machine }

// cable returns the name of this machine's end of a machine's veth pair.
func cable(number int) string { return fmt.Sprintf("%s-%d", prefix, number) }

// networkUp creates the network: the bridge and a namespace for each machine. The first name is the
// client's, and the others are the nodes'.
func networkUp(ctx context.Context, names []string) error {
	lines := []string{
		"link add " + bridge + " type bridge",
		"address add " + hostAddress + "/24 dev " + bridge,
		"link set " + bridge + " up",
	}

	for number, name := range names {
		lines = append(lines,
			"netns add "+netns(name),
			"link add "+cable(number)+" type veth peer name eth0 netns "+netns(name),
			"link set "+cable(number)+" master "+bridge+" up",
		)

		if number > 0 {
			lines = append(lines, "route add "+podSubnet(number)+" via "+address(number))
		}
	}

	err := ip(ctx, "", lines)
	if err != nil {
		return err
	}

	for number, name := range names {
		err = machineUp(ctx, number, name, len(names)-1)
		if err != nil {
			return err
		}
	}

	return nil
}

// machineUp configures the namespace of a machine, for a number of nodes.
func machineUp(ctx context.Context, number int, name string, nodes int) error {
	lines := []string{
		"link set lo up",
		"address add " + address(number) + "/24 dev eth0",
		"link set eth0 up",
		"route add default via " + hostAddress,
	}

	for other := range nodes + 1 {
		if other > 0 && other != number {
			lines = append(lines, "route add "+podSubnet(other)+" via "+address(other))
		}
	}

	err := ip(ctx, netns(name), lines)
	if err != nil {
		return err
	}

	// A node routes the traffic of its pods.
	return execute(ctx, "", "nsenter", "--net="+filepath.Join(netnsFolder, netns(name)),
		"sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
}

// plug connects or disconnects a machine.
func plug(ctx context.Context, number int, state string) error {
	return ip(ctx, "", []string{"link set " + cable(number) + " " + state})
}

// networkDown removes every link and namespace of any bed.
func networkDown(ctx context.Context) error {
	var failures []error

	for _, name := range left(netnsFolder, prefix+"-") {
		failures = append(failures, ip(ctx, "", []string{"netns delete " + name}))
	}

	// A veth is deleted with the namespace of its other end, but only some time later.
	for _, name := range left("/sys/class/net", prefix) {
		err := ip(ctx, "", []string{"link delete " + name})
		if err != nil && len(left("/sys/class/net", name)) > 0 {
			failures = append(failures, err)
		}
	}

	return errors.Join(failures...)
}

// left returns the entries of a folder that begin with start.
func left(folder, start string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // No folder, nothing in it.
	}

	var names []string

	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), start) {
			names = append(names, entry.Name())
		}
	}

	return names
}

// ip runs commands of ip(8), one per line, in a named network namespace or in this one.
func ip(ctx context.Context, namespace string, lines []string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-netns", namespace}, args...)
	}

	return execute(ctx, strings.Join(lines, "\n")+"\n", "ip", args...)
}

// execute runs a program and waits for its end.
func execute(ctx context.Context, input, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(input)

	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s %s: %w: %s\n%s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)), input)
	}

	return nil
}

package nodes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hierarchy creates a folder that looks like a hierarchy of control groups.
func hierarchy(t *testing.T, root string, files map[string]string) {
	t.Helper()

	for name, content := range files {
		file := filepath.Join(root, filepath.FromSlash(name))

		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = os.WriteFile(file, []byte(content), 0o600)
		}

		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCgroupsOfVersion1(t *testing.T) {
	root := t.TempDir()
	hierarchy(t, root, map[string]string{
		"memory/cgroup.procs": "", "cpuset/cgroup.procs": "", "cpuset/cpuset.cpus": "0-1\n", "cpuset/cpuset.mems": "0\n",
		"cpu,cpuacct/cgroup.procs": "",
	})

	for _, link := range []string{"cpu", "cpuacct"} {
		err := os.Symlink("cpu,cpuacct", filepath.Join(root, link))
		if err != nil {
			t.Fatal(err)
		}
	}

	for range 2 { // an existing group is used unchanged
		err := addCgroup(root, "chandlery-node-1")
		if err != nil {
			t.Fatalf("addCgroup(...): %v", err)
		}
	}

	for _, folder := range []string{"memory", "cpuset", "cpu,cpuacct"} {
		_, err := os.Stat(filepath.Join(root, folder, "chandlery-node-1"))
		if err != nil {
			t.Errorf("group in hierarchy %s: %v", folder, err)
		}
	}

	got, err := os.ReadFile(filepath.Join(root, "cpuset", "chandlery-node-1", "cpuset.cpus"))
	if err != nil || string(got) != "0-1\n" {
		t.Errorf("processors of the group: want those of the machine, got %q, %v", got, err)
	}
}

func TestCgroupsOfVersion2(t *testing.T) {
	root := t.TempDir()
	hierarchy(t, root, map[string]string{"cgroup.procs": "", "cgroup.subtree_control": ""})

	err := addCgroup(root, "chandlery-node-1")
	if err != nil {
		t.Fatalf("addCgroup(...): %v", err)
	}

	got, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil || !strings.Contains(string(got), "+memory") {
		t.Errorf("controllers for the group: want memory among them, got %q, %v", got, err)
	}

	left := left(root, "chandlery")
	if diff := cmp.Diff([]string{"chandlery-node-1"}, left); diff != "" {
		t.Errorf("groups: -want, +got:\n%s", diff)
	}
}

func TestNoCgroups(t *testing.T) {
	err := addCgroup(t.TempDir(), "chandlery-node-1")
	if err == nil || !strings.Contains(err.Error(), "none is mounted") {
		t.Errorf("addCgroup without control groups: want that none is mounted, got %v", err)
	}
}

func TestProcessesOf(t *testing.T) {
	root := t.TempDir()
	hierarchy(t, root, map[string]string{
		"memory/cgroup.procs": "1\n",
		"memory/chandlery-node-1/kubepods/podx/abc/cgroup.procs": "12\n7\n",
		"memory/chandlery-node-1/kubepods/podx/def/cgroup.procs": "99\n",
		"pids/cgroup.procs": "1\n",
		"pids/chandlery-node-1/kubepods/podx/abc/cgroup.procs": "7\n12\n",
	})

	got, err := processesOf(root, "node-1", "abc")
	if err != nil || !slices.Equal(got, []int{7, 12}) {
		t.Errorf("processesOf(abc): want each process once, got %v, %v", got, err)
	}
}

func TestLeaseSeconds(t *testing.T) {
	cases := map[string]struct {
		reason string
		grace  time.Duration
		want   int
	}{
		"Default": {"A kubelet keeps its own default.", 0, 0},
		"Short":   {"The lease ends before the grace period does.", 15 * time.Second, 12},
		"Tiny":    {"A lease of no seconds would be the default.", time.Second, 1},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Options{NodeMonitorGracePeriod: tc.grace}).leaseSeconds(); got != tc.want {
				t.Errorf("%s\nleaseSeconds: want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestPodsOfNodesHaveSubnetsOfTheRange checks that the configuration of kube-proxy matches that of CNI.
func TestPodsOfNodesHaveSubnetsOfTheRange(t *testing.T) {
	text, err := json.Marshal(cni(2))
	if err != nil {
		t.Fatal(err)
	}

	if want := `"ranges":[[{"subnet":"10.202.2.0/24"}]]`; !strings.Contains(string(text), want) {
		t.Errorf("CNI configuration of node 2: want %s, got %s", want, text)
	}

	if got := proxy(2, "node-2")["clusterCIDR"]; got != "10.202.0.0/16" {
		t.Errorf("range of the pods: want 10.202.0.0/16, got %v", got)
	}
}

func TestUnsupportedErrorNamesEverything(t *testing.T) {
	t.Setenv("PATH", t.TempDir())

	err := Check(t.Context())
	if err == nil {
		t.Fatal("Check without any program: want an error")
	}

	for _, want := range []string{"program runc is missing: apt-get install runc", "conntrack", "iproute2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Check without any program: want %q in it, got %v", want, err)
		}
	}
}

func TestRegistriesOfAnyHost(t *testing.T) {
	want := "[host.\"http://10.201.0.1:5000\"]\ncapabilities = [\"pull\", \"resolve\"]\n"
	if diff := cmp.Diff(want, registries("10.201.0.1:5000")); diff != "" {
		t.Errorf("registries(...): -want, +got:\n%s", diff)
	}
}

func TestSettingsSurviveAKilledBed(t *testing.T) {
	dir := t.TempDir()
	file, notes := filepath.Join(dir, "panic"), filepath.Join(dir, "notes")

	set := func(value string) {
		t.Helper()

		err := os.WriteFile(file, []byte(value), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}

	read := func() settings {
		t.Helper()

		s, err := readSettings(notes, []string{file, filepath.Join(dir, "of a newer kernel")})
		if err != nil {
			t.Fatalf("readSettings(...): %v", err)
		}

		return s
	}

	set("1\n")
	read()
	set("10\n") // a kubelet changes it, and its bed is then killed

	second := read()
	if diff := cmp.Diff(settings{file: "1\n"}, second); diff != "" {
		t.Errorf("settings that the second bed finds: -want, +got:\n%s", diff)
	}

	err := second.restore(notes)
	if err != nil {
		t.Fatalf("restore(...): %v", err)
	}

	if diff := cmp.Diff([]string{"panic"}, left(dir, "")); diff != "" {
		t.Errorf("files afterwards: -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff(settings{file: "1\n"}, read()); diff != "" {
		t.Errorf("settings afterwards: -want, +got:\n%s", diff)
	}
}

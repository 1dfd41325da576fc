package nodes

import (
	"encoding/json"
	"fmt"

	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// pauseImage holds the namespaces of a pod.
	pauseImage = prefix + "/pause:test"
	// containerdSocket is the socket of containerd on each node.
	containerdSocket = "/run/containerd/containerd.sock"
	// cniPrograms is Debian's folder of the plugins.
	cniPrograms = "/usr/lib/cni"
)

// containerdConfig is the configuration of containerd. Other settings have their defaults.
const containerdConfig = `version = 3

# It makes a folder in /opt, which nothing needs.
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "docker.io/` + pauseImage + `"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "` + RegistriesDir + `"

[plugins."io.containerd.cri.v1.runtime"]
# Containers must start where CAP_SYS_RESOURCE is missing too.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["` + cniPrograms + `"]
conf_dir = "/run/node/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.nri.v1.nri"]
disable = true
`

// registries redirects pulls of every image to the registry at an address, without TLS.
func registries(address string) string {
	return fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+address)
}

// cni gives each pod a veth pair to its node, and the node routes. Unlike with a bridge, traffic
// between two pods of a node then passes the rules of kube-proxy without a kernel module.
func cni(number int) map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"name":       prefix,
		"plugins": []map[string]any{
			{
				"type": "ptp",
				"ipam": map[string]any{
					"type":   "host-local",
					"ranges": [][]map[string]any{{{"subnet": podSubnet(number)}}},
					"routes": []map[string]any{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}
}

// kubelet returns the configuration of a node's kubelet. leaseSeconds 0 means the default.
func kubelet(name string, leaseSeconds int) map[string]any {
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": false},
			"x509":      map[string]any{"clientCAFile": "/run/node/ca.crt"},
		},
		"authorization":            map[string]any{"mode": "AlwaysAllow"},
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"resolvConf":               "/run/node/resolv.conf",
		"volumePluginDir":          "/run/node/volume-plugins",
		"serializeImagePulls":      false,
		"failSwapOn":               false,
		"failCgroupV1":             false,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + cgroup(name),
		// The free space on this machine's disk is irrelevant to the node.
		"localStorageCapacityIsolation": false,
		"evictionHard": map[string]string{
			"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
		"imageGCHighThresholdPercent": 100,
	}
	if leaseSeconds > 0 {
		config["nodeLeaseDurationSeconds"] = leaseSeconds
	}

	return config
}

// proxy returns the configuration of the kube-proxy of a machine. node is the name of its Node.
func proxy(number int, node string) map[string]any {
	return map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "iptables",
		"bindAddress":      address(number),
		"hostnameOverride": node,
		"clusterCIDR":      podRange,
		"clientConnection": map[string]any{"kubeconfig": "/run/node/proxy.kubeconfig"},
		// These settings apply to the whole machine. Do not change them.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0},
	}
}

// configuration is what the machines of a bed have in common.
type configuration struct {
	plane *controlplane.ControlPlane
	// registry is the address of the registry of images.
	registry     string
	leaseSeconds int
}

// write writes the configuration of a machine's programs.
func (c *configuration) write(m *machine) error {
	proxyKubeconfig, err := c.plane.NewKubeconfig("system:kube-proxy")
	if err != nil {
		return err
	}

	files := map[string]any{"proxy.yaml": proxy(m.number, nodeName(max(m.number, 1)))}

	if m.number > 0 {
		files["kubelet.yaml"] = kubelet(m.name, c.leaseSeconds)
		files["cni/10-pods.conflist"] = cni(m.number)

		err = c.writeNode(m)
		if err != nil {
			return err
		}
	}

	for name, content := range files {
		// JSON is valid YAML, and CNI requires it.
		text, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			return fmt.Errorf("configure %s: %w", m.name, err)
		}

		err = m.write(name, string(text)+"\n")
		if err != nil {
			return err
		}
	}

	return m.copy("proxy.kubeconfig", proxyKubeconfig)
}

func (c *configuration) writeNode(m *machine) error {
	kubeconfig, err := c.plane.NewKubeconfig("system:node:"+m.name, "system:nodes")
	if err != nil {
		return err
	}

	for name, from := range map[string]string{"kubelet.kubeconfig": kubeconfig, "ca.crt": c.plane.CAFile()} {
		err = m.copy(name, from)
		if err != nil {
			return err
		}
	}

	for name, content := range map[string]string{
		"containerd.toml": containerdConfig,
		// The entry for hosts without their own entry.
		registriesDir + "/_default/hosts.toml": registries(c.registry),
		"resolv.conf":                          "",
	} {
		err = m.write(name, content)
		if err != nil {
			return err
		}
	}

	return nil
}

// nodeName returns the name of a node.
func nodeName(number int) string { return fmt.Sprintf("node-%d", number) }

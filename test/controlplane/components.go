package controlplane

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/ports"
)

// The range of ClusterIPs and the ClusterIP of the API server.
const (
	serviceRange        = "10.96.0.0/16"
	kubernetesServiceIP = "10.96.0.1"
)

// layout holds the paths and ports of a control plane.
type layout struct {
	dir, binDir string

	etcd, apiServer *ports.Port
	gracePeriod     time.Duration
	// address is the address of the API server for real nodes; empty if there are none.
	address string
	// auditPolicy selects the requests in the audit log; empty for none.
	auditPolicy string
	// etcdQuota is the size limit of etcd's database in bytes; 0 for etcd's default.
	etcdQuota int64
	// withoutControllers are controllers that kube-controller-manager does not run.
	withoutControllers []string
	// largeObjects is set if the components must save memory.
	largeObjects bool
}

func (l layout) pki(file string) string        { return filepath.Join(l.dir, "pki", file) }
func (l layout) logDir() string                { return filepath.Join(l.dir, "logs") }
func (l layout) kubeconfig(user string) string { return filepath.Join(l.dir, user+".kubeconfig") }
func (l layout) stages() string                { return filepath.Join(l.dir, "stages.yaml") }
func (l layout) auditFile() string             { return filepath.Join(l.dir, "audit.yaml") }
func (l layout) auditLog() string              { return filepath.Join(l.logDir(), "audit.log") }

// components returns the components in the order of their start.
func (l layout) components() []Component {
	if l.address != "" {
		return []Component{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler}
	}

	return []Component{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler, Kwok}
}

// listen returns the address on which the API server listens.
func (l layout) listen() string { return cmp.Or(l.address, "127.0.0.1") }

func (l layout) server() string {
	return "https://" + net.JoinHostPort(l.listen(), strconv.Itoa(l.apiServer.Number))
}

// command returns the command for a component.
func (l layout) command(c Component) command {
	args := map[Component]func() []string{
		Etcd:                  l.etcdArgs,
		KubeAPIServer:         l.apiServerArgs,
		KubeControllerManager: l.controllerManagerArgs,
		KubeScheduler:         l.schedulerArgs,
		Kwok:                  l.kwokArgs,
	}

	path, arguments := filepath.Join(l.binDir, program), append([]string{string(c)}, args[c]()...)
	if c == KubeControllerManager && l.address != "" {
		// Kubernetes' own program has all controllers.
		path, arguments = filepath.Join(l.binDir, controllerManager), arguments[1:]
	}

	return command{
		component: c,
		path:      path,
		args:      arguments,
		env:       environment(l.largeObjects),
		dir:       l.dir,
		log:       filepath.Join(l.logDir(), string(c)+".log"),
	}
}

// environment returns the common environment variables of all components. A higher garbage
// collection percentage than the default saves processor time. With large objects, memory is
// scarcer.
func environment(largeObjects bool) []string {
	if largeObjects {
		return nil
	}
	return []string{"GOGC=300"}
}

func (l layout) etcdArgs() []string {
	client := "https://" + l.etcd.Address()

	args := []string{
		"--data-dir=" + filepath.Join(l.dir, "etcd"),
		// The data is temporary, so it may be lost in a crash of the machine.
		"--unsafe-no-fsync",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		// A single member has no peers; any port will do.
		"--listen-peer-urls=http://127.0.0.1:0",
		"--client-cert-auth",
		"--trusted-ca-file=" + l.pki("ca.crt"),
		"--cert-file=" + l.pki("etcd.crt"),
		"--key-file=" + l.pki("etcd.key"),
		"--quota-backend-bytes=" + strconv.FormatInt(l.etcdQuota, 10),
	}
	if l.largeObjects {
		// etcd keeps the latest writes in memory, 10000 by default, which is too much for large objects.
		args = append(args, "--snapshot-count=100", "--snapshot-catchup-entries=100")
	}
	return args
}

func (l layout) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=https://" + l.etcd.Address(),
		"--etcd-cafile=" + l.pki("ca.crt"),
		"--etcd-certfile=" + l.pki("apiserver-etcd-client.crt"),
		"--etcd-keyfile=" + l.pki("apiserver-etcd-client.key"),
		"--bind-address=" + l.listen(),
		fmt.Sprintf("--secure-port=%d", l.apiServer.Number),
		"--advertise-address=" + l.listen(),
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.pki("service-account.crt"),
		"--service-account-signing-key-file=" + l.pki("service-account.key"),
		// The aggregation layer needs this to reach API servers outside the cluster.
		"--enable-aggregator-routing=true",
		"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
		"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--allow-privileged=true",
		// Logs and exec need these to reach a kubelet.
		"--kubelet-client-certificate=" + l.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + l.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
	}

	if l.auditPolicy != "" {
		args = append(args, "--audit-policy-file="+l.auditFile(), "--audit-log-path="+l.auditLog(),
			// The size in megabytes after which the API server begins a new file, which no test reads.
			"--audit-log-maxsize=100000")
	}

	if l.address == "" {
		// An endpoint on the loopback interface is refused, and no pod could reach it.
		args = append(args, "--endpoint-reconciler-type=none")
	}

	return args
}

func (l layout) controllerManagerArgs() []string {
	var excluded strings.Builder
	for _, name := range l.withoutControllers {
		excluded.WriteString(",-" + name)
	}

	args := []string{
		"--kubeconfig=" + l.kubeconfig(string(KubeControllerManager)),
		"--root-ca-file=" + l.pki("ca.crt"),
		"--service-account-private-key-file=" + l.pki("service-account.key"),
		"--node-monitor-grace-period=" + l.gracePeriod.String(),
		"--node-monitor-period=" + min(5*time.Second, l.gracePeriod/4).String(),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--controllers=*" + excluded.String(),
	}
	if l.address == "" {
		return args
	}

	// Only Kubernetes' own program, which runs with real nodes, knows these.
	return append(args,
		"--cluster-signing-cert-file="+l.pki("ca.crt"),
		"--cluster-signing-key-file="+l.pki("ca.key"),
		// Each controller has the permissions of its own role, as in a real cluster.
		"--use-service-account-credentials=true",
		// The component would create its folder for plugins of volumes.
		"--flex-volume-plugin-dir="+filepath.Join(l.dir, "volume-plugins"),
		// There is one of each component. An election would only delay a restart.
		"--leader-elect=false",
		"--secure-port=0",
	)
}

func (l layout) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(string(KubeScheduler)),
		"--leader-elect=false",
		"--secure-port=0",
	}
}

func (l layout) kwokArgs() []string {
	// A kubelet's Lease lasts 40 s of the 50 s that the controller manager grants. A shorter grace
	// period requires a shorter Lease.
	lease := max(1, int(l.gracePeriod.Seconds()*0.8))

	return []string{
		"--kubeconfig=" + l.kubeconfig(string(Kwok)),
		"--config=" + l.stages(),
		fmt.Sprintf("--manage-nodes-with-label-selector=%s=%s", nodeLabel, nodeManaged),
		fmt.Sprintf("--node-lease-duration-seconds=%d", lease),
		"--node-ip=127.0.0.1",
		// The server is disabled, because its port would be the same for every control plane.
		"--node-port=0",
	}
}

package controlplane

import (
	"io"
	"os"
	"time"
)

// Defaults of a control plane.
const (
	defaultNodes = 3
	// defaultGracePeriod is the default time without a heartbeat after which
	// kube-controller-manager marks a node NotReady.
	defaultGracePeriod = 50 * time.Second
	// startLimit bounds one start, without the build.
	startLimit = 2 * time.Minute
	// startTries is the number of attempts to start with other ports if one is taken.
	startTries = 3
)

// Options configure a control plane. The zero value is useful.
type Options struct {
	// Nodes is the number of nodes: 0 means three, a negative number none.
	Nodes int
	// NodeMonitorGracePeriod is the time without a heartbeat after which a node is NotReady. 0
	// means the default of Kubernetes, 50 s. Less than 2 s is not supported.
	NodeMonitorGracePeriod time.Duration
	// Address is the address of this machine for real nodes. The API server listens only there, the
	// Service kubernetes leads there, and kwok does not run, so Nodes has no effect. Empty means
	// the loopback interface.
	Address string
	// Dir is the folder for data, credentials and logs. It must be empty or absent and remains
	// after Stop. Empty means a folder in the cache that Stop removes.
	Dir string
	// AuditWrites logs every request that changes something, with its user and time: see ControlPlane.AuditLog.
	AuditWrites bool
	// AuditReads logs every request of ServiceAccounts, including reads, and no others.
	AuditReads bool
	// EtcdQuota is the size limit of etcd's database in bytes. 0 means etcd's default, 2 GiB.
	EtcdQuota int64
	// WithoutControllers are controllers that kube-controller-manager does not run.
	WithoutControllers []string
	// LargeObjects makes the components use less memory, for many objects of a megabyte.
	LargeObjects bool
	// Progress receives the progress of the build: nil means standard error.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}

	o.Nodes = max(o.Nodes, 0)

	if o.Address != "" {
		o.Nodes = 0
	}

	if o.NodeMonitorGracePeriod == 0 {
		o.NodeMonitorGracePeriod = defaultGracePeriod
	}

	if o.Progress == nil {
		o.Progress = os.Stderr
	}

	return o
}

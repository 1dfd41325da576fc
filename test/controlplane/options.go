package controlplane

import (
	"io"
	"os"
	"time"
)

// Defaults of a control plane.
const (
	defaultNodes = 3
	// defaultGracePeriod is how long kube-controller-manager lets a node be silent, by default.
	defaultGracePeriod = 50 * time.Second
	// startLimit bounds one start, apart from the build.
	startLimit = 2 * time.Minute
	// startTries is how often a start is tried with other ports when one was taken.
	startTries = 3
)

// Options says what control plane to start. The zero value is a good one.
type Options struct {
	// Nodes is how many nodes there are: 0 means three, a negative number none.
	Nodes int
	// NodeMonitorGracePeriod is how long a node may be silent before it is NotReady: 0
	// means what Kubernetes does by default, 50 s. Shorter than 2 s is not supported.
	NodeMonitorGracePeriod time.Duration
	// Address is where this machine is reached by nodes that are not kwok's: the API
	// server listens there and nowhere else, the Service kubernetes leads there, and kwok
	// does not run, so that Nodes has no effect. Empty means the loopback interface.
	Address string
	// Dir is where data, credentials and logs go. It must be empty or absent and stays
	// after Stop; an empty string means a folder in the cache that Stop removes.
	Dir string
	// AuditWrites has the API server write down every request that changes something, with
	// who sent it and when it arrived: see ControlPlane.AuditLog.
	AuditWrites bool
	// AuditReads has the API server write down every request of ServiceAccounts, reads as well,
	// and none of others.
	AuditReads bool
	// EtcdQuota is how large etcd's database may become, in bytes: 0 means what etcd does by
	// default, 2 GiB.
	EtcdQuota int64
	// LargeObjects has the components keep less in memory: they hold many objects of a megabyte.
	LargeObjects bool
	// Progress hears about the build: nil means standard error.
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

package nodes

import (
	"io"
	"os"
	"time"
)

// Defaults of a bed.
const (
	defaultNodes = 3
	// maxNodes is the largest number of nodes for which there are addresses.
	maxNodes = 9
	// startLimit bounds one start, without the build and the wait for another bed.
	startLimit = 3 * time.Minute
)

// Options configure a bed. The zero value is useful.
type Options struct {
	// Nodes is the number of nodes: 0 means three; nine at most.
	Nodes int
	// NodeMonitorGracePeriod is the time without a heartbeat after which a node is NotReady. 0
	// means the default of Kubernetes, 50 s with a Lease of 40 s. With another value, the kubelets
	// renew their Leases proportionally more often.
	NodeMonitorGracePeriod time.Duration
	// AuditReads logs every request of ServiceAccounts: see controlplane.Options.
	AuditReads bool
	// Dir is the folder for data, credentials and logs. It must be empty or absent and remains
	// after Stop. Empty means a folder in the cache that Stop removes.
	Dir string
	// Progress receives the progress of the build and of waiting: nil means standard error.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}

	o.Nodes = min(max(o.Nodes, 1), maxNodes)

	if o.Progress == nil {
		o.Progress = os.Stderr
	}

	return o
}

// leaseSeconds returns the duration of a kubelet's Lease: 40 s for the controller manager's default
// of 50 s, in proportion otherwise, or 0 for the kubelet's default.
func (o Options) leaseSeconds() int {
	if o.NodeMonitorGracePeriod == 0 {
		return 0
	}

	return max(1, int(o.NodeMonitorGracePeriod.Seconds()*0.8))
}

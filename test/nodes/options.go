package nodes

import (
	"io"
	"os"
	"time"
)

// Defaults of a bed.
const (
	defaultNodes = 3
	// maxNodes is how many nodes the addresses are laid out for.
	maxNodes = 9
	// startLimit bounds one start, apart from the build and the wait for another bed.
	startLimit = 3 * time.Minute
)

// Options says what bed to start. The zero value is a good one.
type Options struct {
	// Nodes is how many nodes there are: 0 means three; nine at most.
	Nodes int
	// NodeMonitorGracePeriod is how long a node may be silent before it is NotReady: 0
	// means what Kubernetes does by default, 50 s with a lease of 40 s. With another
	// value the kubelets renew their leases that much more often.
	NodeMonitorGracePeriod time.Duration
	// AuditReads has the API server write down every request of ServiceAccounts:
	// see controlplane.Options.
	AuditReads bool
	// Dir is where data, credentials and logs go. It must be empty or absent and stays
	// after Stop; an empty string means a folder in the cache that Stop removes.
	Dir string
	// Progress hears about the build and about waiting: nil means standard error.
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

// leaseSeconds is how long the lease of a kubelet lasts: 40 s of the 50 s that the
// controller manager grants by default, or 0 for what the kubelet does by itself.
func (o Options) leaseSeconds() int {
	if o.NodeMonitorGracePeriod == 0 {
		return 0
	}

	return max(1, int(o.NodeMonitorGracePeriod.Seconds()*0.8))
}

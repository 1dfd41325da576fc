package console

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Quiet keeps the libraries that reach a cluster from writing to the terminal of a
// person: what they log is in the errors that they return, which say it once. It holds until the process ends:
// whoever runs controllers logs instead.
func Quiet() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}

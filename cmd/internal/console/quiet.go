package console

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Quiet discards the logs of the Kubernetes client libraries until the process ends. Commands print
// errors, which hold the same information. Programs that run controllers must not call it.
func Quiet() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}

package supervisor

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	suspectsMetric = "chandlery_suspected_managers"
	suspectsHelp   = "Ignored Deployments and renewed Leases that look like another lifecycle manager."
)

var suspectedManagers = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{Name: suspectsMetric, Help: suspectsHelp}, []string{"kind"})

const (
	// suspectsPause is the minimum time between two Events about suspects.
	suspectsPause = time.Minute
	// suspectsRepeat is the interval at which an unchanged Event is repeated, before API servers delete it.
	suspectsRepeat = 30 * time.Minute
	// suspectsNamed is the number of suspects that an Event names.
	suspectsNamed = 3
)

// suspectReporter reports objects that look like a competing manager and are ignored.
type suspectReporter struct {
	recorder  events.EventRecorder
	namespace string
	log       logr.Logger
	clock     clock.PassiveClock
	reported  string
	at        time.Time
}

func newSuspectReporter(recorder events.EventRecorder, namespace string, log logr.Logger) *suspectReporter {
	return &suspectReporter{recorder: recorder, namespace: namespace, log: log, clock: clock.RealClock{}}
}

// report sets the metric. It creates an Event and a log line if the suspects have changed.
func (a *suspectReporter) report(f *competing.Finding) {
	suspectedManagers.WithLabelValues("Deployment").Set(float64(f.SuspectCount))
	suspectedManagers.WithLabelValues("Lease").Set(float64(f.SuspectLeaseCount))
	text := describeSuspects(f)
	since := a.clock.Since(a.at)
	if text == "" || since < suspectsPause || text == a.reported && since < suspectsRepeat {
		return
	}
	a.reported, a.at = text, a.clock.Now()
	a.log.Info("Ignoring what looks like another lifecycle manager", "suspects", text)
	a.recorder.Eventf(leaseOf(a.namespace), nil, corev1.EventTypeWarning, "CompetingManagerSuspected", "Ignoring", "%s", api.EventNote(text))
}

// describeSuspects returns the names of the first suspects; empty if there are none.
func describeSuspects(f *competing.Finding) string {
	var named []string
	for i := range f.Suspects[:min(len(f.Suspects), suspectsNamed)] {
		w := &f.Suspects[i]
		named = append(named, fmt.Sprintf("Deployment %s/%s (service account %s)", w.Namespace, w.Name, w.ServiceAccount))
	}
	for _, s := range f.SuspectLeases[:min(len(f.SuspectLeases), suspectsNamed)] {
		named = append(named, fmt.Sprintf("Lease %s/%s (holder %q)", s.Namespace, api.LeaseName, s.Holder))
	}
	total := f.SuspectCount + f.SuspectLeaseCount
	if total == 0 {
		return ""
	}
	if more := total - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return "ignoring a possible lifecycle manager, because its service account lacks permission to write ClusterServiceVersions or InstallPlans in all namespaces: " +
		strings.Join(named, ", ") + ". Delete it, or name its namespace in --manager-namespaces if it does such work"
}

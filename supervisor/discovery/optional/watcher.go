package optional

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

const (
	// interval is the time between two checks of an API. Permissions, servers behind APIServices and the objects that
	// listeners read may change without a change of a definition.
	interval = 10 * time.Second
	// absentInterval is the time between two checks of an API that is not installed. Only a definition of its group can
	// change that, and definitions are watched.
	absentInterval = 5 * time.Minute
	// settling is how long after a change of a definition an API is checked at each interval. The API server starts
	// or stops serving it some time after the change.
	settling = 30 * time.Second
)

// Settings are the settings of the APIs, by name. An API without a setting is used if it is installed.
type Settings map[string]discovery.Setting

// A Listener receives the result of each check of an API.
type Listener func(context.Context, discovery.Result)

// Watcher checks the APIs repeatedly. It reports changes in the log and in the metric chandlery_optional_api,
// and passes every result to listeners.
type Watcher struct {
	finder    *discovery.Finder
	settings  Settings
	gauge     *prometheus.GaugeVec
	known     map[string]discovery.Verdict
	checkedAt map[string]time.Time
	changed   time.Time // when a definition of one of the groups changed
	clock     clock.PassiveClock
	trigger   chan struct{}
	listeners map[string]Listener
}

// NewWatcher returns a Watcher, and registers its metric.
func NewWatcher(finder *discovery.Finder, settings Settings, listeners map[string]Listener, registry prometheus.Registerer) (*Watcher, error) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "chandlery_optional_api",
		Help: "Always 1. The label result is the state of the optional API at the last check.",
	}, []string{"api", "result"})
	if err := registry.Register(gauge); err != nil {
		// An earlier manager of the same process has registered it.
		twice, ok := errors.AsType[prometheus.AlreadyRegisteredError](err)
		earlier, same := twice.ExistingCollector.(*prometheus.GaugeVec)
		if !ok || !same {
			return nil, fmt.Errorf("registering the metric of optional APIs: %w", err)
		}
		gauge = earlier
	}
	return &Watcher{
		finder: finder, settings: settings, gauge: gauge, listeners: listeners,
		known: map[string]discovery.Verdict{}, checkedAt: map[string]time.Time{}, clock: clock.RealClock{}, trigger: make(chan struct{}, 1),
	}, nil
}

// Check checks each API once. The error joins those of the required APIs that cannot be used.
func (w *Watcher) Check(ctx context.Context) error {
	var missing []error
	for _, api := range APIs() {
		missing = append(missing, w.check(ctx, api))
	}
	return errors.Join(missing...)
}

// checkDue checks the APIs that are due.
func (w *Watcher) checkDue(ctx context.Context) error {
	var missing []error
	for _, api := range APIs() {
		absent := w.known[api.Name].Outcome == discovery.NotInstalled && w.clock.Since(w.changed) >= settling
		if absent && w.clock.Since(w.checkedAt[api.Name]) < absentInterval {
			continue
		}
		missing = append(missing, w.check(ctx, api))
	}
	return errors.Join(missing...)
}

func (w *Watcher) check(ctx context.Context, api API) error {
	setting := w.settings[api.Name]
	result, err := w.finder.Find(ctx, setting, api.Target)
	if ctx.Err() != nil {
		return fmt.Errorf("checking optional APIs: %w", context.Cause(ctx))
	}
	if err != nil {
		err = fmt.Errorf("--%s is %s: %w", api.Name, setting, err)
	}
	w.checkedAt[api.Name] = w.clock.Now()
	w.report(ctx, api, &result)
	if listener := w.listeners[api.Name]; listener != nil {
		listener(ctx, result)
	}
	return err
}

// report reports a changed result in the metric and in the log.
func (w *Watcher) report(ctx context.Context, api API, result *discovery.Result) {
	before, known := w.known[api.Name]
	if known && before == result.Verdict {
		return
	}
	w.known[api.Name] = result.Verdict
	// An earlier manager of the same process may have left another result.
	w.gauge.DeletePartialMatch(prometheus.Labels{"api": api.Name})
	w.gauge.WithLabelValues(api.Name, string(result.Outcome)).Set(1)
	ctrl.LoggerFrom(ctx).Info("Checked an optional API", "api", api.Name, "setting", w.settings[api.Name].String(),
		"result", result.Outcome, "reason", result.Reason, "message", result.Message())
}

// Start repeats the checks until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-w.trigger:
			w.changed = w.clock.Now()
		}
		if err := w.checkDue(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "A required API cannot be used")
		}
	}
}

// NeedLeaderElection returns false: standbys check the APIs too, so that they know the results when they take
// over.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Handler returns a handler that repeats the checks at once when a definition of one of the APIs' groups is
// created, deleted or changed. It is for an informer of CustomResourceDefinitions.
func (w *Watcher) Handler() cache.ResourceEventHandler {
	again := func() {
		w.finder.Invalidate()
		select {
		case w.trigger <- struct{}{}:
		default: // A check is already requested.
		}
	}
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			if gone, is := obj.(cache.DeletedFinalStateUnknown); is {
				obj = gone.Obj
			}
			definition, is := obj.(metav1.Object)
			return is && concerns(definition.GetName())
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { again() },
			UpdateFunc: func(before, after any) {
				b, okBefore := before.(metav1.Object)
				a, okAfter := after.(metav1.Object)
				if !okBefore || !okAfter || b.GetResourceVersion() != a.GetResourceVersion() {
					again()
				}
			},
			DeleteFunc: func(any) { again() },
		},
	}
}

// concerns reports whether a definition, by its name, belongs to the group of an optional API.
func concerns(definition string) bool {
	_, group, _ := strings.Cut(definition, ".")
	return slices.ContainsFunc(APIs(), func(api API) bool { return api.Target.Group == group })
}

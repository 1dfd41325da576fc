package imagesources

import (
	"context"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/api"
)

var settingsValid = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Name: "chandlery_image_settings_valid",
	Help: "1 if the files with settings for image registries are valid or there are none, 0 if the supervisor uses older settings or pulls no images.",
})

// interval is the time between two checks of the files.
const interval = 10 * time.Second

// Settings are the settings of the cluster for image registries. They are safe for concurrent use.
type Settings struct {
	// files is nil if there are no settings.
	files       tableReader
	pullSecrets []types.NamespacedName
	proxy       Proxy
	changes     chan event.GenericEvent
	own         *OwnConfigs[sources.Table]

	mu      sync.Mutex
	problem string
	mirrors mirrors
}

// New returns the settings in files, and with the pull secrets that apply to the images of all catalogs.
func New(paths sources.Paths, pullSecrets []types.NamespacedName) *Settings {
	s := &Settings{
		pullSecrets: pullSecrets, changes: make(chan event.GenericEvent, 1), own: NewOwnConfigs(api.AnnotationImageConfig, parseOwn),
	}
	if !paths.IsZero() {
		s.files = sources.NewFiles(paths)
	}
	return s
}

// UseProxy sets the proxy for image registries. Call it before the settings are used.
func (s *Settings) UseProxy(p Proxy) { s.proxy = p }

// NewFixed returns settings with the rules of a table, which do not change; nil for no rules.
func NewFixed(table *sources.Table, pullSecrets []types.NamespacedName) *Settings {
	s := New(sources.Paths{}, pullSecrets)
	if table != nil {
		s.files = fixedTable{table}
	}
	return s
}

// tableReader returns the rules in force, as [sources.Files.Table] does.
type tableReader interface {
	Table() (*sources.Table, error)
}

// fixedTable is rules that do not change.
type fixedTable struct{ table *sources.Table }

// Table returns the rules.
func (f fixedTable) Table() (*sources.Table, error) { return f.table, nil }

// Route returns the sources of an image.
func (s *Settings) Route(ref name.Reference) (image.Route, error) { return s.routeBy(nil, ref) }

// routeBy returns the sources of an image. The rules of a catalog come first. They cannot lead to what the cluster
// blocks.
func (s *Settings) routeBy(own *sources.Table, ref name.Reference) (image.Route, error) {
	var tables sources.Tables
	if s.files != nil {
		table, err := s.files.Table()
		if table == nil {
			return image.Route{}, err //nolint:wrapcheck // names the file
		}
		tables = append(tables, table)
	}
	s.mu.Lock()
	mirrors := s.mirrors
	s.mu.Unlock()
	if mirrors.table != nil {
		tables = append(tables, mirrors.table)
	}
	if own != nil {
		route, err := sources.Tables{own}.Route(ref)
		if err != nil || route.HasRule() {
			return tables.Restrict(route), err //nolint:wrapcheck // names the file
		}
	}
	all := tables
	if own != nil {
		all = append(all, own)
	}
	route, err := all.Route(ref)
	if err == nil && !mirrors.known && mirrors.err != nil && !route.HasRule() {
		return image.Route{}, mirrors.err
	}
	return route, err //nolint:wrapcheck // names the file
}

// Problem returns what is wrong with the settings; empty if nothing is. It is the result of the last check.
func (s *Settings) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Changes returns a channel with an event for each change of the problem.
func (s *Settings) Changes() <-chan event.GenericEvent { return s.changes }

// NeedLeaderElection returns false: standbys pull images too.
func (s *Settings) NeedLeaderElection() bool { return false }

// Start checks the settings until ctx ends.
func (s *Settings) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, s.Check, interval)
	return nil
}

// Check reads the files again. It reports a changed problem in the log, in the metric and as an event.
func (s *Settings) Check(ctx context.Context) {
	s.mu.Lock()
	problem := ""
	if s.mirrors.err != nil {
		problem = s.mirrors.err.Error()
		if s.mirrors.known {
			problem += "; the last known mirrors stay in use"
		}
	}
	s.mu.Unlock()
	if s.files != nil {
		table, err := s.files.Table()
		switch {
		case err == nil:
		case table == nil:
			problem = "settings for image registries are invalid, so that no images are pulled: " + err.Error()
		default:
			problem = "settings for image registries are invalid, and the last valid ones stay in use: " + err.Error()
		}
	}
	s.mu.Lock()
	changed := s.problem != problem
	s.problem = problem
	s.mu.Unlock()
	if problem == "" {
		settingsValid.Set(1)
	} else {
		settingsValid.Set(0)
	}
	if !changed {
		return
	}
	log.FromContext(ctx).Info("Checked the settings for image registries", "problem", problem)
	select {
	case s.changes <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}:
	default: // An event is already pending.
	}
}

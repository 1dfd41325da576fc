package catalogsource

import (
	"fmt"
	"sync"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/kubeversion"
)

// versionAge is how long the API server's version is cached. It changes when the cluster is
// upgraded.
const versionAge = 5 * time.Minute

// serverVersion caches the version of the API server.
type serverVersion struct {
	discover discovery.ServerVersionInterface
	clock    clock.PassiveClock

	mu   sync.Mutex
	last *semver.Version
	at   time.Time
}

// get returns the version; the zero version if the API server returns an unknown text.
func (s *serverVersion) get() (semver.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); s.last == nil || now.Sub(s.at) > versionAge {
		info, err := s.discover.ServerVersion()
		if err != nil && s.last == nil {
			return semver.Version{}, fmt.Errorf("asking the API server for its version: %w", err)
		}
		if err == nil {
			version, _ := kubeversion.Parse(info.GitVersion)
			s.last = &version
		}
		s.at = now
	}
	return *s.last, nil
}

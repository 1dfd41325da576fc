package catalogsource

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// versionAge is how long the API server's version is cached. It changes when the cluster is
// upgraded.
const versionAge = 5 * time.Minute

// serverVersion caches the version of the API server.
type serverVersion struct {
	discover discovery.ServerVersionInterface
	clock    clock.PassiveClock

	mu   sync.Mutex
	last deployment.Version
	at   time.Time
}

func (s *serverVersion) get() (deployment.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); s.last == (deployment.Version{}) || now.Sub(s.at) > versionAge {
		info, err := s.discover.ServerVersion()
		if err != nil && s.last == (deployment.Version{}) {
			return deployment.Version{}, fmt.Errorf("asking the API server for its version: %w", err)
		}
		if err == nil {
			s.last = deployment.ParseVersion(info.GitVersion)
		}
		s.at = now
	}
	return s.last, nil
}

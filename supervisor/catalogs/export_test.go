package catalogs

import "time"

// SetProbeTimeout makes a store that follows nothing yet notice earlier that a
// catalog hangs.
func (s *Store) SetProbeTimeout(timeout time.Duration) { s.probe = timeout }

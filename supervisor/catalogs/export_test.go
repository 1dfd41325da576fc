package catalogs

import "time"

// SetProbeTimeout makes a store that follows nothing yet notice earlier that a
// catalog hangs.
func (s *Store) SetProbeTimeout(timeout time.Duration) { s.probe = timeout }

// SetSilentInterval makes a store that follows nothing yet read catalogs that say
// nothing of their content more often.
func (s *Store) SetSilentInterval(interval time.Duration) { s.silent = interval }

// SetSettleTime changes for how long a store that follows nothing yet does not go
// back to what was just left.
func (s *Store) SetSettleTime(settle time.Duration) { s.settle = settle }

// SetAnswerTimeout changes how long a catalog may take to answer for the first time,
// or again, before that is an error. The store follows nothing yet.
func (s *Store) SetAnswerTimeout(timeout time.Duration) { s.patience = timeout }

// SetLimit bounds the snapshots of a store that follows nothing yet.
func (s *Store) SetLimit(limit int64) { s.limit = limit }

// Held is how many contents are in memory.
func (s *Store) Held() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return len(s.pool.contents)
}

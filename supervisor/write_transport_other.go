//go:build !linux

package supervisor

import (
	"net"
	"time"
)

// limitUnacknowledged does nothing: only Linux has TCP_USER_TIMEOUT.
func limitUnacknowledged(net.Conn, time.Duration) error { return nil }

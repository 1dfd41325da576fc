package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	// failuresPerSecond bounds how many failed calls are logged. One client whose calls fail must
	// not fill the disk.
	failuresPerSecond = 10
	failuresBurst     = 100
)

// accessLog logs every failed call, up to a rate, and a sample of the successful calls.
type accessLog struct {
	logger *slog.Logger
	// sample is the number of successful calls for each logged one; 0 logs none.
	sample   uint64
	count    atomic.Uint64
	failures *rate.Limiter
	// omitted is the number of failures since the last logged one.
	omitted atomic.Uint64
}

func newAccessLog(logger *slog.Logger, sample int) *accessLog {
	return &accessLog{
		logger: logger, failures: rate.NewLimiter(failuresPerSecond, failuresBurst),
		sample: uint64(max(0, sample)),
	}
}

// record logs a call that has ended, unless its level is disabled.
func (a *accessLog) record(ctx context.Context, ended call, took time.Duration, code codes.Code, err error) {
	level := a.level(ended.method, code)
	if level < slog.LevelInfo && !a.logger.Enabled(ctx, level) {
		return
	}
	fields := make([]slog.Attr, 0, 8)
	fields = append(fields, slog.String("service", ended.method.service), slog.String("method", ended.method.name),
		slog.String("code", code.String()), slog.String("duration", took.String()), slog.Int("bytes", ended.size))
	if ended.conn != nil {
		fields = append(fields, slog.String("client", ended.conn.remote.String()))
	}
	if err != nil {
		fields = append(fields, slog.String("error", err.Error()))
	}
	if omitted := a.omitted.Load(); omitted > 0 && level >= slog.LevelInfo && a.omitted.CompareAndSwap(omitted, 0) {
		fields = append(fields, slog.Uint64("omitted", omitted))
	}
	a.logger.LogAttrs(ctx, level, "Finished call", fields...)
}

// level returns the level of a call's log line: debug for success outside the sample, info for
// client errors, and warning for server errors.
func (a *accessLog) level(m *method, code codes.Code) slog.Level {
	level := slog.LevelInfo
	switch code {
	case codes.OK:
		if a.sample == 0 || m.service == healthpb.Health_ServiceDesc.ServiceName || a.count.Add(1)%a.sample != 0 {
			return slog.LevelDebug
		}
		return level
	case codes.Canceled:
		// A client may cancel a call.
		return slog.LevelDebug
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.ResourceExhausted:
		level = slog.LevelWarn
	default:
	}
	if !a.failures.Allow() {
		a.omitted.Add(1)
		return slog.LevelDebug
	}
	return level
}

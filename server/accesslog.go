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
	// failuresPerSecond bounds how many failed calls are logged: one client
	// that asks for what is not there must not fill the disk.
	failuresPerSecond = 10
	failuresBurst     = 100
)

// accessLog writes a line for some of the calls: for all that fail, unless
// there are too many, and for a sample of those that succeed.
type accessLog struct {
	logger *slog.Logger
	// sample is how many successful calls there are for each that is logged; 0
	// logs none.
	sample   uint64
	count    atomic.Uint64
	failures *rate.Limiter
	// omitted failures since the last one that was logged.
	omitted atomic.Uint64
}

func newAccessLog(logger *slog.Logger, sample int) *accessLog {
	return &accessLog{
		logger: logger, failures: rate.NewLimiter(failuresPerSecond, failuresBurst),
		sample: uint64(max(0, sample)),
	}
}

// record logs a call that has ended, or does not.
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

// level is the level to log a call at: what went well is of interest to
// somebody who looks closely, what the client got wrong is worth a line, and
// what is the server's own fault a warning.
func (a *accessLog) level(m *method, code codes.Code) slog.Level {
	level := slog.LevelInfo
	switch code {
	case codes.OK:
		if a.sample == 0 || m.service == healthpb.Health_ServiceDesc.ServiceName || a.count.Add(1)%a.sample != 0 {
			return slog.LevelDebug
		}
		return level
	case codes.Canceled:
		// The client has lost interest, which is its right.
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

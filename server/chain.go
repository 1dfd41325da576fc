package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// interceptor is one link of the chain, for both kinds of RPC.
type interceptor struct {
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor
}

// chain returns the interceptors, the outermost first. Recovery comes last, so
// that a panic is counted and logged like any other failure.
func chain(logger *slog.Logger, m *metrics) []interceptor {
	recoverOption := recovery.WithRecoveryHandlerContext(func(ctx context.Context, cause any) error {
		m.panics.Inc()
		logger.ErrorContext(ctx, "Recovered from a panic", "cause", cause, "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "internal error")
	})
	logOptions := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall),
		logging.WithLevels(level),
		logging.WithDurationField(func(d time.Duration) logging.Fields {
			return logging.Fields{"grpc.duration", d.String()}
		}),
		logging.WithDisableLoggingFields(logging.ComponentFieldKey, logging.MethodTypeFieldKey),
	}
	log := logging.LoggerFunc(func(ctx context.Context, level logging.Level, message string, fields ...any) {
		logger.Log(ctx, slog.Level(level), message, fields...) //nolint:sloglint // message and fields are the middleware's
	})
	return []interceptor{
		{m.grpc.UnaryServerInterceptor(), m.grpc.StreamServerInterceptor()},
		{logging.UnaryServerInterceptor(log, logOptions...), logging.StreamServerInterceptor(log, logOptions...)},
		{recovery.UnaryServerInterceptor(recoverOption), recovery.StreamServerInterceptor(recoverOption)},
	}
}

// chainOptions turns the chain into options of a gRPC server.
func chainOptions(links []interceptor) []grpc.ServerOption {
	unary := make([]grpc.UnaryServerInterceptor, len(links))
	stream := make([]grpc.StreamServerInterceptor, len(links))
	for i, link := range links {
		unary[i], stream[i] = link.unary, link.stream
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...)}
}

// level is the level to log a finished call at: what went well is of interest
// to somebody who looks closely, what the client got wrong is worth a line,
// and what is the server's own fault a warning.
func level(code codes.Code) logging.Level {
	switch code {
	case codes.OK:
		return logging.LevelDebug
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.ResourceExhausted:
		return logging.LevelWarn
	default:
		return logging.LevelInfo
	}
}

package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// calls intercepts each call: it bounds, counts, times and logs the call, and recovers from panics.
// It is one interceptor that costs little compared with a call. A test counts its allocations.
type calls struct {
	metrics *metrics
	log     *accessLog
	// methods by full name. All methods are known before the first call.
	methods       map[string]*method
	recoverUnary  grpc.UnaryServerInterceptor
	recoverStream grpc.StreamServerInterceptor
	// files detects index files that can no longer be read.
	files *fileWatch
}

func newCalls(logger *slog.Logger, m *metrics, log *accessLog, files *fileWatch) *calls {
	handle := recovery.WithRecoveryHandlerContext(func(ctx context.Context, cause any) error {
		if err := files.unreadable(cause); err != nil {
			return err
		}
		m.panics.Inc()
		logger.ErrorContext(ctx, "Recovered from a panic", "cause", cause, "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "internal error")
	})
	return &calls{
		metrics: m, log: log, methods: map[string]*method{}, files: files,
		recoverUnary: recovery.UnaryServerInterceptor(handle), recoverStream: recovery.StreamServerInterceptor(handle),
	}
}

// registerMethods records the methods of a server. Call it after all services are registered and before the server
// runs.
func (c *calls) registerMethods(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, m := range info.Methods {
			c.methods["/"+service+"/"+m.Name] = c.metrics.requests.method(service, m.Name)
		}
	}
}

// unary is a [grpc.UnaryServerInterceptor].
func (c *calls) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	m, conn := c.methods[info.FullMethod], connectionOf(ctx)
	start := time.Now()
	m.begin()
	// A read from a truncated index file fails the call, not the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if conn != nil {
		conn.Begin()
		defer conn.End()
	}
	// Compressed answers would take memory for each client.
	_ = grpc.SetSendCompressor(ctx, encoding.Identity)
	response, err := any(nil), c.allow(conn)
	if err == nil {
		response, err = c.recoverUnary(ctx, request, info, handler)
	} else {
		// gRPC clients that retry automatically obey this.
		_ = grpc.SetTrailer(ctx, c.pushback(conn))
	}
	if err == nil {
		err = c.files.check(response)
	}
	size := 0
	if err == nil {
		size = sizeOf(response)
		m.sent.Add(float64(size))
		response = outgoing(response, size, conn)
	}
	return response, c.end(ctx, call{m, conn, start, size}, err)
}

// stream is a [grpc.StreamServerInterceptor].
func (c *calls) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	m, ctx := c.methods[info.FullMethod], stream.Context()
	conn := connectionOf(ctx)
	start := time.Now()
	m.begin()
	s := &serverStream{ServerStream: stream, method: m, conn: conn, files: c.files}
	defer s.idle()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	_ = grpc.SetSendCompressor(ctx, encoding.Identity)
	err := c.allow(conn)
	if err == nil {
		err = c.recoverStream(srv, s, info, handler)
	} else {
		stream.SetTrailer(c.pushback(conn))
	}
	return c.end(ctx, call{m, conn, start, s.size}, err)
}

// call is a call that has ended.
type call struct {
	method *method
	conn   *connection
	start  time.Time
	// size is how many bytes of messages were sent.
	size int
}

// end counts and logs a call. It returns the error for the client.
func (c *calls) end(ctx context.Context, ended call, err error) error {
	took := time.Since(ended.start)
	code := codes.OK
	if err != nil {
		err = clip(err)
		code = status.Code(err)
	}
	ended.method.end(code, took)
	c.log.record(ctx, ended, took, code, err)
	return err
}

// allow returns an error if a client exceeds its call rate.
func (c *calls) allow(conn *connection) error {
	if conn == nil || conn.calls == nil || conn.calls.Allow() {
		return nil
	}
	c.metrics.limited.Inc()
	limited := status.Newf(codes.ResourceExhausted, "too many calls from one address: %v per second are allowed after the first %d",
		conn.set.limits.CallRate, conn.set.limits.CallBurst)
	detailed, err := limited.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(conn.retryDelay())})
	if err != nil {
		return limited.Err()
	}
	return detailed.Err()
}

// retryDelay returns the time until another call is allowed.
func (c *connection) retryDelay() time.Duration {
	return max(time.Millisecond, time.Duration(float64(time.Second)/c.set.limits.CallRate))
}

// pushback returns the retry delay as a trailer for gRPC clients.
func (*calls) pushback(conn *connection) metadata.MD {
	return metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(conn.retryDelay().Milliseconds(), 10))
}

// maxMessage is the size of the largest status message, in bytes. A message may repeat names from
// the request, and many clients refuse headers beyond 8 KiB.
const maxMessage = 1 << 10

// clip shortens the message of a status that is too long.
func clip(err error) error {
	failed := status.Convert(err)
	text := failed.Message()
	if len(text) <= maxMessage {
		return err
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return status.Error(failed.Code(), strings.ToValidUTF8(text[:end], "\uFFFD")+"... (shortened)")
}

// sizeOf returns the size of a message as it is sent. An encoded message stores its size.
func sizeOf(message any) int {
	switch m := message.(type) {
	case interface{ Len() int }:
		return m.Len()
	case proto.Message:
		return proto.Size(m)
	default:
		return 0
	}
}

// serverStream counts the sent messages, tracks them until the client has taken them, and records
// when the server works on a request.
type serverStream struct {
	grpc.ServerStream

	method *method
	conn   *connection
	files  *fileWatch
	size   int
	// busy is set while the server works on a request.
	busy bool
}

// RecvMsg implements [grpc.ServerStream]. The server works on the request until RecvMsg is called
// again. The request of a watch is not work.
func (s *serverStream) RecvMsg(message any) error {
	s.idle()
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	if s.conn != nil {
		s.conn.Begin()
		s.busy = true
	}
	if s.method.watch {
		s.idle()
	}
	return nil
}

// idle ends the work on the current request, if there is one.
func (s *serverStream) idle() {
	if s.busy {
		s.busy = false
		s.conn.End()
	}
}

// SendMsg implements [grpc.ServerStream].
func (s *serverStream) SendMsg(message any) error {
	if err := s.files.check(message); err != nil {
		return err
	}
	size := sizeOf(message)
	if err := s.ServerStream.SendMsg(outgoing(message, size, s.conn)); err != nil {
		return err
	}
	s.size += size
	s.method.sent.Add(float64(size))
	return nil
}

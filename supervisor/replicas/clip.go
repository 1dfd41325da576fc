package replicas

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxErrorText bounds, in bytes, the text of an error of a catalog. It gets into
// the status of CatalogSources, Events and logs, and a server may send megabytes.
const maxErrorText = 1 << 10

// clip shortens the text of a call's error, and makes it what may be stored. The
// error keeps its code.
func clip(err error) error {
	answer, ofCall := status.FromError(err)
	if err == nil || !ofCall {
		return err
	}
	text := answer.Message()
	clipped := strings.ToValidUTF8(text, "\uFFFD")
	if len(clipped) > maxErrorText {
		clipped = strings.ToValidUTF8(clipped[:maxErrorText], "") + "…"
	}
	if clipped == text {
		return err
	}
	return status.Error(answer.Code(), clipped)
}

// clipUnary clips the error of a call.
//
//nolint:revive // the arguments are gRPC's
func clipUnary(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	return clip(invoke(ctx, method, req, reply, conn, options...))
}

// clipStream clips the errors of a stream.
//
//nolint:revive // the arguments are gRPC's
func clipStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, clip(err)
	}
	return clippedStream{stream}, nil
}

// clippedStream is a stream whose errors are clipped.
type clippedStream struct{ grpc.ClientStream }

// Header gives what precedes the messages.
func (s clippedStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	return header, clip(err)
}

// SendMsg sends a message.
func (s clippedStream) SendMsg(m any) error { return clip(s.ClientStream.SendMsg(m)) }

// RecvMsg receives a message.
func (s clippedStream) RecvMsg(m any) error { return clip(s.ClientStream.RecvMsg(m)) }

// CloseSend says that nothing more is sent.
func (s clippedStream) CloseSend() error { return clip(s.ClientStream.CloseSend()) }

package replicas

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxErrorText limits the text of a catalog's error, in bytes. The text appears in the status of
// CatalogSources, in Events and in logs. A server can send megabytes.
const maxErrorText = 1 << 10

// clip shortens the text of a call's error and makes it valid UTF-8. The error keeps its code.
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

// Header returns the header metadata of the stream.
func (s clippedStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	return header, clip(err)
}

// SendMsg sends a message.
func (s clippedStream) SendMsg(m any) error { return clip(s.ClientStream.SendMsg(m)) }

// RecvMsg receives a message.
func (s clippedStream) RecvMsg(m any) error { return clip(s.ClientStream.RecvMsg(m)) }

// CloseSend closes the sending side of the stream.
func (s clippedStream) CloseSend() error { return clip(s.ClientStream.CloseSend()) }

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

// limitText limits the text of a call's error and makes it valid UTF-8. The error keeps its code.
func limitText(err error) error {
	answer, ofCall := status.FromError(err)
	if err == nil || !ofCall {
		return err
	}
	text := answer.Message()
	limited := strings.ToValidUTF8(text, "\uFFFD")
	if len(limited) > maxErrorText {
		limited = strings.ToValidUTF8(limited[:maxErrorText], "") + "…"
	}
	if limited == text {
		return err
	}
	return status.Error(answer.Code(), limited)
}

// limitUnaryText limits the text of the error of a call.
//
//nolint:revive // the arguments are gRPC's
func limitUnaryText(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	return limitText(invoke(ctx, method, req, reply, conn, options...))
}

// limitStreamText limits the texts of the errors of a stream.
//
//nolint:revive // the arguments are gRPC's
func limitStreamText(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, limitText(err)
	}
	return limitedStream{stream}, nil
}

// limitedStream is a stream whose errors have a limited text.
type limitedStream struct{ grpc.ClientStream }

// Header returns the header metadata of the stream.
func (s limitedStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	return header, limitText(err)
}

// SendMsg sends a message.
func (s limitedStream) SendMsg(m any) error { return limitText(s.ClientStream.SendMsg(m)) }

// RecvMsg receives a message.
func (s limitedStream) RecvMsg(m any) error { return limitText(s.ClientStream.RecvMsg(m)) }

// CloseSend closes the sending side of the stream.
func (s limitedStream) CloseSend() error { return limitText(s.ClientStream.CloseSend()) }

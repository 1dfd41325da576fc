package extension

import (
	"crypto/sha256"
	"encoding/base64"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fingerprint is a short digest. It is long enough to distinguish values that a client may mix up.
type fingerprint [8]byte

func fingerprintOf(data []byte) fingerprint {
	sum := sha256.Sum256(data)
	return fingerprint(sum[:])
}

// pageToken is the position at which a listing continues.
type pageToken struct {
	// content and request are the fingerprints of the content and the request of the listing.
	content, request fingerprint
	// after is the position of the last element of the previous page; empty for the first page.
	after string
}

// maxToken is the largest page token, in bytes. A position consists of a few names of the catalog.
const maxToken = 64 << 10

// pageRequest is the interface of all requests for pages.
type pageRequest interface {
	proto.Message
	GetPageToken() string
	GetPageSize() int32
}

// newPageToken returns the token of a listing's first page.
func newPageToken(request pageRequest, digest string) (pageToken, error) {
	bare := proto.Clone(request).ProtoReflect()
	for _, name := range []protoreflect.Name{"page_token", "page_size"} {
		bare.Clear(bare.Descriptor().Fields().ByName(name))
	}
	bare.SetUnknown(nil)
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare.Interface())
	if err != nil {
		return pageToken{}, status.Errorf(codes.Internal, "encoding the request: %v", err)
	}
	return pageToken{content: fingerprintOf([]byte(digest)), request: fingerprintOf(encoded)}, nil
}

// String returns the token in the form for clients. It begins with a checksum of the rest.
func (t pageToken) String() string {
	rest := append(append(t.content[:], t.request[:]...), t.after...)
	sum := fingerprintOf(rest)
	return base64.RawURLEncoding.EncodeToString(append(sum[:], rest...))
}

// parsePosition returns the position at which the listing of a request continues in a content.
func parsePosition(request pageRequest, digest string) (pageToken, error) {
	want, err := newPageToken(request, digest)
	if err != nil || request.GetPageToken() == "" {
		return want, err
	}
	got, ok := parseToken(request.GetPageToken())
	switch {
	case !ok:
		return got, invalid("page_token", "is not one that this service gave out: send next_page_token of the page before as it is")
	case got.request != want.request:
		return got, invalid("page_token", "belongs to another request: keep all fields but page_size as they were for the first page")
	case got.content != want.content:
		return got, status.Error(codes.Aborted, "page_token belongs to a content that has been replaced since: begin again without page_token")
	}
	return got, nil
}

func parseToken(text string) (pageToken, bool) {
	if len(text) > maxToken {
		return pageToken{}, false
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	const size = len(fingerprint{})
	if err != nil || len(data) < 3*size || fingerprintOf(data[size:]) != fingerprint(data[:size]) {
		return pageToken{}, false
	}
	return pageToken{
		content: fingerprint(data[size:]), request: fingerprint(data[2*size:]), after: string(data[3*size:]),
	}, true
}

package catalogs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

func TestErrorsOfServersCanBeKept(t *testing.T) {
	var empty registryv1.LoadFailure
	empty.TotalProblems = 1
	empty.Problems = []*registryv1.Problem{{Message: "x" + strings.Repeat("ä", 600)}}
	for _, tt := range []struct {
		reason string
		err    error
		want   string // prefix of the text
	}{
		{"a character on the border", emptyError(&empty), "failed to list bundles: the server has no content to serve because of 1 problems, the first one: xää"},
		{"bytes that are no text", status.Error(codes.Internal, "odd \xff\xfe"), "rpc error: code = Internal desc = odd \uFFFD\uFFFD"},
		{"control characters", status.Error(codes.Internal, "one\ntwo\x1b[31m"), "rpc error: code = Internal desc = one two\uFFFD[31m"},
		{"too long", fmt.Errorf("%w: %s", errUnusable, strings.Repeat("ä", maxFailure)), errUnusable.Error()},
		{"fine", errUnusable, errUnusable.Error()},
	} {
		got := storable(tt.err)
		if text := got.Error(); !utf8.ValidString(text) || len(text) > maxFailure || !strings.HasPrefix(text, tt.want) {
			t.Errorf("%s: %q", tt.reason, text)
		}
		if status.Code(got) != status.Code(tt.err) || errors.Is(got, errUnusable) != errors.Is(tt.err, errUnusable) {
			t.Errorf("%s: it is another error: %v", tt.reason, got)
		}
	}
	if storable(nil) != nil {
		t.Error("an error where there was none")
	}
}

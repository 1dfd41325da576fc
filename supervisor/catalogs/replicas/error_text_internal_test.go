package replicas

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestLimitText(t *testing.T) {
	for _, tt := range []struct {
		reason, text, want string
	}{
		{"short", "no such package", "no such package"},
		{"at the bound", strings.Repeat("x", maxErrorText), strings.Repeat("x", maxErrorText)},
		{"long", strings.Repeat("x", 4<<20), strings.Repeat("x", maxErrorText) + "…"},
		{"cut in a letter", "x" + strings.Repeat("ä", 4<<10), "x" + strings.Repeat("ä", maxErrorText/2-1) + "…"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		err := limitText(status.Error(codes.NotFound, tt.text))
		if got := status.Convert(err); got.Message() != tt.want || got.Code() != codes.NotFound || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: %s, %d bytes", tt.reason, got.Code(), len(got.Message()))
		}
	}
	if err := limitText(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := limitText(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("the end of a stream became %v", err)
	}
}

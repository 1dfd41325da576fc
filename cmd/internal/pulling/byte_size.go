package pulling

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a flag for a number of bytes, with an optional suffix Ki, Mi or Gi.
type ByteSize int64

var errByteSize = errors.New("must be a number of bytes above zero, as 1048576, 512Mi or 4Gi")

// Set parses a number of bytes.
func (s *ByteSize) Set(text string) error {
	number, factor := text, int64(1)
	for i, suffix := range []string{"Ki", "Mi", "Gi"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, factor = rest, 1<<(10*(i+1))
		}
	}
	value, err := strconv.ParseInt(number, 10, 64)
	if err != nil || value <= 0 || value > math.MaxInt64/factor {
		return fmt.Errorf("%w, found %q", errByteSize, text)
	}
	*s = ByteSize(value * factor)
	return nil
}

// String returns the number with the largest suffix that divides it.
func (s *ByteSize) String() string {
	value, suffix := int64(*s), ""
	for _, next := range []string{"Ki", "Mi", "Gi"} {
		if value == 0 || value%1024 != 0 {
			break
		}
		value, suffix = value/1024, next
	}
	return strconv.FormatInt(value, 10) + suffix
}

// Type returns the name of the value's type in help texts.
func (*ByteSize) Type() string { return "size" }

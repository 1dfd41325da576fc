package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes is the size of the part of a log in a message: a few dozen lines.
const tailBytes = 4 << 10

// Tail returns the last whole lines of a log, or the reason why there are none.
func Tail(name string) string {
	text, err := last(name, tailBytes)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return strings.TrimSpace(string(text))
}

// last returns at most n bytes from the end of a file, without a partial line at the beginning.
func last(name string, n int64) (_ []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-n)
	text, err := io.ReadAll(io.NewSectionReader(file, from, n))
	if err != nil {
		return nil, err
	}
	if from > 0 {
		if _, rest, found := bytes.Cut(text, []byte("\n")); found {
			text = rest
		}
	}
	return text, nil
}

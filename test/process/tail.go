package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes is how much of a log a message shows: some dozen lines.
const tailBytes = 4 << 10

// Tail returns the last whole lines of a log, or why there are none to show.
func Tail(name string) string {
	text, err := last(name, tailBytes)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return strings.TrimSpace(string(text))
}

// last returns at most n bytes from the end of a file, without a part of a line
// in front.
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

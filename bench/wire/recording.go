package wire

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Call is a request with its replies, as bytes.
type Call struct {
	// Method is the full name, as /api.Registry/GetBundle.
	Method  string
	Request []byte
	// Stream is set for a streaming method.
	Stream  bool
	Replies [][]byte
}

// Split returns the service and the name of a method.
func Split(method string) (service, name string) {
	service, name, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service, name
}

// Write writes calls to a file.
func Write(name string, calls []Call) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("writing recording: %w", err)
	}
	out := bufio.NewWriter(file)
	if err := errors.Join(gob.NewEncoder(out).Encode(calls), out.Flush(), file.Close()); err != nil {
		return fmt.Errorf("writing recording: %w", err)
	}
	return nil
}

// Read reads calls from a file.
func Read(name string) ([]Call, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading recording: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	var calls []Call
	if err := gob.NewDecoder(bufio.NewReader(file)).Decode(&calls); err != nil {
		return nil, fmt.Errorf("reading recording: %w", err)
	}
	return calls, nil
}

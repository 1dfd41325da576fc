// Package bundlelog hands an archive over in the log of a container. The log is text in lines, and can be cut: nodes
// keep a bounded part of it.
package bundlelog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxBytes is the maximum size of an archive. Its log is smaller than what a kubelet keeps by default
// (containerLogMaxSize, 10 MiB).
const MaxBytes = 6 << 20

const (
	// ExitUnusable is the exit code of a container whose image has no usable manifests, which another way cannot change.
	ExitUnusable = 2
	// ExitTooLarge is the exit code of a container whose manifests are too large for a log.
	ExitTooLarge = 3
)

// remedy is what to do about manifests that a log cannot hand over.
const remedy = "give the supervisor access to the image with a pull secret or a mirror"

const (
	// header is the first line, and trailer begins the last one, before the checksum.
	header  = "chandlery bundle 1"
	trailer = "sha256:"
	// lineBytes is how much of the archive a line has. Runtimes store a line of this length as one.
	lineBytes = 3 << 10
	// MaxLogBytes is the maximum size of a log.
	MaxLogBytes = MaxBytes/3*4 + MaxBytes/lineBytes + 1<<10
)

// The errors of a log.
var (
	// ErrTooLarge means that an archive is too large for a log.
	ErrTooLarge = fmt.Errorf("the manifests have more than %d bytes when compressed, the most that a log hands over; "+remedy, MaxBytes)
	// ErrCut means that a log is not complete.
	ErrCut = errors.New("the node has not kept the whole log of the manifests; raise containerLogMaxSize of its kubelet, or " + remedy)
	// ErrForeign means that a log has other content.
	ErrForeign = errors.New("the log has other content than the manifests of a bundle")
)

// Write writes an archive as a log.
func Write(to io.Writer, archive []byte) error {
	if len(archive) > MaxBytes {
		return ErrTooLarge
	}
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, header)
	for rest := archive; len(rest) > 0; {
		line := rest[:min(len(rest), lineBytes)]
		rest = rest[len(line):]
		fmt.Fprintln(out, base64.StdEncoding.EncodeToString(line))
	}
	sum := sha256.Sum256(archive)
	fmt.Fprintln(out, trailer+hex.EncodeToString(sum[:]))
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// Read returns the archive in a log, which can have any content. It reads no more than MaxLogBytes.
func Read(from io.Reader) ([]byte, error) {
	log, err := io.ReadAll(io.LimitReader(from, MaxLogBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	if len(log) > MaxLogBytes {
		return nil, ErrTooLarge
	}
	body, isBundle := bytes.CutPrefix(log, []byte(header+"\n"))
	if !isBundle {
		if bytes.Contains(log, []byte("\n"+trailer)) {
			return nil, fmt.Errorf("%w: its beginning is missing", ErrCut)
		}
		return nil, ErrForeign
	}
	body, isWhole := bytes.CutSuffix(body, []byte("\n"))
	start := bytes.LastIndexByte(body, '\n') + 1
	sum, isLast := strings.CutPrefix(string(body[start:]), trailer)
	if !isWhole || !isLast {
		return nil, fmt.Errorf("%w: its end is missing", ErrCut)
	}
	return decode(body[:start], sum)
}

// decode returns the archive in the lines of a log.
func decode(lines []byte, sum string) ([]byte, error) {
	archive := make([]byte, 0, len(lines)/4*3)
	for line := range bytes.Lines(lines) {
		var err error
		if archive, err = base64.StdEncoding.AppendDecode(archive, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForeign, err)
		}
	}
	if found := sha256.Sum256(archive); hex.EncodeToString(found[:]) != sum {
		return nil, fmt.Errorf("%w: its checksum differs", ErrCut)
	}
	return archive, nil
}

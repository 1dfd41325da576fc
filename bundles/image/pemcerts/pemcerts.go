// Package pemcerts reads certificates in PEM form (RFC 7468) that a program has to trust, and refuses a text that is invalid
// in a part. [crypto/x509.CertPool.AppendCertsFromPEM] skips such a part.
package pemcerts

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// Error is what is wrong with a text.
type Error struct {
	// Problem is a predicate, such as "has no PEM certificate".
	Problem string
	// Line is the first line of the block, from 1; 0 if the text has no block.
	Line int
}

// Error returns a sentence about the text.
func (e *Error) Error() string {
	if e.Line == 0 {
		return "it " + e.Problem
	}
	return fmt.Sprintf("line %d %s", e.Line, e.Problem)
}

// Parse returns the certificates in a text, at least one. Text between the blocks is allowed. Errors are of type [*Error].
func Parse(text []byte) ([]*x509.Certificate, error) {
	begin := []byte("-----BEGIN ")
	var all []*x509.Certificate
	for rest := text; ; {
		next := bytes.Index(rest, begin)
		if next < 0 {
			break
		}
		block := rest[next:]
		line := 1 + bytes.Count(text[:len(text)-len(block)], []byte("\n"))
		decoded, after := pem.Decode(block)
		switch {
		// Decode skips a damaged block.
		case decoded == nil, bytes.Count(block[:len(block)-len(after)], begin) > 1:
			return nil, &Error{"has a PEM block that is incomplete or damaged", line}
		case decoded.Type != "CERTIFICATE":
			return nil, &Error{"has a PEM block of type " + decoded.Type + ", not CERTIFICATE", line}
		}
		certificate, err := x509.ParseCertificate(decoded.Bytes)
		if err != nil {
			return nil, &Error{"has a certificate that cannot be decoded: " + err.Error(), line}
		}
		all, rest = append(all, certificate), after
	}
	if len(all) == 0 {
		return nil, &Error{Problem: "has no PEM certificate"}
	}
	return all, nil
}

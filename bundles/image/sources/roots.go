package sources

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
)

// checkRoots returns what is wrong with a PEM text of certificates to trust, and the line of the block; empty if nothing
// is. Text between the blocks is allowed. [pem.Decode] skips damaged blocks, so each block is decoded from its own beginning.
func checkRoots(data []byte) (problem string, line int) {
	begin := []byte("-----BEGIN ")
	at := bytes.Index(data, begin)
	if at < 0 {
		return "has no PEM certificate", 0
	}
	for at >= 0 {
		line = 1 + bytes.Count(data[:at], []byte("\n"))
		block, rest := pem.Decode(data[at:])
		end := len(data) - len(rest)
		switch {
		case block == nil, bytes.Count(data[at:end], begin) > 1:
			return "has a PEM block that is incomplete or damaged", line
		case block.Type != "CERTIFICATE":
			return "has a PEM block of type " + block.Type + ", not CERTIFICATE", line
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "has a certificate that cannot be decoded: " + err.Error(), line
		}
		if at = bytes.Index(rest, begin); at >= 0 {
			at += end
		}
	}
	return "", 0
}

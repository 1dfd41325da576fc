package sources

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Limits of the rules of one origin. Each user who may write a ConfigMap in a namespace can write rules there.
const (
	// maxTables is the number of [[registry]] tables.
	maxTables = 2000
	// maxDots is the number of dots in a line of TOML. The time of the parser grows with the square of the parts of a key.
	maxDots = 200
	// maxNamedBytes is the total size of the files that hosts.toml files name. Each counts as often as it is named.
	maxNamedBytes = 8 << 20
	// maxPairs is the number of client certificates, and maxKeyBytes the size of the private key of one, decoded. The time to
	// check an RSA key grows with the cube of its size; one of 8192 bits has 4.7 KB.
	maxPairs    = 100
	maxKeyBytes = 6 << 10
)

var (
	errManyNamed = fmt.Errorf("the files that hosts.toml names have more than %d bytes in total", maxNamedBytes)
	errManyPairs = fmt.Errorf("there are more than %d client certificates", maxPairs)
	errLongKey   = fmt.Errorf("the private key is larger than %d bytes", maxKeyBytes)
	errManyDots  = errors.New("has a line with too many dots")
)

// budget counts the work for the certificates of one origin.
type budget struct{ namedBytes, pairs int }

// addNamed adds a file that a hosts.toml names.
func (b *budget) addNamed(data []byte) error {
	if b.namedBytes += len(data); b.namedBytes > maxNamedBytes {
		return errManyNamed
	}
	return nil
}

// pair returns a client certificate. Errors do not repeat the key.
func (b *budget) pair(certificate, key []byte) (tls.Certificate, error) {
	b.pairs++
	if b.pairs > maxPairs {
		return tls.Certificate{}, errManyPairs
	}
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") && len(block.Bytes) > maxKeyBytes {
			return tls.Certificate{}, errLongKey
		}
	}
	return tls.X509KeyPair(certificate, key) //nolint:wrapcheck // the caller names the file
}

// checkDots returns an error for a text with a line that has more than maxDots dots.
func checkDots(text []byte) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if n := bytes.Count(line, []byte(".")); n > maxDots {
			return fmt.Errorf("%w: line %d has %d, at most %d are allowed", errManyDots, number, n, maxDots)
		}
	}
	return nil
}

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/pulling"
)

// connectionFlags configure the connection to a server.
type connectionFlags struct {
	tls           bool
	ca, cert, key string
	serverName    string
	skipVerify    bool
	maxMessage    pulling.ByteSize
}

func (c *connectionFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.tls, "tls", false, "use TLS; --ca, --cert, --server-name and --insecure-skip-tls-verify imply it")
	flags.StringVar(&c.ca, "ca", "", "file with CA certificates (PEM) to trust instead of the CAs of the system")
	flags.StringVar(&c.cert, "cert", "", "file with the client certificate (PEM); needs --key")
	flags.StringVar(&c.key, "key", "", "file with the key (PEM) of the client certificate; needs --cert")
	flags.StringVar(&c.serverName, "server-name", "", "name to verify in the server certificate; default: the host in ADDRESS")
	flags.BoolVar(&c.skipVerify, "insecure-skip-tls-verify", false, "accept any server certificate")
	c.maxMessage = 256 << 20
	flags.Var(&c.maxMessage, "max-message-size", "largest message to accept, in bytes or with a unit, such as 512Mi")
}

var (
	errHalfCertificate = errors.New("--cert and --key go together")
	errNoCertificate   = errors.New("contains no certificate (PEM)")
)

// dial prepares a connection. It sends nothing before the first call.
func (c *connectionFlags) dial(address string) (*grpc.ClientConn, error) {
	how, err := c.credentials()
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(withPort(address),
		grpc.WithTransportCredentials(how),
		grpc.WithUserAgent("registry/"+version),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(c.maxMessage))),
	)
}

// withPort adds the default port of catalogs to an address without a port.
func withPort(address string) string {
	if strings.Contains(address, "://") || strings.HasPrefix(address, "unix:") {
		return address
	}
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), "50051")
}

func (c *connectionFlags) credentials() (credentials.TransportCredentials, error) {
	if (c.cert == "") != (c.key == "") {
		return nil, errHalfCertificate
	}
	if !c.tls && c.ca == "" && c.cert == "" && c.serverName == "" && !c.skipVerify {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.serverName,
		InsecureSkipVerify: c.skipVerify, //nolint:gosec // it is asked for by a flag of that name
	}
	if c.ca != "" {
		text, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("reading --ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading --ca: %s %w", c.ca, errNoCertificate)
		}
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("reading --cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}

// explain returns the error of a failed call with a remedy.
func (o *queryOptions) explain(address, what string, err error) error {
	failure, ok := status.FromError(err)
	if !ok || errors.As(err, new(*exitcode.Error)) {
		return err
	}
	hint := ""
	switch failure.Code() {
	case codes.Unavailable:
		hint = "; check the address, that the server has its content, and whether it speaks TLS (--tls)"
	case codes.DeadlineExceeded:
		hint = fmt.Sprintf("; no answer within %s: raise --timeout", o.timeout)
	case codes.Unimplemented:
		hint = "; this server does not support the query: it is not Chandlery's registry, or an older version"
	case codes.ResourceExhausted:
		hint = "; ask less often if the rate limit of the server (its --max-call-rate) is reached, " +
			"or raise --max-message-size if a message is too large"
	case codes.Unauthenticated, codes.PermissionDenied:
		hint = "; show a certificate that the server accepts (--cert, --key)"
	case codes.NotFound, codes.Unknown, codes.InvalidArgument:
		// The message names the missing or wrong value.
	default:
	}
	return fmt.Errorf("asking %s for %s: %s (%s)%s", address, what, failure.Message(), failure.Code(), hint)
}

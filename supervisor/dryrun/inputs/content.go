package inputs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/bundles/outline/contract"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// maxContent is the maximum memory of one catalog, in bytes.
const maxContent = 1 << 30

// maxMessage is the maximum size of a message from a server, in bytes, as in the supervisor.
const maxMessage = 64 << 20

// ErrNoCatalog means that a directory holds no catalog.
var ErrNoCatalog = errors.New("there is no package in it; name the directory that holds the file-based catalog (for instance configs/)")

// load reads the content of a source: a directory, an index file or a server.
func load(ctx context.Context, source string) (*catalogs.Snapshot, []string, error) {
	info, err := os.Stat(source)
	switch {
	case err == nil && info.IsDir():
		c, notes, err := fromDirectory(ctx, source)
		return snapshot(c), notes, err
	case err == nil:
		c, err := fromIndex(ctx, source)
		return snapshot(c), nil, err
	case !isAddress(source):
		return nil, nil, fmt.Errorf("catalog %s: there is no such directory or file, and it is not host:port either", source)
	}
	s, err := fromAddress(ctx, source, dialtls.Security{})
	return s, nil, err
}

// snapshot returns a snapshot of a content that no server serves; nil for none.
func snapshot(c *content.Catalog) *catalogs.Snapshot {
	if c == nil {
		return nil
	}
	return &catalogs.Snapshot{Content: c}
}

// isAddress reports whether a source is an address to connect to.
func isAddress(source string) bool {
	host, port, err := net.SplitHostPort(source)
	return strings.HasPrefix(source, "unix:") || (err == nil && host != "" && port != "" && !strings.Contains(source, "/"))
}

// fromDirectory reads a file-based catalog. The notes list the problems for which a registry would not serve
// it.
func fromDirectory(ctx context.Context, dir string) (*content.Catalog, []string, error) {
	decoded, err := fbc.Load(ctx, os.DirFS(dir), fbc.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("catalog %s: %w", dir, brief(err))
	}
	if len(decoded.Packages) == 0 {
		return nil, nil, fmt.Errorf("catalog %s: %w", dir, ErrNoCatalog)
	}
	var notes []string
	if err := decoded.Validate(); err != nil {
		notes = append(notes, fmt.Sprintf("catalog %s: a registry would refuse it: %v; 'registry validate %s' lists everything", dir, brief(err), dir))
	}
	c, err := content.FromCatalog(decoded)
	if err != nil {
		return nil, nil, fmt.Errorf("catalog %s: %w", dir, err)
	}
	return c, notes, nil
}

// brief returns the first of a list of problems.
func brief(err error) error {
	problems, ok := errors.AsType[bundles.Problems](err)
	if !ok || len(problems) == 0 {
		return err
	}
	if len(problems) == 1 {
		return errors.New(problems[0].String())
	}
	return fmt.Errorf("%s (and %d more problems)", problems[0].String(), len(problems)-1)
}

// fromIndex reads a file that 'registry build' created.
func fromIndex(ctx context.Context, name string) (*content.Catalog, error) {
	x, err := index.Open(name)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w; name a directory of file-based catalogs or an index that 'registry build' has made", name, err)
	}
	all, err := contract.FromIndex(ctx, x, outline.Options{})
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", name, err)
	}
	b := content.NewBuilder(maxContent)
	for _, p := range all.Packages {
		if err := addPackage(b, p); err != nil {
			return nil, fmt.Errorf("catalog %s: %w", name, err)
		}
	}
	return b.Build(), nil
}

func addPackage(b *content.Builder, p *outline.Package) error {
	for _, ch := range p.Channels {
		for _, e := range ch.Entries {
			listed := content.ChannelEntry{
				Package: p.Name, Channel: ch.Name, Bundle: e.Name, Image: e.Image,
				Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange, Deprecation: e.Deprecation,
			}
			for _, property := range e.Properties {
				listed.Properties = append(listed.Properties, constraint.Property{Type: property.Type, Value: string(property.Value)})
			}
			if err := b.Add(listed); err != nil {
				return err
			}
		}
	}
	b.Describe(p.Name, p.DefaultChannel, p.Deprecation)
	for _, ch := range p.Channels {
		if ch.Deprecation != "" {
			b.DeprecateChannel(p.Name, ch.Name, ch.Deprecation)
		}
	}
	return nil
}

// fromAddress reads the content that a server serves.
func fromAddress(ctx context.Context, address string, security dialtls.Security) (*catalogs.Snapshot, error) {
	secure := dialtls.NewCredentials(security)
	conn, err := dial(address, secure)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // everything has been read by then
	s, err := catalogs.Read(ctx, conn)
	if err != nil {
		if failure := secure.Failure(); failure != nil {
			return nil, fmt.Errorf("catalog at %s: %w; %s", address, failure, failure.Remedy())
		}
		return nil, fmt.Errorf("catalog at %s: %w", address, err)
	}
	return s, nil
}

// connectTimeout limits an attempt to connect to a catalog. The first failure ends the reading.
const connectTimeout = 5 * time.Second

// dial returns a connection to the server at an address.
func dial(address string, secure credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return dialWithin(address, secure, connectTimeout)
}

func dialWithin(address string, secure credentials.TransportCredentials, limit time.Duration) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(address,
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: limit}),
		grpc.WithTransportCredentials(secure),
		grpc.WithUserAgent("chandlery-supervisor"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("catalog at %s: %w", address, err)
	}
	return conn, nil
}

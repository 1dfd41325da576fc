// Package catalogquery asks the catalogs of a cluster about packages.
package catalogquery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

const (
	// parallel is the number of catalogs that are asked at once.
	parallel = 4
	// timeout limits the questions to one catalog.
	timeout = time.Minute
	// maxPage is the largest page of a search.
	maxPage = 200
	// maxQuery and maxWords bound the text of a search, in bytes and in words. Servers refuse longer ones.
	maxQuery = 256
	maxWords = 16
)

// Dialer connects to catalogs, until end is called.
type Dialer interface {
	Dial(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (conn *grpc.ClientConn, end func(), err error)
}

// Answer is the answer of one catalog, or the reason why there is none.
type Answer[T any] struct {
	Catalog types.NamespacedName
	Value   T
	Err     error
}

// Each asks each catalog, and returns the answers in the order of the catalogs.
func Each[T any](
	ctx context.Context, cluster Dialer, sources []*operatorsv1alpha1.CatalogSource, ask func(context.Context, *grpc.ClientConn) (T, error),
) []Answer[T] {
	answers := make([]Answer[T], len(sources))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, source := range sources {
		group.Go(func() error {
			answers[i].Catalog = types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
			answers[i].Value, answers[i].Err = askOne(ctx, cluster, source, ask)
			return nil
		})
	}
	_ = group.Wait() // the answers have the errors
	return answers
}

func askOne[T any](
	ctx context.Context, cluster Dialer, source *operatorsv1alpha1.CatalogSource, ask func(context.Context, *grpc.ClientConn) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, end, err := cluster.Dial(ctx, source)
	if err != nil {
		var none T
		return none, err
	}
	defer end()
	value, err := ask(ctx, conn)
	if err != nil {
		err = fmt.Errorf("catalog %s/%s: %w", source.Namespace, source.Name, err)
	}
	return value, err
}

// Match is a package that a search found.
type Match struct {
	// Catalog is NAMESPACE/NAME.
	Catalog     string `json:"catalog"`
	Package     string `json:"package"`
	DisplayName string `json:"displayName,omitempty"`
	Provider    string `json:"provider,omitempty"`
	// Channel is the default channel, and Version is the version of its head.
	Channel     string `json:"channel,omitempty"`
	Version     string `json:"version,omitempty"`
	Deprecation string `json:"deprecation,omitempty"`
}

// Found are the packages that a search found in a catalog.
type Found struct {
	Matches []Match
	// NamesOnly reports whether only the names of packages were compared, because the server lacks the extension API.
	NamesOnly bool
}

// CheckWords returns an error for words that are too many or too long for a search.
func CheckWords(words []string) error {
	query := strings.Join(words, " ")
	if len(query) > maxQuery {
		return fmt.Errorf("the words have %d bytes together, and a search allows %d; use fewer or shorter words", len(query), maxQuery)
	}
	if n := len(strings.Fields(query)); n > maxWords {
		return fmt.Errorf("there are %d words, and a search allows %d; use fewer words", n, maxWords)
	}
	return nil
}

// NoCatalog returns the error for a namespace that can use no catalog, or none with a name unless the name is empty.
func NoCatalog(namespace, name, program string) error {
	if name != "" {
		name = fmt.Sprintf(" %q (--catalog)", name)
	}
	return fmt.Errorf("namespace %s can use no catalog%s; '%s status -A' shows all catalogs", namespace, name, program)
}

// Search returns the packages that contain all words, best first.
func Search(ctx context.Context, conn grpc.ClientConnInterface, words []string) (Found, error) {
	client := registryv1.NewRegistryServiceClient(conn)
	request := &registryv1.SearchPackagesRequest{Query: strings.Join(words, " "), PageSize: maxPage}
	matches := []Match{}
	for {
		page, err := client.SearchPackages(ctx, request)
		if status.Code(err) == codes.Unimplemented {
			matches, err = searchNames(ctx, api.NewRegistryClient(conn), words)
			return Found{Matches: matches, NamesOnly: true}, err
		}
		if err != nil {
			return Found{}, fmt.Errorf("searching packages: %s", status.Convert(err).Message())
		}
		for _, match := range page.GetMatches() {
			p := match.GetPackage()
			matches = append(matches, Match{
				Package: p.GetName(), DisplayName: p.GetDisplayName(), Provider: p.GetProvider(), Channel: p.GetDefaultChannel(),
				Version: p.GetVersion(), Deprecation: p.GetDeprecation().GetMessage(),
			})
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return Found{Matches: matches}, nil
		}
	}
}

func searchNames(ctx context.Context, client api.RegistryClient, words []string) ([]Match, error) {
	stream, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing packages: %s", status.Convert(err).Message())
	}
	matches := []Match{}
	for {
		name, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return matches, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing packages: %s", status.Convert(err).Message())
		}
		if containsAll(strings.ToLower(name.GetName()), words) {
			matches = append(matches, Match{Package: name.GetName()})
		}
	}
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, strings.ToLower(word)) {
			return false
		}
	}
	return true
}

// InstallModes returns the install modes of a bundle; none if the server does not know them.
func InstallModes(ctx context.Context, conn grpc.ClientConnInterface, entry *content.Entry) ([]operatorsv1alpha1.InstallMode, error) {
	found, err := api.NewRegistryClient(conn).GetBundle(ctx, &api.GetBundleRequest{
		PkgName: entry.Channel.Package.Name, ChannelName: entry.Channel.Name, CsvName: entry.Bundle.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("reading bundle %s: %w", entry.Bundle.Name, err)
	}
	var csv struct {
		Spec struct {
			InstallModes []operatorsv1alpha1.InstallMode `json:"installModes"`
		} `json:"spec"`
	}
	if text := found.GetCsvJson(); text != "" {
		if err := json.Unmarshal([]byte(text), &csv); err != nil {
			return nil, fmt.Errorf("reading the ClusterServiceVersion of bundle %s: %w", entry.Bundle.Name, err)
		}
	}
	return csv.Spec.InstallModes, nil
}

// Select returns the catalogs with a name, as [NAMESPACE/]NAME; all if the name is empty.
func Select(sources []*operatorsv1alpha1.CatalogSource, name string) []*operatorsv1alpha1.CatalogSource {
	var selected []*operatorsv1alpha1.CatalogSource
	for _, source := range sources {
		if name == "" || name == source.Name || name == source.Namespace+"/"+source.Name {
			selected = append(selected, source)
		}
	}
	return selected
}

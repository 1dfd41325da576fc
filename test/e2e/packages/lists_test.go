package packages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// callLimit limits one call.
	callLimit = 10 * time.Second
	// groupPath is the path of the API group.
	groupPath = "/apis/packages.operators.coreos.com/v1"
	// wantsTable is the header with which kubectl requests a table.
	wantsTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// lists are the calls that list the packages of a namespace through the API server.
type lists struct {
	http *http.Client
	// host is the address of the API server, and path the path of the packages.
	host, path string
	// want is the number of packages.
	want int
	// limit limits one call.
	limit time.Duration
}

// lists returns calls that want a number of packages.
func (s *scene) lists(want int) lists {
	s.T.Helper()
	config := controlplane.Get(s.T).Config()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		s.T.Fatal(err)
	}
	return lists{http: transport, host: config.Host, path: groupPath + "/namespaces/" + s.Namespace + "/packagemanifests", want: want, limit: callLimit}
}

// statusError is an answer with another status than 200.
type statusError struct {
	metav1.Status

	code int
}

// Error returns the status and its message.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.code, e.Message) }

// get returns the answer to a call that accepts a type. The error wraps a [*statusError] for another status than 200.
func (l lists) get(ctx context.Context, path, accept string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.host+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("preparing a call of %s: %w", path, err)
	}
	req.Header.Set("Accept", accept)
	reply, err := l.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", path, err)
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", path, err)
	}
	if reply.StatusCode != http.StatusOK {
		refused := &statusError{code: reply.StatusCode}
		if json.Unmarshal(text, &refused.Status) != nil {
			refused.Message = string(text)
		}
		return nil, fmt.Errorf("calling %s: %w", path, refused)
	}
	return text, nil
}

// version lists the packages once, and returns the version of their heads. They must all have the same one.
func (l lists) version(ctx context.Context) (string, error) {
	text, err := l.get(ctx, l.path, "application/json")
	if err != nil {
		return "", err
	}
	var found struct {
		Items []struct {
			Status struct {
				Channels []struct {
					CurrentCSVDesc struct{ Version string }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return "", fmt.Errorf("reading a list: %w", err)
	}
	var versions []string
	for _, item := range found.Items {
		for _, c := range item.Status.Channels {
			versions = append(versions, c.CurrentCSVDesc.Version)
		}
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) > 1 {
		return "", fmt.Errorf("one list has the versions %v", versions)
	}
	if err := l.check(len(found.Items)); err != nil {
		return "", err
	}
	return strings.Join(versions, ""), nil
}

// complete lists the packages once in a format, and checks their number.
func (l lists) complete(ctx context.Context, format string) error {
	text, err := l.get(ctx, l.path, "application/"+format)
	if err != nil {
		return err
	}
	if format == "yaml" {
		// A parser would need ten times the time of the supervisor.
		return l.check(bytes.Count(text, []byte("\n  kind: PackageManifest\n")))
	}
	var found struct{ Items []json.RawMessage }
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	return l.check(len(found.Items))
}

// table requests a table once, and checks the number of its rows.
func (l lists) table(ctx context.Context) error {
	text, err := l.get(ctx, l.path, wantsTable)
	if err != nil {
		return err
	}
	var found metav1.Table
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("reading a table: %w", err)
	}
	return l.check(len(found.Rows))
}

// check compares the number of packages in an answer.
func (l lists) check(found int) error {
	if found != l.want {
		return fmt.Errorf("%d packages, want %d", found, l.want)
	}
	return nil
}

package packages_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
)

const (
	// interval is the time between two calls of a client.
	interval = 100 * time.Millisecond
	// callLimit limits one call.
	callLimit = 10 * time.Second
	// clientCount is the number of clients.
	clientCount = 20
)

// call is one list of all packages.
type call struct {
	begun time.Time
	err   error
}

// clients list the packages through the API server all the time. They never repeat a failed call at once.
type clients struct {
	http *http.Client
	url  string
	want int

	mu    sync.Mutex
	calls []call
}

// startClients starts clients that want a number of packages. They stop when the test ends.
func startClients(t *testing.T, namespace string, want int) *clients {
	t.Helper()
	config := controlplane.Get(t).Config()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &clients{http: transport, url: config.Host + "/apis/packages.operators.coreos.com/v1/namespaces/" + namespace + "/packagemanifests", want: want}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range clientCount {
		running.Go(func() { c.run(ctx) })
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return c
}

// run calls until ctx ends.
func (c *clients) run(ctx context.Context) {
	for pause.For(ctx, interval) {
		one := call{begun: time.Now()}
		one.err = c.list(ctx)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.calls = append(c.calls, one)
		c.mu.Unlock()
	}
}

// list lists the packages once.
func (c *clients) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return fmt.Errorf("preparing a call: %w", err)
	}
	reply, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	var found struct{ Items []json.RawMessage }
	if err := json.Unmarshal(text, &found); reply.StatusCode != http.StatusOK || err != nil || len(found.Items) != c.want {
		return fmt.Errorf("listing packages: status %d, %d packages of %d: %.300s", reply.StatusCode, len(found.Items), c.want, text)
	}
	return nil
}

// since returns the calls that began after a time, in the order in which they began.
func (c *clients) since(from time.Time) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(c.calls), func(one call) bool { return one.begun.Before(from) })
	slices.SortFunc(found, func(x, y call) int { return x.begun.Compare(y.begun) })
	return found
}

// failed returns the failed calls that began after a time.
func (c *clients) failed(from time.Time) []call {
	return slices.DeleteFunc(c.since(from), func(one call) bool { return one.err == nil })
}

package informer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// ReadReduced returns the reply to a list request as clients receive it.
func ReadReduced(ctx context.Context, cfg *rest.Config, path string) ([]byte, error) {
	if err := ReduceReplies(cfg); err != nil {
		return nil, err
	}
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	req, err := http.NewRequestWithContext(reduceLists(ctx), http.MethodGet, cfg.Host+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	defer resp.Body.Close()
	var out bytes.Buffer
	_, err = io.Copy(&out, resp.Body)
	return out.Bytes(), err //nolint:wrapcheck // the test looks at it
}

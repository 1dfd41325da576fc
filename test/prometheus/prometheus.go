// Package prometheus builds promtool from its module and a server of the same packages, and runs the server during a test.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/programs"
)

// Names of the programs.
const (
	Promtool = "promtool"
	server   = "server"
)

// Program returns the path of a program, which it builds if necessary.
func Program(ctx context.Context, name string) (string, error) {
	dir, err := buildcache.SourceDir("test/promtool")
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	built, err := buildcache.Build(ctx, buildcache.Module{
		Name: "promtool", Dir: dir,
		Programs: []buildcache.Program{
			{Name: Promtool, Package: "github.com/prometheus/prometheus/cmd/promtool"},
			{Name: server, Package: "./server"},
		},
		// Without the clients of clouds, which only service discovery needs.
		Tags: []string{"remove_all_sd"},
	}, os.Stderr, name)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return filepath.Join(built, name), nil
}

// Server scrapes a target with the code of Prometheus, and answers queries.
type Server struct{ url string }

// Start runs a server until the test ends. It scrapes a target every second, with the labels of a job and others.
func Start(t *testing.T, target, job string, labels map[string]string) *Server {
	t.Helper()
	path, err := Program(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"scrape_interval": "1s"},
		"scrape_configs": []map[string]any{{
			"job_name": job, "static_configs": []map[string]any{{"targets": []string{target}, "labels": labels}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	address := ports.Address(t)
	programs.Start(t, server, path, "--config", file, "--data", filepath.Join(dir, "data"), "--address", address)
	return &Server{url: "http://" + address}
}

// Sample is one series of the result of a query.
type Sample struct {
	Metric map[string]string `json:"metric"`
	// Value is the time and the value.
	Value [2]any `json:"value"`
}

// Query returns the result of an instant query.
func (s *Server) Query(ctx context.Context, expression string) ([]Sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/query?query="+url.QueryEscape(expression), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("querying Prometheus: %w", err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("querying Prometheus: %w", err)
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("querying Prometheus: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("querying Prometheus: %s: %.300s", reply.Status, text)
	}
	var samples []Sample
	if err := json.Unmarshal(text, &samples); err != nil {
		return nil, fmt.Errorf("querying Prometheus: %w", err)
	}
	return samples, nil
}

// Package prometheus builds promtool and Prometheus from their module, and runs Prometheus during a test.
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
	server   = "prometheus"
)

// Program returns the path of a program, which it builds if necessary.
func Program(ctx context.Context, name string) (string, error) {
	dir, err := buildcache.SourceDir("test/promtool")
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	const commands = "github.com/prometheus/prometheus/cmd/"
	built, err := buildcache.Build(ctx, buildcache.Module{
		Name: "prometheus", Dir: dir,
		Programs: []buildcache.Program{{Name: Promtool, Package: commands + Promtool}, {Name: server, Package: commands + server}},
		// Without the clients of clouds, which only service discovery needs.
		Tags: []string{"remove_all_sd"},
	}, os.Stderr, name)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return filepath.Join(built, name), nil
}

// Server is a running Prometheus.
type Server struct{ url string }

// Start runs Prometheus until the test ends. It scrapes a target every second, with the labels of a job and others.
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
	programs.Start(t, server, path, "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/query?query="+url.QueryEscape(expression), http.NoBody)
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
	var answer struct {
		Status string `json:"status"`
		Data   struct {
			Result []Sample `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return nil, fmt.Errorf("querying Prometheus: %s: %.300s", reply.Status, text)
	}
	return answer.Data.Result, nil
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const kibi = 1 << 10

func mebi(bytes int64) float64 { return float64(bytes) / kibi / kibi }

// memory returns the supervisor's private memory in bytes, after it has become idle.
func (s *scene) memory(ctx context.Context) (bytes int64, err error) {
	if err := s.pause(ctx, s.o.settle); err != nil {
		return 0, err
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", s.supervisor.PID()))
	if err != nil {
		return 0, fmt.Errorf("looking at the supervisor's memory: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), "RssAnon:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("looking at the supervisor's memory: %w", err)
		}
		return kib * kibi, nil
	}
	return 0, fmt.Errorf("looking at the supervisor's memory: no RssAnon, %w", lines.Err())
}

// requests are the requests of the supervisor to the API server so far.
type requests struct {
	// writes are requests that change something. renewals are those of the Lease, which is the only
	// object written with PUT.
	writes, renewals int
}

// requests reads the supervisor's metrics.
func (s *scene) requests(ctx context.Context) (sum requests, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", http.NoBody)
	if err != nil {
		return sum, fmt.Errorf("reading metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return sum, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return sum, fmt.Errorf("reading metrics: %w", err)
	}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		switch labelOf(m, "method") {
		case http.MethodPut:
			sum.renewals += int(m.GetCounter().GetValue())
		case http.MethodPost, http.MethodPatch, http.MethodDelete:
			sum.writes += int(m.GetCounter().GetValue())
		}
	}
	return sum, nil
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

package prometheus_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/prometheus"
	"github.com/chandlery/chandlery/test/testenv"
)

// TestQuery scrapes a metric whose label namespace Prometheus renames.
func TestQuery(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE lamps gauge\nlamps{namespace=\"shop\"} 3\n")
	}))
	t.Cleanup(target.Close)
	server := prometheus.Start(t, strings.TrimPrefix(target.URL, "http://"), "street", map[string]string{"namespace": "town"})
	var found []prometheus.Sample
	testenv.Until(t, time.Minute, "a sample", func(ctx context.Context) string {
		var err error
		if found, err = server.Query(ctx, "lamps"); err != nil {
			return err.Error()
		}
		if len(found) == 0 {
			return "no sample"
		}
		return ""
	})
	got := found[0]
	if got.Value[1] != "3" || got.Metric["job"] != "street" || got.Metric["namespace"] != "town" || got.Metric["exported_namespace"] != "shop" {
		t.Errorf("sample %+v", got)
	}
	if _, err := server.Query(t.Context(), "lamps{"); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Errorf("an invalid query: %v", err)
	}
}

package compattest

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metric returns the value of a metric of the supervisor. The name ends in all its labels, and the value is 0 if the
// supervisor has not set these. It skips the case if the tests did not start the supervisor.
func Metric(t *testing.T, name string) float64 {
	t.Helper()
	if target.metrics == nil {
		t.Skip("the rule needs the metrics of a supervisor that the tests started")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+target.metrics.Address()+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		text, is := strings.CutPrefix(lines.Text(), name+" ")
		if !is {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	if lines.Err() != nil || !strings.HasSuffix(name, "}") {
		t.Fatalf("the supervisor has no metric %s: %v", name, lines.Err())
	}
	return 0
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
)

// change is one kind of request that changes something, as the API server counts it.
type change struct {
	// resource is followed by a slash and the subresource, if there is one.
	resource, verb string
	// refused is set for requests that were answered with an error.
	refused bool
}

// writes counts changes.
type writes map[change]int

// sum returns the sum of the selected changes.
func (w writes) sum(wanted func(change) bool) int {
	sum := 0
	for c, n := range w {
		if wanted(c) {
			sum += n
		}
	}
	return sum
}

// since returns the difference to earlier counts.
func (w writes) since(earlier writes) writes {
	added := writes{}
	for c, n := range w {
		if n > earlier[c] {
			added[c] = n - earlier[c]
		}
	}
	return added
}

// kubernetes reports whether only Kubernetes' own components make a change: its controllers, its
// scheduler, its nodes or the API server. These are consequences of a Deployment, a ServiceAccount
// or a CustomResourceDefinition, and periodic writes.
func (c change) kubernetes() bool {
	return slices.Contains([]string{
		"deployments/status", "replicasets", "replicasets/status", "pods", "pods/binding", "pods/status",
		"endpoints", "endpointslices", "nodes", "nodes/status", "leases",
		"customresourcedefinitions/status", "apiservices", "apiservices/status",
		eventsOfKubernetes,
	}, c.resource)
}

// eventsOfKubernetes counts the Events of Kubernetes' own controllers.
const eventsOfKubernetes = "events of Kubernetes"

// background reports whether a change is made periodically.
func (c change) background() bool {
	return slices.Contains([]string{"leases", "nodes", "nodes/status"}, c.resource)
}

// question reports whether a request is a POST that stores nothing.
func question(group, resource, subresource string) bool {
	return group == "authorization.k8s.io" || group == "authentication.k8s.io" || (resource == "serviceaccounts" && subresource == "token")
}

// tally is the number of writes so far.
type tally struct {
	// all are the writes counted by the API server.
	all writes
	// own are the writes counted by the supervisor, without renewals of its Lease.
	own int
}

func (t tally) since(earlier tally) tally {
	return tally{all: t.all.since(earlier.all), own: t.own - earlier.own}
}

// writeCounter counts the writes of a scene.
type writeCounter struct{ *scene }

// whenIdle waits until only background writes remain and returns the counts.
func (s writeCounter) whenIdle(ctx context.Context) (tally, error) {
	const rest = 3 * time.Second
	var (
		last  tally
		since time.Time
	)
	err := s.await(ctx, "the writes to end", func(ctx context.Context) (bool, error) {
		now, err := s.count(ctx)
		if err != nil {
			return false, err
		}
		added := now.since(last)
		if last.all == nil || added.all.sum(func(c change) bool { return !c.background() }) > 0 {
			since = time.Now()
		}
		last = now
		return time.Since(since) >= rest, nil
	})
	return last, err
}

// count reads the metrics of the API server and of the supervisor.
func (s writeCounter) count(ctx context.Context) (tally, error) {
	t := tally{all: writes{}}
	families, err := metrics(ctx, s.api, s.plane.Config().Host+"/metrics")
	if err != nil {
		return t, err
	}
	changes := []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		l := labels(m)
		if !slices.Contains(changes, l["verb"]) || l["dry_run"] != "" || question(l["group"], l["resource"], l["subresource"]) {
			continue
		}
		c := change{resource: l["resource"], verb: l["verb"], refused: l["code"] >= "4"}
		if l["subresource"] != "" {
			c.resource += "/" + l["subresource"]
		}
		t.all[c] += int(m.GetCounter().GetValue())
	}
	if err := s.separateEvents(ctx, t.all); err != nil {
		return t, err
	}
	families, err = metrics(ctx, http.DefaultClient, "http://"+s.metrics+"/metrics")
	if err != nil {
		return t, err
	}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		// Only the Lease is written with PUT. The few questions are also POST requests.
		if slices.Contains([]string{http.MethodPost, http.MethodPatch, http.MethodDelete}, labels(m)["method"]) {
			t.own += int(m.GetCounter().GetValue())
		}
	}
	return t, nil
}

// separateEvents separates the Events of Kubernetes' controllers from those of the supervisor, which the API
// server counts together.
func (s writeCounter) separateEvents(ctx context.Context, counted writes) error {
	list := &corev1.EventList{}
	if err := s.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing Events: %w", err)
	}
	for i := range list.Items {
		e := &list.Items[i]
		if strings.HasPrefix(e.ReportingController+e.Source.Component, "chandlery-") {
			continue
		}
		kind := change{resource: "events", verb: "POST"}
		counted[kind]--
		counted[change{resource: eventsOfKubernetes, verb: "POST"}]++
	}
	return nil
}

func metrics(ctx context.Context, from *http.Client, url string) (_ map[string]*dto.MetricFamily, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	response, err := from.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return families, nil
}

func labels(m *dto.Metric) map[string]string {
	texts := make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		texts[l.GetName()] = l.GetValue()
	}
	return texts
}

// resources returns the changed resources, the most frequently changed first.
func (w writes) resources(wanted func(change) bool) []string {
	counts := map[string]int{}
	for c, n := range w {
		if wanted(c) {
			counts[c.resource] += n
		}
	}
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
}

package compattest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LogRequests makes a case log each of its further requests with the answer. A request that repeats the former one and
// has the same answer is not logged.
func LogRequests(t *testing.T, c *Cluster) {
	t.Helper()
	config := rest.CopyConfig(target.config)
	config.ContentType = runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transcript{t: t, next: next} })
	logged, err := client.NewWithWatch(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	c.WithWatch = logged
}

// transcript logs requests and answers.
type transcript struct {
	t    *testing.T
	next http.RoundTripper

	mu sync.Mutex
	// last is the latest entry of the log.
	last string
}

// RoundTrip implements http.RoundTripper.
func (l *transcript) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, fmt.Errorf("copying the request: %w", err)
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, fmt.Errorf("copying the request: %w", err)
		}
	}
	response, err := l.next.RoundTrip(request)
	if err != nil {
		l.log(fmt.Sprintf("%s %s %s\n%v", request.Method, request.URL.Path, short(sent), err))
		return nil, err //nolint:wrapcheck // a RoundTripper returns the error of the next one
	}
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(received))
	l.log(fmt.Sprintf("%s %s %s\n%s %s", request.Method, request.URL.Path, short(sent), response.Status, short(received)))
	return response, nil
}

// log logs an entry unless it equals the latest one.
func (l *transcript) log(entry string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry != l.last {
		l.t.Log(entry)
	}
	l.last = entry
}

// maxBody limits the length of a body in the log.
const maxBody = 2000

// short returns an object as JSON without its managed fields, and other text as it is. It cuts a long text off.
func short(body []byte) string {
	u := &unstructured.Unstructured{}
	if json.Unmarshal(body, &u.Object) == nil {
		u.SetManagedFields(nil)
		if text, err := json.Marshal(u.Object); err == nil {
			body = text
		}
	}
	text := strings.TrimSpace(string(body))
	if len(text) > maxBody {
		text = text[:maxBody] + "…"
	}
	return text
}

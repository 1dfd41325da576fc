package testenv

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Requests records the requests of clients, as method and path.
type Requests struct {
	mu            sync.Mutex
	reads, writes []string
}

// Reads returns the requests that change nothing, and for which all conditions hold.
func (r *Requests) Reads(conditions ...func(request string) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return which(r.reads, conditions)
}

// Writes returns the requests that change objects, and for which all conditions hold.
func (r *Requests) Writes(conditions ...func(request string) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return which(r.writes, conditions)
}

func which(requests []string, conditions []func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(request string) bool {
		return slices.ContainsFunc(conditions, func(holds func(string) bool) bool { return !holds(request) })
	})
}

// WithoutEvents reports whether a request is not about an Event.
func WithoutEvents(request string) bool { return !strings.Contains(request, "/events") }

// Containing returns a condition that requests hold that contain a text.
func Containing(text string) func(request string) bool {
	return func(request string) bool { return strings.Contains(request, text) }
}

// Record returns a transport that records requests, and sends them through another one.
func (r *Requests) Record(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		line := request.Method + " " + request.URL.Path
		if request.Method == http.MethodGet {
			r.reads = append(r.reads, line)
		} else {
			r.writes = append(r.writes, line)
		}
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

// RoundTripper is a function as a transport.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

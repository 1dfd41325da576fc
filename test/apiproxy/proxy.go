package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/ports"
)

// Record is a call with its fault.
type Record struct {
	Call  Call
	Fault Fault
	// Time is the time at which the call arrived.
	Time time.Time
}

// Proxy is a proxy for an API server. Its methods are safe for concurrent use.
type Proxy struct {
	tb        testing.TB
	address   string
	transport *http.Transport
	forward   *httputil.ReverseProxy

	mu      sync.Mutex
	running *http.Server
	ended   chan struct{}
	rule    Rule
	records []Record
	// watches holds the cancel functions of the open watches.
	watches map[*http.Request]context.CancelFunc
	// serving is the number of calls in progress. idle is signaled when it is zero.
	serving int
	idle    *sync.Cond
}

// Start starts a proxy for the API server of a configuration. It runs until the test ends. Every
// client of the proxy has the permissions of the configuration.
func Start(tb testing.TB, to *rest.Config) *Proxy {
	tb.Helper()
	secrets, err := rest.TLSConfigFor(to)
	if err != nil {
		tb.Fatalf("reading the credentials for %s: %v", to.Host, err)
	}
	target, err := url.Parse(to.Host)
	if err != nil {
		tb.Fatalf("reading the address of the API server: %v", err)
	}
	p := &Proxy{
		tb: tb, address: ports.Address(tb), watches: map[*http.Request]context.CancelFunc{},
		transport: &http.Transport{TLSClientConfig: secrets, ForceAttemptHTTP2: true},
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if to.BearerToken != "" {
				r.Out.Header.Set("Authorization", "Bearer "+to.BearerToken)
			}
		},
		Transport:     p.transport,
		FlushInterval: -1,
		// Clients see a closed connection if the server is unreachable.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { abort() },
		ErrorLog:     log.New(discard{}, "", 0),
	}
	p.idle = sync.NewCond(&p.mu)
	p.Return()
	tb.Cleanup(func() {
		p.Leave()
		p.transport.CloseIdleConnections()
	})
	return p
}

// Config returns the configuration of clients that use the proxy.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: "http://" + p.address, ContentConfig: rest.ContentConfig{ContentType: "application/json"}, QPS: -1}
}

// Decide sets the rule for all further calls; nil for no faults.
func (p *Proxy) Decide(rule Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// Records returns the calls since the start, or since Forget, in the order in which they arrived.
func (p *Proxy) Records() []Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Record(nil), p.records...)
}

// Forget deletes the records.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = nil
}

// DropWatches ends every open watch and returns their number.
func (p *Proxy) DropWatches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.watches {
		end()
	}
	return len(p.watches)
}

// Leave makes the server unreachable: it cuts every connection and refuses new ones until Return.
// It waits until the server has finished the calls in progress. A second call has no effect.
func (p *Proxy) Leave() {
	p.mu.Lock()
	running, ended := p.running, p.ended
	p.running = nil
	p.mu.Unlock()
	if running == nil {
		return
	}
	if err := running.Close(); err != nil {
		p.tb.Errorf("closing the proxy: %v", err)
	}
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.serving > 0 {
		p.idle.Wait()
	}
}

// Return makes the server reachable again at the same address.
func (p *Proxy) Return() {
	p.tb.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(p.tb.Context(), "tcp", p.address)
	if err != nil {
		p.tb.Fatalf("listening at %s: %v", p.address, err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(discard{}, "", 0)}
	ended := make(chan struct{})
	p.mu.Lock()
	p.running, p.ended = server, ended
	p.mu.Unlock()
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.tb.Errorf("serving the proxy: %v", err)
		}
	}()
}

// ServeHTTP forwards a call with the fault that the rule returns.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.count(1)
	defer p.count(-1)
	call, err := callOf(r)
	if err != nil {
		abort()
	}
	fault := p.judge(call)
	if fault.Delay > 0 {
		hold(r.Context(), fault.Delay)
	}
	switch {
	case fault.Code != 0:
		refuse(w, call, fault)
	case fault.Cut == CutBefore:
		abort()
	case fault.Cut == CutAfter:
		// The server finishes the call even if the client does not wait.
		p.forward.ServeHTTP(&discard{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
		if fault.Answered != nil {
			fault.Answered()
		}
		abort()
	case call.Verb == "watch":
		p.watch(w, r)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// count changes the number of calls in progress.
func (p *Proxy) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serving += n
	if p.serving == 0 {
		p.idle.Broadcast()
	}
}

// judge records a call and returns its fault.
func (p *Proxy) judge(c Call) Fault {
	p.mu.Lock()
	rule := p.rule
	p.mu.Unlock()
	var fault Fault
	if rule != nil {
		fault = rule(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = append(p.records, Record{Call: c, Fault: fault, Time: time.Now()})
	return fault
}

// watch forwards a watch until either side ends it, or until DropWatches.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	p.mu.Lock()
	p.watches[r] = end
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, r)
		end()
	}()
	p.forward.ServeHTTP(w, r)
}

// String returns a description of the proxy.
func (p *Proxy) String() string { return fmt.Sprintf("the proxy at %s", p.address) }

// hold waits for a duration, or until the client disconnects.
func hold(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// abort cuts the connection of the current call.
func abort() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // it is how a handler asks net/http for that
}

// discard discards an answer or a log.
type discard struct{ header http.Header }

// Header returns the headers of the answer.
func (d discard) Header() http.Header { return d.header }

// Write discards the bytes.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader discards the status.
func (discard) WriteHeader(int) {}

// Package profiling serves the profiles of a program over HTTP, including a profile of its start.
package profiling

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// Flags configure the profiles.
type Flags struct {
	address string
	startup bool
}

// AddFlags adds the flags with their defaults.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	f.AddAddressFlag(flags, "localhost:6060")
	flags.BoolVar(&f.startup, "pprof-capture-profiles", false,
		"record a CPU profile of the startup, for /debug/pprof/startup/cpu")
}

// AddAddressFlag adds only the flag for the address of profiles, with its default.
func (f *Flags) AddAddressFlag(flags *pflag.FlagSet, address string) {
	flags.StringVar(&f.address, "pprof-addr", address,
		"host:port for profiles, at /debug/pprof; \"\" or 0: none; if the port is taken, the program starts without profiles")
}

// Profiles serves profiles.
type Profiles struct {
	logger *slog.Logger
	server *http.Server
	served chan struct{}

	mu      sync.Mutex
	startup bytes.Buffer
	// recording and recorded are the state of the start profile.
	recording, recorded bool
}

// maxStartup bounds the time of the start profile, which is held in memory.
const maxStartup = 5 * time.Minute

// Start begins to record and to serve. It logs failures, because a program must run without profiles, too.
func (f *Flags) Start(ctx context.Context, logger *slog.Logger) *Profiles {
	p := &Profiles{logger: logger}
	if f.address == "" || f.address == "0" {
		return p
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", f.address)
	if err != nil {
		logger.WarnContext(ctx, "Not serving profiles: the port cannot be opened; set --pprof-addr to another or to 0", "error", err)
		return p
	}
	if f.startup {
		p.record(ctx)
	}
	p.served = make(chan struct{})
	p.server = &http.Server{Handler: p.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	go func() {
		defer close(p.served)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.WarnContext(ctx, "Not serving profiles any more", "error", err)
		}
	}()
	logger.DebugContext(ctx, "Serving profiles", "address", listener.Addr().String())
	return p
}

// record begins the start profile.
func (p *Profiles) record(ctx context.Context) {
	if err := runtimepprof.StartCPUProfile(&p.startup); err != nil {
		p.logger.WarnContext(ctx, "Not recording a profile of the start", "error", err)
		return
	}
	p.recording = true
	context.AfterFunc(ctx, p.Started)
	time.AfterFunc(maxStartup, p.Started)
}

// Started ends the start profile. It may be called again.
func (p *Profiles) Started() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recording && !p.recorded {
		runtimepprof.StopCPUProfile()
		p.recorded = true
	}
}

// Stop stops serving.
func (p *Profiles) Stop(ctx context.Context) {
	p.Started()
	if p.server == nil {
		return
	}
	if err := p.server.Close(); err != nil {
		p.logger.DebugContext(ctx, "Cannot close the port of profiles", "error", err)
	}
	<-p.served
}

func (p *Profiles) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/startup/cpu", p.serveStartup)
	return mux
}

// serveStartup answers with the start profile.
func (p *Profiles) serveStartup(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.recording:
		http.Error(w, "no profile was recorded: start the program with --pprof-capture-profiles", http.StatusNotFound)
	case !p.recorded:
		http.Error(w, "the program is still starting", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		// Ignore the error of a client that has disconnected.
		_, _ = w.Write(p.startup.Bytes())
	}
}

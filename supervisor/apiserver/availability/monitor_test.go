package availability_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
)

// monitor returns a Monitor and the lines that it logs.
func monitor() (*availability.Monitor, *[]string) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	return availability.NewMonitor(availability.Config{Server: "https://api", Log: log, Clock: clock.RealClock{}}), &lines
}

// TestDoWaits checks that each cause is logged, again at growing intervals, and that the end is logged.
func TestDoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, lines := monitor()
		started, attempts := time.Now(), 0
		const outageLasts = time.Hour
		err := m.Retry(t.Context(), "starting", 2*time.Second, func() error {
			attempts++
			switch since := time.Since(started); {
			case since < 10*time.Second:
				return syscall.ECONNREFUSED
			case since < outageLasts:
				return context.DeadlineExceeded
			default:
				return nil
			}
		})
		if err != nil {
			t.Error(err)
		}
		// ConnectionRefused once; timed out at 10 s, and 30 s, 1.5, 3.5, 7.5, 15.5, 31.5 min later.
		if len(*lines) != 9 {
			t.Errorf("%d lines for %d attempts, want 9:\n%s", len(*lines), attempts, strings.Join(*lines, "\n"))
		}
		if attempts < 1800 {
			t.Errorf("%d attempts, want one every 2 s", attempts)
		}
		for i, want := range []string{
			`"msg"="Waiting for the API server" "server"="https://api" "cause"="the connection is refused" "for"="starting"`,
			`"cause"="it does not answer in time" "for"="starting" "waited"="1`,
		} {
			if !strings.Contains((*lines)[i], want) {
				t.Errorf("line %s does not contain %s", (*lines)[i], want)
			}
		}
		if last := (*lines)[len(*lines)-1]; !strings.Contains(last, `"msg"="The API server answers"`) || !strings.Contains(last, `"waited"="1h0m`) {
			t.Errorf("the last line is %s", last)
		}
	})
}

// TestDoEnds checks that Do returns errors that waiting does not change, and ends with its context.
func TestDoEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, lines := monitor()
		want := errors.New("x509: unknown authority")
		if err := m.Retry(t.Context(), "starting", time.Second, func() error { return want }); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		if len(*lines) != 0 {
			t.Errorf("logged %q", *lines)
		}
		refused := true
		err := m.Retry(t.Context(), "starting", time.Second, func() error {
			if refused {
				refused = false
				return syscall.ECONNREFUSED
			}
			return want
		})
		if !errors.Is(err, want) || len(*lines) != 1 {
			t.Errorf("after an outage: error %v, want %v; logged %q, want no answer", err, want, *lines)
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, stopped)
		defer cancel()
		err = m.Retry(ctx, "starting", time.Second, func() error { return syscall.ECONNREFUSED })
		if !errors.Is(err, stopped) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v, want the end of the context, and the cause of the outage", err)
		}
		attempts := 0
		err = m.Retry(ctx, "starting", time.Second, func() error { attempts++; return syscall.ECONNRESET })
		if !errors.Is(err, syscall.ECONNRESET) || attempts != 1 {
			t.Errorf("after the end: %d attempts, error %v", attempts, err)
		}
	})
}

// TestErr checks that Err names the cause of an outage until the outage ends.
func TestErr(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, _ := monitor()
		<-time.After(time.Minute)
		if err, calm := m.Err(), m.SinceFailure(); err != nil || calm != time.Minute {
			t.Errorf("before: error %v, without a failure for %s", err, calm)
		}
		failed := false
		err := m.Retry(t.Context(), "starting", time.Second, func() error {
			if failed {
				if err := m.Err(); err == nil || err.Error() != "waiting for the API server at https://api: the connection ends before the answer" {
					t.Errorf("error %v", err)
				}
				return nil
			}
			failed = true
			return io.EOF
		})
		if err != nil || m.Err() != nil {
			t.Errorf("after: errors %v, %v", err, m.Err())
		}
		<-time.After(time.Second)
		if calm := m.SinceFailure(); calm < time.Second || calm > 2*time.Second {
			t.Errorf("without a failure for %s", calm)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestObserve checks that failures are recorded until the context ends.
func TestObserve(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		path   string
		code   int
		err    error
		want   string
	}{
		"Answer":            {path: "/api/v1/pods", code: http.StatusOK},
		"Forbidden":         {path: "/api/v1/pods", code: http.StatusForbidden},
		"Unavailable":       {path: "/apis/apps/v1/deployments", code: http.StatusServiceUnavailable, want: "503"},
		"BrokenWebhook":     {method: http.MethodPost, path: "/apis/apps/v1/deployments", code: http.StatusInternalServerError},
		"BrokenAPIService":  {path: "/apis/metrics.k8s.io/v1beta1", code: http.StatusServiceUnavailable},
		"Refused":           {path: "/apis/apps/v1/deployments", err: syscall.ECONNREFUSED, want: "refused"},
		"DiscoveryRefused":  {path: "/apis/metrics.k8s.io/v1beta1", err: syscall.ECONNREFUSED, want: "refused"},
		"CertificateUnfit":  {path: "/api/v1/pods", err: errors.New("x509")},
		"CancelledByCaller": {path: "/api/v1/pods", err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := availability.NewMonitor(availability.Config{Log: logr.Discard(), Clock: clock.RealClock{}})
			ctx, end := context.WithCancel(t.Context())
			defer end()
			observed := m.Observe(ctx, "filling the caches")(transport(func(*http.Request) (*http.Response, error) {
				if tt.err != nil {
					return nil, tt.err
				}
				return &http.Response{StatusCode: tt.code, Body: http.NoBody}, nil
			}))
			request, err := http.NewRequestWithContext(t.Context(), tt.method, "https://api"+tt.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			ask := func() {
				response, err := observed.RoundTrip(request)
				if !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if err == nil {
					response.Body.Close()
				}
			}
			ask()
			err = m.Err()
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			end()
			before := m.SinceFailure()
			ask()
			if m.SinceFailure() < before {
				t.Error("recorded after the end")
			}
		})
	}
}

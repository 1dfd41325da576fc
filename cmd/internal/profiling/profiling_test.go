package profiling

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start parses flags and starts the profiles.
func start(t *testing.T, logs io.Writer, args ...string) *Profiles {
	t.Helper()
	var f Flags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	p := f.Start(t.Context(), slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { p.Stop(context.WithoutCancel(t.Context())) })
	return p
}

// address returns the address of the profiles, from the log.
func address(t *testing.T, logs *bytes.Buffer) string {
	t.Helper()
	_, address, found := strings.Cut(strings.TrimSpace(logs.String()), "address=")
	if !found {
		t.Fatalf("no address in the log:\n%s", logs)
	}
	return address
}

func get(t *testing.T, url string) (code int, body []byte) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func TestStartupProfile(t *testing.T) {
	var logs bytes.Buffer
	p := start(t, &logs, "--pprof-addr=127.0.0.1:0", "--pprof-capture-profiles")
	url := "http://" + address(t, &logs) + "/debug/pprof/startup/cpu"
	if code, body := get(t, url); code != http.StatusServiceUnavailable {
		t.Errorf("while the program starts: %d %s", code, body)
	}
	p.Started()
	p.Started()
	code, body := get(t, url)
	// A profile is compressed with gzip.
	if code != http.StatusOK || !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		t.Errorf("got %d and %d bytes, want a profile", code, len(body))
	}
}

func TestNoStartupProfile(t *testing.T) {
	var logs bytes.Buffer
	start(t, &logs, "--pprof-addr=127.0.0.1:0")
	base := "http://" + address(t, &logs) + "/debug/pprof/"
	if code, body := get(t, base+"startup/cpu"); code != http.StatusNotFound || !bytes.Contains(body, []byte("--pprof-capture-profiles")) {
		t.Errorf("got %d %s, want a hint", code, body)
	}
	if code, body := get(t, base+"goroutine?debug=1"); code != http.StatusOK || !bytes.Contains(body, []byte("goroutine profile")) {
		t.Errorf("got %d %s", code, body)
	}
}

func TestTakenPort(t *testing.T) {
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for reason, tt := range map[string]struct{ flag, want string }{
		"a taken port is no reason to stop": {taken.Addr().String(), "Not serving profiles"},
		"nor is a bad address":              {"nonsense", "Not serving profiles"},
		"nothing is served when unwanted":   {"0", ""},
	} {
		var logs bytes.Buffer
		start(t, &logs, "--pprof-addr="+tt.flag)
		if !strings.Contains(logs.String(), tt.want) || tt.want == "" && logs.Len() > 0 {
			t.Errorf("%s: logged %q", reason, logs.String())
		}
	}
}

// TestAddAddressFlag checks that a program may serve no profiles by default.
func TestAddAddressFlag(t *testing.T) {
	var (
		f    Flags
		logs bytes.Buffer
	)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.AddAddressFlag(flags, "")
	if err := flags.Parse(nil); err != nil {
		t.Fatal(err)
	}
	p := f.Start(t.Context(), slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	p.Stop(t.Context())
	if logs.Len() > 0 {
		t.Errorf("profiles are served without a flag:\n%s", &logs)
	}
	if flags.Lookup("pprof-capture-profiles") != nil {
		t.Error("there is a flag for the profile of the start")
	}
}

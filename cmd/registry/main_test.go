package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/proto/api"
)

const catalog = `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`

// run runs the program and returns what it writes, its errors as main prints them, and whether it failed.
func run(ctx context.Context, args ...string) (output string, failed bool) {
	var out bytes.Buffer
	cmd := newCommand() //nolint:contextcheck // commands get their context when they are executed
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		printError(&out, err)
	}
	return out.String(), err != nil
}

func TestCommands(t *testing.T) {
	dir, broken := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "c"): catalog, filepath.Join(broken, "c"): catalog + catalog,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		args   []string
		failed bool
		want   string
	}{
		"Version":     {reason: "the version is printed", args: []string{"version"}, want: "registry devel (commit unknown"},
		"Valid":       {reason: "the content is counted", args: []string{"validate", dir}, want: "1 package, 1 channel, 1 bundle, no problems"},
		"Invalid":     {reason: "each problem on a line", args: []string{"validate", broken}, failed: true, want: "/c:6: package \"p\", bundle \"b\": duplicate bundle"},
		"NoDirectory": {reason: "the usage is shown", args: []string{"serve"}, failed: true, want: "registry: name the source: a directory, an index file or an image: registry serve SOURCE [flags]; see 'registry serve --help'"},
		"UnknownFlag": {reason: "the help is pointed at", args: []string{"serve", "--nope", dir}, failed: true, want: "registry: unknown flag: --nope; see 'registry serve --help'"},
		"Unknown":     {reason: "unknown commands fail", args: []string{"nope"}, failed: true, want: `unknown command "nope"`},
		"BadPort":     {reason: "the flag is named", args: []string{"serve", dir, "--port=http"}, failed: true, want: `--port must be a number from 0 to 65535, found "http"`},
		"BadTimeout":  {reason: "the flag is named", args: []string{"serve", dir, "--shutdown-timeout=-1s"}, failed: true, want: "--shutdown-timeout must not be negative, found -1s"},
		"BadInterval": {reason: "the flag is named", args: []string{"serve", dir, "--reload-interval=-1s"}, failed: true, want: "--reload-interval must not be negative, found -1s"},
		"BadLevel":    {reason: "the flag is named", args: []string{"serve", dir, "--log-level=loud"}, failed: true, want: "--log-level"},
		"BadFormat":   {reason: "the flag is named", args: []string{"serve", dir, "--log-format=xml"}, failed: true, want: `--log-format must be text or json, found "xml"`},
		"BadLimit":    {reason: "the flag is named", args: []string{"serve", dir, "--stall-timeout=-1s"}, failed: true, want: "--stall-timeout must not be negative"},
		"NoLimit":     {reason: "limits that cannot be off say so", args: []string{"serve", dir, "--handshake-timeout=0"}, failed: true, want: "--handshake-timeout must be greater than 0"},
		"BadSample":   {reason: "the flag is named", args: []string{"serve", dir, "--access-log-sample=-1"}, failed: true, want: "--access-log-sample must not be negative"},
		"HalfTLS":     {reason: "a certificate needs a key", args: []string{"serve", dir, "--port=0", "--metrics-address=0", "--pprof-addr=0", "--tls-cert=c"}, failed: true, want: "belong together"},
		"Units":       {reason: "defaults are shown with their unit", args: []string{"serve", "--help"}, want: "(default 64Ki)"},
		"Help":        {reason: "variables are named", args: []string{"serve", "--help"}, want: "[$REGISTRY_METRICS_ADDRESS]"},
		"Completion":  {reason: "shells can complete", args: []string{"completion", "bash"}, want: "bash completion"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, failed := run(t.Context(), tc.args...)
			if failed != tc.failed || !strings.Contains(output, tc.want) {
				t.Errorf("%s: failed is %v, output:\n%s\nwant: %s", tc.reason, failed, output, tc.want)
			}
		})
	}
}

// logWatch is a log that reports the address at which the program serves.
type logWatch struct {
	mu      sync.Mutex
	text    bytes.Buffer
	address chan string
}

func (l *logWatch) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var entry struct{ Msg, Address string }
	if err := json.Unmarshal(line, &entry); err == nil && entry.Msg == "Opened ports" {
		l.address <- entry.Address
	}
	return l.text.Write(line)
}

func (l *logWatch) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestServe runs the program, requests a bundle and stops the program.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c"), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_PORT", "0")
	t.Setenv("REGISTRY_HOST", "127.0.0.1")
	t.Setenv("REGISTRY_METRICS_ADDRESS", "0")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	defer stop()
	logs := &logWatch{address: make(chan string, 1)}
	cmd := newCommand()
	cmd.SetErr(logs)
	// A metrics port in use, and flags of opm, must not fail the start.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cmd.SetArgs([]string{
		"--skip-tls-verify", "serve", dir, "--log-format=json", "--debug", "--pprof-addr=" + taken.Addr().String(), "--pprof-capture-profiles",
		"--skip-tls=true", "--use-http", "--cache-dir=" + t.TempDir(), "--cache-enforce-integrity=false",
	})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(running) }()
	var address string
	select {
	case address = <-logs.address:
	case err := <-done:
		t.Fatalf("the program ended: %v\n%s", err, logs)
	case <-ctx.Done():
		t.Fatalf("the program does not say where it serves:\n%s", logs)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		answer, err := watch.Recv()
		if err != nil {
			t.Fatalf("waiting for the program to serve: %v\n%s", err, logs)
		}
		if answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			break
		}
	}
	got, err := api.NewRegistryClient(conn).GetBundle(ctx, &api.GetBundleRequest{PkgName: "p", ChannelName: "a", CsvName: "b"})
	if err != nil || got.GetVersion() != "1.0.0" {
		t.Errorf("got %v, %v", got, err)
	}
	stop()
	if err := <-done; err != nil || !strings.Contains(logs.String(), `"msg":"Stopped"`) {
		t.Errorf("stopping: %v, output:\n%s", err, logs)
	}
}

func TestTerminationMessage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	serve := func(file string) (output string) {
		output, failed := run(t.Context(), "serve", t.TempDir(), "--port=0", "--host=127.0.0.1", "--pprof-addr=0", "--metrics-address=0", "--termination-log="+file)
		if !failed {
			t.Error("an empty directory is served")
		}
		return output
	}
	for _, reason := range []string{"a new file", "one that is there"} {
		serve(file)
		left, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(left), "holds no package") || strings.Count(string(left), "\n") != 1 {
			t.Errorf("%s: left %q, %v", reason, left, err)
		}
	}
	nowhere := filepath.Join(t.TempDir(), "none", "log")
	if output := serve(nowhere); !strings.Contains(output, "registry: writing to --termination-log: open "+nowhere) {
		t.Errorf("a file that cannot be made: %s", output)
	}
}

// TestMain prevents failing programs from writing a termination message on this machine.
func TestMain(m *testing.M) {
	if err := os.Setenv("REGISTRY_TERMINATION_LOG", os.DevNull); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestMetricsPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct {
		reason  string
		address string
		given   bool
		want    string
		err     string
		log     string
	}{
		"Default":      {reason: "nobody has asked for it", address: taken.Addr().String(), log: "Not serving metrics: the port cannot be opened; set --metrics-address"},
		"Given":        {reason: "somebody counts on it", address: taken.Addr().String(), given: true, err: "--metrics-address: listen tcp " + taken.Addr().String()},
		"Free":         {reason: "all is well", address: "127.0.0.1:0", given: true, want: "127.0.0.1:0"},
		"None":         {reason: "none is wanted", address: "", given: true},
		"NoneAsNumber": {reason: "none is wanted", address: "0", given: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := serveOptions{metricsAddress: tc.address, metricsGiven: tc.given}
			got, err := o.freeMetricsAddress(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if !strings.Contains(log.String(), tc.log) || tc.log == "" && log.Len() > 0 {
				t.Errorf("%s: log: %s", tc.reason, log.String())
			}
		})
	}
	t.Run("Flag", func(t *testing.T) {
		output, failed := run(t.Context(), "serve", t.TempDir(), "--port=0", "--host=127.0.0.1", "--pprof-addr=0", "--termination-log=", "--metrics-address="+taken.Addr().String())
		if !failed || !strings.Contains(output, "--metrics-address: listen") {
			t.Errorf("failed is %v, output:\n%s", failed, output)
		}
	})
	t.Run("Variable", func(t *testing.T) {
		t.Setenv("REGISTRY_METRICS_ADDRESS", taken.Addr().String())
		output, failed := run(t.Context(), "serve", t.TempDir(), "--port=0", "--host=127.0.0.1", "--pprof-addr=0", "--termination-log=")
		if !failed || !strings.Contains(output, "--metrics-address: listen") {
			t.Errorf("failed is %v, output:\n%s", failed, output)
		}
	})
}

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// TestClientLibrary makes every call of operator-registry's client library to both servers.
func TestClientLibrary(t *testing.T) {
	sample, err := buildcache.SourceDir("examples/catalog")
	if err != nil {
		t.Fatal(err)
	}
	for name, catalog := range map[string]string{"Sample": sample, "Odd": writeFiles(t, oddCatalog)} {
		t.Run(name, func(t *testing.T) { compareClients(t, catalog, 20) })
	}
	t.Run("Metadata", func(t *testing.T) {
		dir, _ := realcatalogs.Sample(t, realcatalogs.Metadata)
		compareClients(t, dir, 5)
	})
}

func compareClients(t *testing.T, catalog string, apis int) {
	t.Helper()
	program := buildPkgclient(t)
	ours, theirs := startPeers(t, catalog)
	got, want := ask(t, program, ours, apis), ask(t, program, theirs, apis)
	if len(got) != len(want) {
		t.Fatalf("got %d answers, want %d", len(got), len(want))
	}
	methods := map[string]int{}
	for i := range want {
		method, _, _ := strings.Cut(want[i].Call, " ")
		methods[method]++
		// Decision 2: a missing object is NotFound.
		if want[i].Code == "Unknown" {
			want[i].Code = "NotFound"
		}
		if diff := gocmp.Diff(want[i], got[i]); diff != "" {
			t.Fatalf("answer %d: -want +got:\n%s", i, diff)
		}
	}
	if !got[0].Healthy || got[0].Failed {
		t.Errorf("HealthCheck: got %+v", got[0])
	}
	for _, method := range []string{
		"HealthCheck", "ListBundles", "GetPackage", "GetBundle", "GetBundleInPackageChannel",
		"GetReplacementBundleInPackageChannel", "GetBundleThatProvides",
	} {
		if methods[method] == 0 {
			t.Errorf("%s was not called", method)
		}
	}
	t.Logf("compared %v", methods)
}

// clientAnswer is a line of the program's output.
type clientAnswer struct {
	Call    string `json:"call"`
	Healthy bool   `json:"healthy"`
	Failed  bool   `json:"failed"`
	Digest  string `json:"digest"`
	Name    string `json:"name"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// maxTranscript limits the lines in the transcript of a large catalog.
const maxTranscript = 200

// ask runs the program with a server. The log of the test contains the transcript: one line for each call with its answer.
func ask(t *testing.T, program string, p peer, apis int) []clientAnswer {
	t.Helper()
	address := strings.TrimPrefix(p.conn.CanonicalTarget(), "passthrough:///")
	cmd := exec.CommandContext(t.Context(), program, "-apis", strconv.Itoa(apis), address)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("asking %s: %v\n%s", address, err, complaints.String())
	}
	lines := strings.SplitAfter(string(output), "\n")
	t.Logf("$ %s\n%s%d lines", cmd, strings.Join(lines[:min(len(lines), maxTranscript)], ""), len(lines)-1)
	var answers []clientAnswer
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var a clientAnswer
		if err := decoder.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) == 0 {
		t.Fatalf("%s gave no answers", address)
	}
	return answers
}

// buildPkgclient returns the path of the program over the client library.
func buildPkgclient(t *testing.T) string {
	t.Helper()
	const name = "pkgclient"
	dir, err := buildcache.SourceDir("test/conformance/" + name)
	if err != nil {
		t.Fatal(err)
	}
	binaries, err := buildcache.Build(context.WithoutCancel(t.Context()), buildcache.Module{
		Name: name, Dir: dir, Programs: []buildcache.Program{{Name: name, Package: "."}},
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(binaries, name)
}

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// pushCatalog starts an image registry with the catalog in an image, and returns its reference.
func pushCatalog(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	if err := archive.WriteHeader(&tar.Header{Name: "configs/catalog.json", Mode: 0o644, Size: int64(len(catalog))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(catalog)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	content, err = mutate.Config(content, v1.Config{Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}})
	if err != nil {
		t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/catalog:v1"
	tag, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, content); err != nil {
		t.Fatal(err)
	}
	return reference
}

// startServe runs "registry serve" for an image until the end of the test. It returns the logs and a function that reads
// the metrics.
func startServe(t *testing.T, args ...string) (logs *logWatch, metrics func() string) {
	t.Helper()
	logs = &logWatch{address: make(chan string, 1)}
	cmd := newCommand()
	cmd.SetErr(logs)
	cmd.SetArgs(append([]string{
		"serve", "oci:" + pushCatalog(t), "--use-http", "--host=127.0.0.1", "--port=0", "--metrics-address=127.0.0.1:0", "--log-format=json",
		"--reload-interval=10ms",
	}, args...))
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the program failed: %v", err)
		}
	})
	await(t, logs, `"msg":"Loaded catalog"`, 1)
	address := regexp.MustCompile(`"metricsAddress":"([^"]+)"`).FindStringSubmatch(logs.String())
	if address == nil {
		t.Fatalf("the program serves no metrics:\n%s", logs)
	}
	return logs, func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address[1]+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
}

// await waits until a text is in the logs a number of times.
func await(t *testing.T, logs *logWatch, text string, times int) {
	t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for strings.Count(logs.String(), text) < times {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %q in the logs, %d times:\n%s", text, times, logs)
		}
	}
}

// TestImageSettings breaks and corrects the settings for image registries while the program runs.
func TestImageSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "registries.conf")
	write := func(text string) {
		t.Helper()
		next := filepath.Join(dir, ".next")
		if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	const valid = "[[registry]]\nlocation = \"other.example.com\"\nblocked = true\n"
	const gauge = "\nchandlery_registry_image_settings_valid "
	const broken = "Cannot use the settings for image registries, the last valid ones stay in force"
	const corrected = "The settings for image registries are valid again"
	write(valid)
	logs, metrics := startServe(t, "--image-config="+dir)
	if !strings.Contains(metrics(), gauge+"1\n") {
		t.Error("the metric does not show that the settings are valid")
	}
	write(valid + "blocked = maybe\n")
	await(t, logs, broken, 1)
	if !strings.Contains(metrics(), gauge+"0\n") {
		t.Error("the metric does not show that the settings are invalid")
	}
	if text := logs.String(); !strings.Contains(text, dir+" key registries.conf, line 4: ") || strings.Contains(text, corrected) {
		t.Errorf("the log does not name the file and the line:\n%s", text)
	}
	write("[[registry]]\nlocation = 7\n")
	await(t, logs, broken, 2)
	write(valid)
	await(t, logs, corrected, 1)
	if !strings.Contains(metrics(), gauge+"1\n") {
		t.Error("the metric does not show that the settings are corrected")
	}
	if text := logs.String(); strings.Count(text, broken) != 2 || strings.Count(text, corrected) != 1 {
		t.Errorf("the log repeats itself:\n%s", text)
	}
}

// TestNoImageSettings checks that a program without settings has no metric for them.
func TestNoImageSettings(t *testing.T) {
	if _, metrics := startServe(t); strings.Contains(metrics(), "image_settings") {
		t.Error("there is a metric for settings that do not exist")
	}
}
